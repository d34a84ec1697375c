#include "ifsck/block_map.h"

#include <algorithm>
#include <unordered_set>

#include "ifsck/ext_checksum.h"
#include "ifsck/ext_inode.h"
#include "ifsck/extent_node.h"
#include "proto/check.h"
#include "proto/field.h"

namespace mariner::ifsck {
namespace {

using What = BlockMap::Fault::What;

constexpr std::size_t kDirect = 12;
constexpr int kHeightMax = 5;  // EXT4_MAX_EXTENT_DEPTH
constexpr std::uint64_t kLogicalMax = 1ULL << 32;

class Mapper {
 public:
  Mapper(View& view, ext2_filsys fs, const ExtLayout& layout, InodeNumber number, InodeBytes inode)
      : view_(view),
        layout_(layout),
        inode_(inode),
        resize_(number == EXT2_RESIZE_INO),
        extents_((field<std::uint32_t>(inode, InodeAt::kFlags) & EXT4_EXTENTS_FL) != 0),
        checks_(ext2fs_has_feature_metadata_csum(fs->super)),
        seed_(ext_inode_seed(fs->csum_seed, number,
                             field<std::uint32_t>(inode, InodeAt::kGeneration))) {}

  Result<BlockMap> map() {
    if (extents_) {
      take_extents(inode_.subspan(InodeAt::kMap, InodeAt::kMapBytes),
                   {.height = -1, .end = kLogicalMax});
    } else {
      take_numbers_of_inode();
    }
    while (!waiting_.empty() && !full_) {
      if (const Result<void> done = take_level(); !done) return done.error();
    }
    std::ranges::stable_sort(map_.runs, {}, &BlockMap::Run::logical);
    return std::move(map_);
  }

 private:
  // A node that is to be read: what is expected of it.
  struct Waiting {
    FsBlock block = 0;
    int height = 0;  // -1: the root, of any
    std::uint64_t logical = 0;
    std::uint64_t end = 0;  // of what it may describe
  };

  void fault(What what, FsBlock at, std::uint64_t logical, FsBlock block) {
    map_.faults.push_back({what, at, logical, block});
  }

  // No more than the file system has.
  bool count(std::uint64_t blocks, FsBlock at, std::uint64_t logical) {
    counted_ += blocks;
    if (counted_ <= layout_.blocks()) return true;
    if (!full_) fault(What::kTooMany, at, logical, 0);
    full_ = true;
    return false;
  }

  void add_run(FsBlock at, const BlockMap::Run& run) {
    if (!layout_.may_claim(run.physical) || !layout_.may_claim(run.physical + run.count - 1)) {
      return fault(What::kOutside, at, run.logical, run.physical);
    }
    if (!count(run.count, at, run.logical)) return;
    if (!map_.runs.empty()) {
      BlockMap::Run& last = map_.runs.back();
      if (last.logical + last.count == run.logical && last.physical + last.count == run.physical &&
          last.unwritten == run.unwritten) {
        last.count += run.count;
        return;
      }
    }
    map_.runs.push_back(run);
  }

  void add_node(FsBlock at, const Waiting& node) {
    // (What is reserved for group descriptors describes blocks, too.)
    if (!layout_.may_claim(node.block) ||
        (!resize_ && layout_.place_of(node.block).kind != ExtLayout::Kind::kData)) {
      return fault(What::kOutside, at, node.logical, node.block);
    }
    if (!seen_.insert(node.block).second) {
      return fault(What::kRepeated, at, node.logical, node.block);
    }
    if (!count(1, at, node.logical)) return;
    map_.nodes.push_back(
        {node.block, static_cast<std::uint8_t>(node.height + (extents_ ? 1 : 0)), node.logical});
    waiting_.push_back(node);
  }

  Result<void> take_level() {
    const std::vector<Waiting> level = std::exchange(waiting_, {});
    std::vector<Lbn> blocks;
    for (const Waiting& each : level) {
      const BlockRange range = layout_.bytes_of(each.block).covering_blocks();
      for (Lbn lbn = range.first; lbn < range.end(); lbn = lbn + BlockCount{1}) {
        blocks.push_back(lbn);
      }
    }
    if (const Result<void> fetched = view_.prefetch(blocks); !fetched) return fetched;
    std::vector<std::byte> bytes(layout_.block_bytes());
    for (const Waiting& each : level) {
      const auto read = view_.read(layout_.bytes_of(each.block), bytes);
      if (!read) return read;
      if (extents_) {
        take_extents(bytes, each);
      } else {
        take_numbers(bytes, each);
      }
      if (full_) break;
    }
    return {};
  }

  // ---- numbers of blocks

  // How many blocks a number on so many levels stands for.
  [[nodiscard]] std::uint64_t below(int height) const {
    std::uint64_t blocks = 1;
    for (; height > 0; --height) blocks *= layout_.block_bytes() / 4;
    return blocks;
  }

  void take_number(FsBlock at, FsBlock block, int height, std::uint64_t logical) {
    if (block == 0) return;
    if (height == 0) return add_run(at, {logical, block, 1, false});
    add_node(at, {block, height, logical, logical + below(height)});
  }

  void take_numbers_of_inode() {
    std::uint64_t logical = 0;
    for (std::size_t i = 0; i < EXT2_N_BLOCKS && !full_; ++i) {
      const int height = i < kDirect ? 0 : static_cast<int>(i - kDirect + 1);
      take_number(0, field<std::uint32_t>(inode_, InodeAt::kMap + 4 * i), height, logical);
      logical += below(height);
    }
  }

