#include "ifsck/map_writer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ifsck/ext_checksum.h"
#include "ifsck/ext_inode.h"
#include "ifsck/extent_node.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

constexpr std::size_t kDirectBlocks = 12;

using Run = BlockMap::Run;
using Node = BlockMap::Node;

class Writer {
 public:
  Writer(MendWork& work, InodeNumber number, std::span<std::byte> inode, std::span<const Run> runs,
         std::span<const Node> nodes)
      : work_(work),
        root_(inode.subspan(InodeAt::kMap, InodeAt::kMapBytes)),
        runs_(runs.begin(), runs.end()),
        extents_(ExtInode(inode).has_extents()),
        seed_(ext_inode_seed(work.context().fs->csum_seed, number,
                             load_le<std::uint32_t>(inode.data() + InodeAt::kGeneration))) {
    for (const Node& each : nodes) {
      spare_.insert(each.block);
      places_.emplace(std::pair{each.height, each.logical}, each.block);
    }
  }

  Result<void> run() { return extents_ ? write_extents() : write_numbers(); }

 private:
  // ---- blocks for nodes

  Result<std::optional<FsBlock>> block_for(std::uint8_t height, std::uint64_t logical) {
    const auto same = places_.find({height, logical});
    if (same != places_.end() && spare_.erase(same->second) > 0) {
      return std::optional<FsBlock>(same->second);
    }
    // Numbers keep their nodes where these are: those that are left others will ask for.
    if (!extents_ || spare_.empty()) {
      const auto block = work_.allocate(extents_ ? ~FsBlock{0} : kNumbersEnd);
      if (!block || *block || spare_.empty()) return block;
    }
    const FsBlock block = *spare_.rbegin();
    spare_.erase(block);
    return std::optional<FsBlock>(block);
  }

  // ---- numbers

  [[nodiscard]] std::uint64_t below(std::uint8_t height) const {
    std::uint64_t blocks = 1;
    for (; height > 0; --height) blocks *= work_.layout().block_bytes() / 4;
    return blocks;
  }

  // The first run that ends behind a logical block.
  [[nodiscard]] std::vector<Run>::const_iterator find(std::uint64_t logical) const {
    return std::ranges::lower_bound(runs_, logical, {},
                                    [](const Run& run) { return run.logical + run.count - 1; });
  }

  Result<std::uint32_t> number_for(std::uint8_t height, std::uint64_t logical) {
    const auto run = find(logical);
    if (run == runs_.end() || run->logical >= logical + below(height)) return 0u;
    if (height == 0) return static_cast<std::uint32_t>(run->physical + (logical - run->logical));
    const auto block = block_for(height, logical);
    if (!block) return block.error();
    if (!*block) return 0u;
    std::vector<std::byte> bytes(work_.layout().block_bytes());
    const std::uint64_t each = below(height - 1);
    for (std::size_t i = 0; i < bytes.size() / 4; ++i) {
      const auto number = number_for(height - 1, logical + i * each);
      if (!number) return number.error();
      store_le(bytes.data() + 4 * i, *number);
    }
    if (const auto done = work_.put_block(**block, bytes); !done) return done.error();
    return static_cast<std::uint32_t>(**block);
  }

  Result<void> write_numbers() {
    std::uint64_t logical = 0;
    for (std::size_t i = 0; i < EXT2_N_BLOCKS; ++i) {
      const auto height = static_cast<std::uint8_t>(i < kDirectBlocks ? 0 : i - kDirectBlocks + 1);
      const auto number = number_for(height, logical);
      if (!number) return number.error();
      store_le(root_.data() + 4 * i, *number);
      logical += below(height);
    }
    return {};
  }

  // ---- extents

  // One level of nodes, and what points to them.
  Result<std::vector<ExtentEntry>> write_level(std::span<const ExtentEntry> entries,
                                               std::uint8_t height) {
    std::vector<ExtentEntry> above;
    const std::size_t most = extents_max(work_.layout().block_bytes());
    for (std::size_t from = 0; from < entries.size(); from += most) {
      const auto some = entries.subspan(from, std::min(most, entries.size() - from));
      const auto block = block_for(height + 1, some.front().logical);
      if (!block) return block.error();
      if (!*block) break;
      std::vector<std::byte> bytes(work_.layout().block_bytes());
      put_extent_node(bytes, some, height);
      if (work_.context().checksums) {
        const std::size_t tail = kExtentHeadBytes + most * kExtentEntryBytes;
        store_le(bytes.data() + tail, ext_crc(seed_, std::span(bytes).first(tail)));
      }
      if (const auto done = work_.put_block(**block, bytes); !done) return done.error();
      above.push_back({some.front().logical, **block});
    }
    return above;
  }

  Result<void> write_extents() {
    std::vector<ExtentEntry> entries;
    for (const Run& run : runs_) add_extents(run, entries);
    std::uint8_t height = 0;
    for (; entries.size() > extents_max(root_.size()); ++height) {
      auto above = write_level(entries, height);
      if (!above) return above.error();
      entries = std::move(*above);
    }
    std::ranges::fill(root_, std::byte{});
    put_extent_node(root_, entries, entries.empty() ? 0 : height);
    return {};
  }

  MendWork& work_;
  const std::span<std::byte> root_;
  const std::vector<Run> runs_;
  const bool extents_;
  const std::uint32_t seed_;
  std::set<FsBlock> spare_;
  std::map<std::pair<std::uint8_t, std::uint64_t>, FsBlock> places_;
};

}  // namespace

Result<void> write_map(MendWork& work, InodeNumber number, std::span<std::byte> inode,
                       std::span<const BlockMap::Run> runs, std::span<const BlockMap::Node> nodes) {
  return Writer(work, number, inode, runs, nodes).run();
}

}  // namespace mariner::ifsck
