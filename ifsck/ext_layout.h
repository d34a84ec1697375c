// Where an ext2, ext3 or ext4 file system has what: its geometry, and what a block is by its place
// alone.
//
// Only superblock and group descriptors are looked at, once. What is in the data area (directories,
// indirect blocks, extent nodes, files) only the inodes can tell.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ifsck/ext_volume.h"
#include "proto/error.h"

namespace mariner::ifsck {

// The number of a block of the file system, which need not be 4096 bytes large.
using FsBlock = std::uint64_t;
// From 1 on; 0 is none.
using InodeNumber = std::uint32_t;
using GroupNumber = std::uint32_t;

class ExtLayout {
 public:
  enum class Kind : std::uint8_t {
    kSuperblock,        // or a copy of it; with blocks of 1 KiB: the boot block, too
    kGroupDescriptors,  // or a copy, or what is reserved for more
    kBlockBitmap,
    kInodeBitmap,
    kInodeTable,
    kData,  // what inodes claim, and what is free
  };
  // What a block is by its place.
  struct Place {
    Kind kind = Kind::kData;
    GroupNumber group = 0;        // whose it is; for kData: where it lies
    InodeNumber first_inode = 0;  // kInodeTable: of the inodes in this block
    friend bool operator==(const Place&, const Place&) = default;
  };

  // kCorrupt: numbers that no file system has, or structures that overlap or lie beyond its end.
  [[nodiscard]] static Result<ExtLayout> of(const ExtVolume& volume);

  friend bool operator==(const ExtLayout&, const ExtLayout&) = default;

  // kData behind the file system's end, too.
  [[nodiscard]] Place place_of(FsBlock block) const;

  // Calls `visit(begin, end)` for the stretches of [first, end) that are not kData, in order.
  template <typename Visit>
  void for_each_structure(FsBlock first, FsBlock end, Visit visit) const {
    auto area = std::ranges::upper_bound(areas_, first, {}, &Area::end);
    for (; area != areas_.end() && area->begin < end; ++area) {
      visit(std::max(area->begin, first), std::min(area->end, end));
    }
  }

  [[nodiscard]] std::uint32_t block_bytes() const { return block_bytes_; }
  [[nodiscard]] FsBlock blocks() const { return blocks_; }
  // Blocks of the file system that lie, at least in part, in a range of the volume's.
  [[nodiscard]] std::pair<FsBlock, FsBlock> within(const BlockRange& range) const;
  [[nodiscard]] ByteRange bytes_of(FsBlock block) const {
    return {block * block_bytes_, block_bytes_};
  }
  // Where data blocks, and those that describe them, may lie.
  [[nodiscard]] bool may_claim(FsBlock block) const {
    return block > first_block_ && block < blocks_;
  }

  [[nodiscard]] GroupNumber groups() const { return groups_; }
  [[nodiscard]] InodeNumber inodes() const { return inodes_; }
  [[nodiscard]] std::uint32_t inode_bytes() const { return inode_bytes_; }
  [[nodiscard]] std::uint32_t inodes_per_group() const { return inodes_per_group_; }
  [[nodiscard]] GroupNumber group_of(InodeNumber inode) const {
    return (inode - 1) / inodes_per_group_;
  }
  // Of an inode from 1 to inodes().
  [[nodiscard]] ByteRange inode_place(InodeNumber inode) const;

 private:
  struct Area {
    FsBlock begin = 0;
    FsBlock end = 0;
    Kind kind{};
    GroupNumber group = 0;
    friend bool operator==(const Area&, const Area&) = default;
  };

  ExtLayout() = default;
  Result<void> add(const Area& area);
  Result<void> sort_areas();

  std::uint32_t block_bytes_ = 0;
  std::uint32_t inode_bytes_ = 0;
  std::uint32_t inodes_per_group_ = 0;
  std::uint32_t blocks_per_group_ = 0;
  FsBlock first_block_ = 0;
  FsBlock blocks_ = 0;
  GroupNumber groups_ = 0;
  InodeNumber inodes_ = 0;
  std::vector<FsBlock> inode_tables_;  // by group
  std::vector<Area> areas_;            // ascending, without overlap
};

[[nodiscard]] std::string_view describe(ExtLayout::Kind kind);

}  // namespace mariner::ifsck
