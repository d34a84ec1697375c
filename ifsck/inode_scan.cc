#include "ifsck/inode_scan.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

// Of an inode table, asked for at a time.
constexpr std::uint64_t kBytesAtOnce = 4u << 20;

class Scan {
 public:
  explicit Scan(CensusFacts& facts) : facts_(facts) {}

  Result<void> run() {
    for (GroupNumber group = 0; group < facts_.layout.groups(); ++group) {
      if (const Result<void> done = take_inodes(group); !done) return done;
    }
    check_attribute_counts();
    if (facts_.options.keep != nullptr) {
      facts_.options.keep->owners.sort();
      facts_.options.keep->attributes.sort();
    }
    return {};
  }

 private:
  // What an inode claims of others' blocks is two findings at most, however much it is.
  struct Claims {
    Finding twice{.code = Code::kClaimedTwice};
    Finding structures{.code = Code::kClaimsStructure};
  };

  void claim(Claims& claims, InodeNumber inode, FsBlock block) {
    if (facts_.use(block)) return;
    const bool data = facts_.layout.place_of(block).kind == ExtLayout::Kind::kData;
    // What is reserved for group descriptors is a file, too.
    if (!data && inode == EXT2_RESIZE_INO) return;
    Finding& finding = data ? claims.twice : claims.structures;
    if (finding.found++ > 0) return;
    finding.inode = inode;
    finding.block = block;
  }

  Result<void> take_inodes(GroupNumber group) {
    const std::uint32_t end = facts_.table_end(group);
    const auto at_once = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(kBytesAtOnce / facts_.layout.inode_bytes(), 1));
    std::vector<std::byte> bytes;
    for (std::uint32_t from = 0; from < end; from += at_once) {
      const std::uint32_t count = std::min(at_once, end - from);
      const InodeNumber first = group * facts_.layout.inodes_per_group() + from + 1;
      bytes.resize(std::size_t{count} * facts_.layout.inode_bytes());
      const ByteRange range{facts_.layout.inode_place(first).offset, bytes.size()};
      if (const Result<void> read = facts_.volume.view().read(range, bytes); !read) return read;
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto one = std::span(bytes).subspan(std::size_t{i} * facts_.layout.inode_bytes(),
                                                  facts_.layout.inode_bytes());
        if (const Result<void> done = take_inode(first + i, one); !done) return done;
      }
      if (facts_.options.progress)
        facts_.options.progress(first + count - 1, facts_.layout.inodes());
    }
    return {};
  }

  Result<void> take_inode(InodeNumber number, std::span<std::byte> bytes) {
    const bool follow = mapped_ <= 2 * facts_.layout.blocks();
    auto checked = check_inode(facts_, number, bytes, follow);
    if (!checked) return checked.error();
    for (const Finding& each : checked->findings) facts_.add(each);
    mapped_ += checked->map.blocks();
    facts_.kinds[number] = checked->kind;
    facts_.links[number] = checked->links;
    facts_.census.inodes_in_use += checked->counted ? 1 : 0;
    Claims claims;
    checked->for_each_claim([&](FsBlock block) { claim(claims, number, block); });
    if (checked->attributes != 0) {
      const auto done = take_attributes(claims, number, checked->attributes);
      if (!done) return done;
    }
    for (const Finding& each : {claims.twice, claims.structures}) {
      if (each.found > 0) facts_.add(each);
    }
    keep_owned(number, *checked);
    if (checked->directory) {
      ++facts_.census.directories;
      facts_.directories[number] = {
          .map = std::move(checked->map), .inlined = checked->inlined, .indexed = checked->indexed};
    }
    return {};
  }

  void keep_owned(InodeNumber number, const CheckedInode& checked) {
    if (facts_.options.keep == nullptr) return;
    for_each_owned(checked, [&](FsBlock block) { facts_.options.keep->owners.add(block, number); });
  }

  // Inodes may share them.
  Result<void> take_attributes(Claims& claims, InodeNumber number, FsBlock block) {
    if (const auto known = attributes_.find(block); known != attributes_.end()) {
      ++known->second.inodes;
      return {};
    }
    claim(claims, number, block);
    const auto checked = check_attributes(facts_, number, block);
    if (!checked) return checked.error();
    if (!checked->good) {
      facts_.add({.code = Code::kAttributes, .inode = number, .block = block});
    }
    attributes_[block] = {1, *checked};
    return {};
  }

  void check_attribute_counts() {
    for (const auto& [block, each] : attributes_) {
      if (facts_.options.keep != nullptr) {
        facts_.options.keep->attributes.add(block, each.inodes);
      }
      if (!each.checked.good || each.inodes == each.checked.inodes) continue;
      facts_.add({.code = Code::kAttributeCount,
                  .block = block,
                  .expected = each.inodes,
                  .found = each.checked.inodes});
    }
  }

  struct Attributes {
    std::uint32_t inodes = 0;
    CheckedAttributes checked;
  };

  CensusFacts& facts_;
  std::unordered_map<FsBlock, Attributes> attributes_;
  std::uint64_t mapped_ = 0;  // blocks, however often each
};

}  // namespace

Result<void> scan_inodes(CensusFacts& facts) { return Scan(facts).run(); }

}  // namespace mariner::ifsck
