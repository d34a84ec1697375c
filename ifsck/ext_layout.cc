#include "ifsck/ext_layout.h"

#include <fmt/format.h>

#include <algorithm>

namespace mariner::ifsck {
namespace {

Error corrupt(std::string what) { return {ErrorCode::kCorrupt, "ext2/3/4: " + std::move(what)}; }

}  // namespace

std::string_view describe(ExtLayout::Kind kind) {
  switch (kind) {
    case ExtLayout::Kind::kSuperblock: return "superblock";
    case ExtLayout::Kind::kGroupDescriptors: return "group descriptors";
    case ExtLayout::Kind::kBlockBitmap: return "block bitmap";
    case ExtLayout::Kind::kInodeBitmap: return "inode bitmap";
    case ExtLayout::Kind::kInodeTable: return "inode table";
    case ExtLayout::Kind::kData: break;
  }
  return "data";
}

Result<ExtLayout> ExtLayout::of(const ExtVolume& volume) {
  const ext2_filsys fs = volume.fs();
  const ext2_super_block& super = *fs->super;
  ExtLayout layout;
  layout.block_bytes_ = fs->blocksize;
  layout.inode_bytes_ = EXT2_INODE_SIZE(fs->super);
  layout.inodes_per_group_ = super.s_inodes_per_group;
  layout.blocks_per_group_ = super.s_blocks_per_group;
  layout.first_block_ = super.s_first_data_block;
  layout.blocks_ = ext2fs_blocks_count(fs->super);
  layout.groups_ = fs->group_desc_count;
  layout.inodes_ = super.s_inodes_count;
  const std::uint64_t size = volume.view().size_bytes();
  if (layout.blocks_ > size / layout.block_bytes_) {
    return corrupt(fmt::format("it has {} blocks of {} bytes, in a volume of {} bytes",
                               layout.blocks_, layout.block_bytes_, size));
  }
  if (layout.inodes_ != std::uint64_t{layout.inodes_per_group_} * layout.groups_) {
    return corrupt(fmt::format("it has {} inodes, and {} groups of {}", layout.inodes_,
                               layout.groups_, layout.inodes_per_group_));
  }
  for (GroupNumber group = 0; group < layout.groups_; ++group) {
    blk64_t super_at = 0;
    blk64_t old_at = 0;
    blk64_t new_at = 0;
    blk_t used = 0;
    if (const errcode_t error =
            ext2fs_super_and_bgd_loc2(fs, group, &super_at, &old_at, &new_at, &used)) {
      return corrupt(ext_error_text(error));
    }
    const FsBlock table = ext2fs_inode_table_loc(fs, group);
    const FsBlock old_blocks = ext2fs_has_feature_meta_bg(fs->super)
                                   ? super.s_first_meta_bg
                                   : FsBlock{fs->desc_blocks} + super.s_reserved_gdt_blocks;
    layout.inode_tables_.push_back(table);
    std::vector<Area> areas;
    if (super_at != 0 || group == 0) {
      areas.push_back({super_at, super_at + 1, Kind::kSuperblock, group});
    }
    if (group == 0 && super_at == 1) areas.push_back({0, 1, Kind::kSuperblock, group});
    if (old_at != 0) areas.push_back({old_at, old_at + old_blocks, Kind::kGroupDescriptors, group});
    if (new_at != 0) areas.push_back({new_at, new_at + 1, Kind::kGroupDescriptors, group});
    const FsBlock block_bitmap = ext2fs_block_bitmap_loc(fs, group);
    const FsBlock inode_bitmap = ext2fs_inode_bitmap_loc(fs, group);
    areas.push_back({block_bitmap, block_bitmap + 1, Kind::kBlockBitmap, group});
    areas.push_back({inode_bitmap, inode_bitmap + 1, Kind::kInodeBitmap, group});
    areas.push_back({table, table + fs->inode_blocks_per_group, Kind::kInodeTable, group});
    for (const Area& each : areas) {
      if (const Result<void> added = layout.add(each); !added) return added.error();
    }
  }
  if (const Result<void> sorted = layout.sort_areas(); !sorted) return sorted.error();
  return layout;
}

Result<void> ExtLayout::add(const Area& area) {
  if (area.begin >= area.end) return {};
  const bool has_place = area.kind == Kind::kSuperblock || area.begin > first_block_;
  if (!has_place || area.end > blocks_) {
    return corrupt(fmt::format("the {} of group {} would be blocks {} to {}, of {}",
                               describe(area.kind), area.group, area.begin, area.end, blocks_));
  }
  areas_.push_back(area);
  return {};
}

Result<void> ExtLayout::sort_areas() {
  // (Without flex_bg they come in order.)
  if (!std::ranges::is_sorted(areas_, {}, &Area::begin)) {
    std::ranges::sort(areas_, {}, &Area::begin);
  }
  for (std::size_t i = 1; i < areas_.size(); ++i) {
    const Area& one = areas_[i - 1];
    const Area& other = areas_[i];
    if (one.end <= other.begin) continue;
    return corrupt(fmt::format("the {} of group {} and the {} of group {} overlap at block {}",
                               describe(one.kind), one.group, describe(other.kind), other.group,
                               other.begin));
  }
  return {};
}

ExtLayout::Place ExtLayout::place_of(FsBlock block) const {
  const auto after = std::ranges::upper_bound(areas_, block, {}, &Area::begin);
  if (after == areas_.begin() || std::prev(after)->end <= block) {
    const FsBlock from = std::max(block, first_block_) - first_block_;
    const FsBlock group = std::min<FsBlock>(from / blocks_per_group_, groups_ - 1);
    return {Kind::kData, static_cast<GroupNumber>(group), 0};
  }
  const Area& area = *std::prev(after);
  Place place{area.kind, area.group, 0};
  if (area.kind == Kind::kInodeTable) {
    const FsBlock inodes_before = (block - area.begin) * (block_bytes_ / inode_bytes_);
    place.first_inode =
        area.group * inodes_per_group_ + static_cast<InodeNumber>(inodes_before) + 1;
  }
  return place;
}

std::pair<FsBlock, FsBlock> ExtLayout::within(const BlockRange& range) const {
  const ByteRange bytes = to_bytes(range);
  const FsBlock end = (bytes.end() + block_bytes_ - 1) / block_bytes_;
  return {std::min<FsBlock>(bytes.offset / block_bytes_, blocks_), std::min(end, blocks_)};
}

ByteRange ExtLayout::inode_place(InodeNumber inode) const {
  const InodeNumber index = (inode - 1) % inodes_per_group_;
  return {inode_tables_[group_of(inode)] * block_bytes_ + std::uint64_t{index} * inode_bytes_,
          inode_bytes_};
}

}  // namespace mariner::ifsck
