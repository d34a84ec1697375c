// Where an ext2, ext3 or ext4 file system has what: its geometry, and what a block is by its place
// alone.
//
// Only superblock and group descriptors are looked at, once. What is in the data area (directories,
// indirect blocks, extent nodes, files) only the inodes can tell.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
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
  // `like`: maybe the same, as at another moment; what both have alike is there once. Null: none.
  [[nodiscard]] static Result<ExtLayout> of(const ExtVolume& volume,
                                            const ExtLayout* like = nullptr);

  friend bool operator==(const ExtLayout& one, const ExtLayout& other) {
    return one.size_ == other.size_ && (one.structures_ == other.structures_ ||
                                        one.structures_->areas == other.structures_->areas);
  }

  // kData behind the file system's end, too.
  [[nodiscard]] Place place_of(FsBlock block) const;

  // Calls `visit(begin, end)` for the stretches of [first, end) that are not kData, in order.
  template <typename Visit>
  void for_each_structure(FsBlock first, FsBlock end, Visit visit) const {
    const std::vector<Area>& areas = structures_->areas;
    auto area = std::ranges::upper_bound(areas, first, {}, &Area::end);
    for (; area != areas.end() && area->begin < end; ++area) {
      visit(std::max(area->begin, first), std::min(area->end, end));
    }
  }

  [[nodiscard]] std::uint32_t block_bytes() const { return size_.block_bytes; }
  [[nodiscard]] FsBlock blocks() const { return size_.blocks; }
  // Blocks of the file system that lie, at least in part, in a range of the volume's.
  [[nodiscard]] std::pair<FsBlock, FsBlock> within(const BlockRange& range) const;
  [[nodiscard]] ByteRange bytes_of(FsBlock block) const {
    return {block * size_.block_bytes, size_.block_bytes};
  }
  // Where data blocks, and those that describe them, may lie.
  [[nodiscard]] bool may_claim(FsBlock block) const {
    return block > size_.first_block && block < size_.blocks;
  }

  [[nodiscard]] GroupNumber groups() const { return size_.groups; }
  [[nodiscard]] InodeNumber inodes() const { return size_.inodes; }
  [[nodiscard]] std::uint32_t inode_bytes() const { return size_.inode_bytes; }
  [[nodiscard]] std::uint32_t inodes_per_group() const { return size_.inodes_per_group; }
  [[nodiscard]] GroupNumber group_of(InodeNumber inode) const {
    return (inode - 1) / size_.inodes_per_group;
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

  struct Size {
    std::uint32_t block_bytes = 0;
    std::uint32_t inode_bytes = 0;
    std::uint32_t inodes_per_group = 0;
    std::uint32_t blocks_per_group = 0;
    FsBlock first_block = 0;
    FsBlock blocks = 0;
    GroupNumber groups = 0;
    InodeNumber inodes = 0;
    friend bool operator==(const Size&, const Size&) = default;
  };
  // What says where everything is.
  struct Told {
    std::uint32_t compat = 0;
    std::uint32_t incompat = 0;
    std::uint32_t ro_compat = 0;
    std::uint32_t first_meta_group = 0;
    std::uint32_t descriptor_blocks = 0;
    std::uint32_t reserved_descriptor_blocks = 0;
    std::array<std::uint32_t, 2> copies{};
    friend bool operator==(const Told&, const Told&) = default;
  };
  struct Group {
    FsBlock block_bitmap = 0;
    FsBlock inode_bitmap = 0;
    FsBlock inode_table = 0;
    friend bool operator==(const Group&, const Group&) = default;
  };
  struct Structures {
    Told told;
    std::vector<std::byte> descriptors;  // as they were, with all that they say
    std::vector<Group> groups;
    std::vector<Area> areas;  // ascending, without overlap
  };

  ExtLayout() = default;
  static Told told_of(ext2_filsys fs);
  static Group places_of(ext2_filsys fs, GroupNumber group);
  static bool has(ext2_filsys fs, const Structures& structures);
  static Result<std::vector<Area>> areas_of(ext2_filsys fs, const Size& size,
                                            const Structures& structures);

  Size size_;
  std::shared_ptr<const Structures> structures_;
};

[[nodiscard]] std::string_view describe(ExtLayout::Kind kind);

}  // namespace mariner::ifsck