  void take_numbers(std::span<const std::byte> bytes, const Waiting& node) {
    const std::uint64_t each = below(node.height - 1);
    for (std::size_t i = 0; i < bytes.size() / 4 && !full_; ++i) {
      take_number(node.block, field<std::uint32_t>(bytes, 4 * i), node.height - 1,
                  node.logical + i * each);
    }
  }

  // ---- extents

  [[nodiscard]] bool is_checked(std::span<const std::byte> bytes, std::size_t most) const {
    const std::size_t tail = kExtentHeadBytes + most * kExtentEntryBytes;
    return tail + 4 <= bytes.size() &&
           ext_crc(seed_, bytes.first(tail)) == field<std::uint32_t>(bytes, tail);
  }

  void take_extents(std::span<const std::byte> bytes, const Waiting& node) {
    const auto entries = field<std::uint16_t>(bytes, 2);
    const auto most = field<std::uint16_t>(bytes, 4);
    const int height = field<std::uint16_t>(bytes, 6);
    const bool root = node.height < 0;
    if (field<std::uint16_t>(bytes, 0) != EXT3_EXT_MAGIC || entries > most ||
        kExtentHeadBytes + most * kExtentEntryBytes > bytes.size() ||
        (root ? height > kHeightMax : height != node.height)) {
      return fault(What::kNoNode, node.block, node.logical, node.block);
    }
    if (!root && checks_ && !is_checked(bytes, most)) {
      fault(What::kChecksum, node.block, node.logical, node.block);
    }
    // (An index says where the node below it begins.)
    if (!root && entries > 0 &&
        field<std::uint32_t>(bytes, kExtentHeadBytes) != static_cast<std::uint32_t>(node.logical)) {
      fault(What::kOrder, node.block, node.logical, 0);
    }
    std::uint64_t next = node.logical;
    for (std::size_t i = 0; i < entries && !full_; ++i) {
      const auto entry = bytes.subspan(kExtentHeadBytes + i * kExtentEntryBytes, kExtentEntryBytes);
      const std::uint64_t logical = field<std::uint32_t>(entry, 0);
      if (logical < next || logical >= node.end) {
        fault(What::kOrder, node.block, logical, 0);
        continue;
      }
      if (height == 0) {
        next = take_extent(entry, node, logical);
        continue;
      }
      const FsBlock block =
          field<std::uint32_t>(entry, 4) | (FsBlock{field<std::uint16_t>(entry, 8)} << 32);
      std::uint64_t end = node.end;
      if (i + 1 < entries) {
        end = std::min<std::uint64_t>(
            end, field<std::uint32_t>(bytes, kExtentHeadBytes + (i + 1) * kExtentEntryBytes));
      }
      add_node(node.block, {block, height - 1, logical, end});
      next = logical + 1;
    }
  }

  // The end of what it describes.
  std::uint64_t take_extent(std::span<const std::byte> entry, const Waiting& node,
                            std::uint64_t logical) {
    const auto stored = field<std::uint16_t>(entry, 4);
    const bool unwritten = stored > EXT_INIT_MAX_LEN;
    const std::uint64_t count = unwritten ? stored - EXT_INIT_MAX_LEN : stored;
    const FsBlock physical =
        field<std::uint32_t>(entry, 8) | (FsBlock{field<std::uint16_t>(entry, 6)} << 32);
    if (count == 0 || logical + count > kLogicalMax) {
      fault(What::kEmpty, node.block, logical, physical);
      return logical + 1;
    }
    if (logical + count > node.end) fault(What::kOrder, node.block, logical, physical);
    add_run(node.block, {logical, physical, count, unwritten});
    return logical + count;
  }

  View& view_;
  const ExtLayout& layout_;
  const InodeBytes inode_;
  const bool resize_;
  const bool extents_;
  const bool checks_;
  const std::uint32_t seed_;
  BlockMap map_;
  std::vector<Waiting> waiting_;
  std::unordered_set<FsBlock> seen_;
  std::uint64_t counted_ = 0;
  bool full_ = false;
};

}  // namespace

std::uint64_t BlockMap::blocks() const {
  std::uint64_t all = nodes.size();
  for (const Run& each : runs) all += each.count;
  return all;
}

bool has_block_map(InodeBytes inode) {
  const auto mode = field<std::uint16_t>(inode, InodeAt::kMode);
  const auto flags = field<std::uint32_t>(inode, InodeAt::kFlags);
  if ((flags & EXT4_INLINE_DATA_FL) != 0) return false;
  if (LINUX_S_ISREG(mode) || LINUX_S_ISDIR(mode)) return true;
  if (!LINUX_S_ISLNK(mode)) return false;
  // A short link has its target where the blocks would be (ext2fs_is_fast_symlink()).
  return (flags & EXT4_EXTENTS_FL) != 0 ||
         field<std::uint32_t>(inode, InodeAt::kSize) >= InodeAt::kMapBytes;
}

Result<BlockMap> map_blocks(const ExtVolume& volume, const ExtLayout& layout, InodeNumber number,
                            InodeBytes inode) {
  return map_blocks(volume.view(), volume, layout, number, inode);
}

Result<BlockMap> map_blocks(View& moment, const ExtVolume& volume, const ExtLayout& layout,
                            InodeNumber number, InodeBytes inode) {
  CHECK(inode.size() >= EXT2_GOOD_OLD_INODE_SIZE);
  return Mapper(moment, volume.fs(), layout, number, inode).map();
}

}  // namespace mariner::ifsck
