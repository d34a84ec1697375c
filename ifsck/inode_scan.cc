#include "ifsck/inode_scan.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ifsck/ext_inode.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

constexpr std::uint64_t kSectorBytes = 512;
// Of an inode table, asked for at a time.
constexpr std::uint64_t kBytesAtOnce = 4u << 20;
constexpr std::uint32_t kAttributesMagic = 0xEA020000;

// Its times are not as small as its inodes' numbers, as they are when a clock has no battery.
bool knows_time(const ext2_super_block& super) {
  return super.s_wtime >= super.s_inodes_count && super.s_mkfs_time >= super.s_inodes_count &&
         (super.s_mtime == 0 || super.s_mtime >= super.s_inodes_count);
}

class Scan {
 public:
  explicit Scan(CensusFacts& facts) : facts_(facts) {}

  Result<void> run() {
    for (GroupNumber group = 0; group < facts_.layout.groups(); ++group) {
      if (const Result<void> done = take_inodes(group); !done) return done;
    }
    check_attribute_counts();
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

  // How many of the group's inodes were ever used.
  [[nodiscard]] std::uint32_t table_end(GroupNumber group) const {
    if (facts_.is_uninitialized(group, EXT2_BG_INODE_UNINIT)) return 0;
    if (ext2fs_has_group_desc_csum(facts_.fs) == 0) return facts_.layout.inodes_per_group();
    return facts_.layout.inodes_per_group() -
           std::min(facts_.layout.inodes_per_group(), ext2fs_bg_itable_unused(facts_.fs, group));
  }

  Result<void> take_inodes(GroupNumber group) {
    const std::uint32_t end = table_end(group);
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
    const ExtInode inode(bytes);
    const bool reserved = facts_.is_reserved(number);
    // A small time of deletion is the number of the next orphan: it was not taken off their list.
    if (inode.deleted_at() != 0 && inode.deleted_at() < orphans_below_) {
      facts_.add({.code = Code::kInodeDeleted, .inode = number, .found = inode.links()});
    }
    if (inode.links() == 0 && !reserved) {
      if (inode.mode() != 0 && inode.deleted_at() == 0) {
        facts_.add({.code = Code::kInodeDeleted, .inode = number});
      }
      return {};
    }
    if (facts_.checksums &&
        std::ranges::any_of(bytes, [](std::byte each) { return each != std::byte{}; }) &&
        ext2fs_inode_csum_verify(facts_.fs, number,
                                 reinterpret_cast<ext2_inode_large*>(bytes.data())) == 0) {
      facts_.add({.code = Code::kInodeChecksum, .inode = number});
    }
    if (reserved && inode.mode() == 0 && number != EXT2_BAD_INO) return {};
    const std::uint16_t extra = inode.extra_bytes();
    const bool extra_is_good =
        extra == 0 || (extra >= 4 && extra % 4 == 0 && extra <= facts_.layout.inode_bytes() - 128);
    if (inode.has_fragment() || !extra_is_good)
      facts_.add({.code = Code::kInodeFields, .inode = number});
    if (inode.links() > 0 && inode.deleted_at() != 0) {
      facts_.add({.code = Code::kInodeDeleted, .inode = number, .found = 1});
    }
    if (!reserved || inode.links() > 0) {
      facts_.kinds[number] = inode.type() != 0 ? inode.type() : CensusFacts::kStrange;
      facts_.links[number] = inode.links();
    }
    if (!reserved) {
      ++facts_.census.inodes_in_use;
      if (inode.type() == 0) {
        return facts_.add({.code = Code::kInodeMode, .inode = number, .found = inode.mode()}),
               Result<void>{};
      }
    }
    return take_blocks(number, inode);
  }

  // The first block of an index says how it is made (struct ext2_dx_root_info).
  Result<void> check_index(InodeNumber number, const ExtInode& inode, const BlockMap& map) {
    const Finding bad{.code = Code::kInodeIndex, .inode = number};
    if (!inode.is_directory() || !ext2fs_has_feature_dir_index(facts_.fs->super) ||
        map.runs.empty() || map.runs.front().logical != 0) {
      facts_.add(bad);
      return {};
    }
    auto bytes = facts_.read_block(map.runs.front().physical);
    if (!bytes) return bytes.error();
    const auto at = [&](std::size_t i) { return std::to_integer<unsigned>((*bytes)[24 + i]); };
    const unsigned levels_max = ext2fs_has_feature_largedir(facts_.fs->super) ? 3 : 2;
    const bool good = load_le<std::uint32_t>(bytes->data() + 24) == 0 && at(4) <= EXT2_HASH_TEA &&
                      at(5) == 8 && at(6) < levels_max && (at(7) & 1) == 0;
    if (!good) facts_.add(bad);
    return {};
  }

  Result<void> take_blocks(InodeNumber number, const ExtInode& inode) {
    BlockMap map;
    const bool too_much = mapped_ > 2 * facts_.layout.blocks();
    if (number == EXT2_BAD_INO || has_block_map(inode.bytes())) {
      if (too_much) {
        map.faults.push_back({.what = BlockMap::Fault::What::kTooMany});
      } else {
        auto mapped = map_blocks(facts_.volume, facts_.layout, number, inode.bytes());
        if (!mapped) return mapped.error();
        map = std::move(*mapped);
        mapped_ += map.blocks();
      }
    }
    for (const BlockMap::Fault& each : map.faults) {
      facts_.add({.code = Code::kInodeMap,
                  .inode = number,
                  .block = each.block,
                  .found = static_cast<std::uint64_t>(each.what)});
    }
    Claims claims;
    for (const BlockMap::Run& run : map.runs) {
      for (std::uint64_t i = 0; i < run.count; ++i) claim(claims, number, run.physical + i);
    }
    for (const BlockMap::Node& node : map.nodes) claim(claims, number, node.block);
    if (inode.has_index()) {
      if (const Result<void> done = check_index(number, inode, map); !done) return done;
    }
    std::uint64_t blocks = map.blocks();
    if (inode.attributes() != 0) {
      const auto done = take_attributes(claims, number, inode.attributes());
      if (!done) return done;
      ++blocks;
    }
    for (const Finding& each : {claims.twice, claims.structures}) {
      if (each.found > 0) facts_.add(each);
    }
    if (number == EXT2_BAD_INO) return {};
    const std::uint64_t unit = inode.in_large_blocks() ? facts_.layout.block_bytes() : kSectorBytes;
    const std::uint64_t expected = blocks * facts_.layout.block_bytes() / unit;
    if (map.faults.empty() && inode.blocks() != expected) {
      facts_.add({.code = Code::kInodeBlocks,
                  .inode = number,
                  .expected = expected,
                  .found = inode.blocks()});
    }
    check_size(number, inode, map);
    if (inode.is_directory() && !facts_.is_reserved(number)) {
      ++facts_.census.directories;
      facts_.directories[number] = {.map = std::move(map), .inlined = inode.has_inline_data()};
    }
    return {};
  }

  // What an inode's blocks can hold.
  [[nodiscard]] std::uint64_t size_max(const ExtInode& inode) const {
    const std::uint64_t block = facts_.layout.block_bytes();
    if (inode.has_extents()) return (block << 32) - 1;
    const std::uint64_t numbers = block / 4;
    return (EXT2_NDIR_BLOCKS + numbers + numbers * numbers + numbers * numbers * numbers) * block;
  }

  void check_size(InodeNumber number, const ExtInode& inode, const BlockMap& map) {
    if (inode.type() == EXT2_FT_REG_FILE && inode.size() > size_max(inode)) {
      return facts_.add({.code = Code::kInodeSize,
                         .inode = number,
                         .expected = size_max(inode),
                         .found = inode.size()});
    }
    if (inode.has_inline_data() || map.runs.empty()) return;
    std::uint64_t end = 0;  // of what was written
    for (const BlockMap::Run& run : map.runs) {
      if (!run.unwritten) end = std::max(end, run.logical + run.count);
    }
    if (end == 0) return;
    const bool directory = inode.is_directory();
    const std::uint64_t least =
        directory ? end * facts_.layout.block_bytes() : (end - 1) * facts_.layout.block_bytes();
    const bool good = directory ? inode.size() == least : inode.size() >= least;
    if (good || facts_.is_reserved(number) || inode.type() == EXT2_FT_SYMLINK) return;
    facts_.add(
        {.code = Code::kInodeSize, .inode = number, .expected = least, .found = inode.size()});
  }

  // Inodes may share them.
  Result<void> take_attributes(Claims& claims, InodeNumber number, FsBlock block) {
    if (!facts_.layout.may_claim(block)) {
      facts_.add({.code = Code::kAttributes, .inode = number, .block = block});
      return {};
    }
    if (const auto known = attributes_.find(block); known != attributes_.end()) {
      ++known->second.inodes;
      return {};
    }
    claim(claims, number, block);
    std::vector<std::byte> bytes(facts_.layout.block_bytes());
    const auto read = facts_.volume.view().read(facts_.layout.bytes_of(block), bytes);
    if (!read) return read;
    const bool good =
        load_le<std::uint32_t>(bytes.data()) == kAttributesMagic &&
        (!facts_.checksums ||
         ext2fs_ext_attr_block_csum_verify(
             facts_.fs, number, block, reinterpret_cast<ext2_ext_attr_header*>(bytes.data())) != 0);
    if (!good) facts_.add({.code = Code::kAttributes, .inode = number, .block = block});
    attributes_[block] = {1, load_le<std::uint32_t>(bytes.data() + 4), good};
    return {};
  }

  void check_attribute_counts() {
    for (const auto& [block, each] : attributes_) {
      if (!each.good || each.inodes == each.said) continue;
      facts_.add({.code = Code::kAttributeCount,
                  .block = block,
                  .expected = each.inodes,
                  .found = each.said});
    }
  }

  struct Attributes {
    std::uint32_t inodes = 0;
    std::uint32_t said = 0;
    bool good = false;
  };

  CensusFacts& facts_;
  const std::uint32_t orphans_below_ = knows_time(facts_.super) ? facts_.layout.inodes() : 0;
  std::unordered_map<FsBlock, Attributes> attributes_;
  std::uint64_t mapped_ = 0;  // blocks, however often each
};

}  // namespace

Result<void> scan_inodes(CensusFacts& facts) { return Scan(facts).run(); }

}  // namespace mariner::ifsck
