// Where an ext2, ext3 or ext4 file system has what: its geometry, and what a block is by its place
// alone.
//
// Only superblock and group descriptors are looked at, once. What is in the data area (directories,
// indirect blocks, extent nodes, files) only the inodes can tell.
#pragma once

#include <algorithm>
#include <array>
#include <boost/container/vector.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ifsck/ext_volume.h"
#include "ifsck/group_descriptors.h"
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

  // Calls `visit(begin, end)` for the stretches of [first, end) that are not kData, in order. Each
  // is of one kind, and may be of several groups.
  template <typename Visit>
  void for_each_structure(FsBlock first, FsBlock end, Visit visit) const {
    const Areas& areas = structures_->areas;
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
  // Of one group, or of several in a row that have each as much, one behind the other.
  struct Area {
    FsBlock begin;
    FsBlock end;
    Kind kind;
    GroupNumber group;  // the first
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
  using Areas = boost::container::vector<Area>;  // whose room is not written beforehand
  struct Structures {
    Told told;
    std::vector<std::byte> descriptors;  // as they were, with all that they say
    std::size_t descriptor_bytes = 0;    // of one
    bool wide = false;                   // as places_in() has it
    std::uint32_t table_blocks = 0;      // of inodes, of a group
    Areas areas;                         // ascending, without overlap

    [[nodiscard]] GroupPlaces places_of(GroupNumber group) const {
      return places_in(descriptors, group, descriptor_bytes, wide);
    }
    // Of those in an area that have blocks before this one.
    [[nodiscard]] GroupNumber groups_before(const Area& area, FsBlock block) const;
  };

  ExtLayout() = default;
  // Groups that may have a copy of the superblock: there are not many.
  static std::vector<GroupNumber> copies_of(ext2_filsys fs);
  static Told told_of(ext2_filsys fs);
  static bool has(ext2_filsys fs, const Structures& structures);
  static Result<Areas> areas_of(ext2_filsys fs, const Size& size, const Structures& structures);
  // Puts them in order, if they are not. kCorrupt: one is where it cannot be, or two are in one
  // place.
  static Result<void> place(Areas& areas, const Size& size, const Structures& structures);

  Size size_;
  std::shared_ptr<const Structures> structures_;
};

[[nodiscard]] std::string_view describe(ExtLayout::Kind kind);

}  // namespace mariner::ifsck
