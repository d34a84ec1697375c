#include "ifsck/ext_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ifsck/group_descriptors.h"

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

ExtLayout::Told ExtLayout::told_of(ext2_filsys fs) {
  const ext2_super_block& super = *fs->super;
  return {.compat = super.s_feature_compat,
          .incompat = super.s_feature_incompat,
          .ro_compat = super.s_feature_ro_compat,
          .first_meta_group = super.s_first_meta_bg,
          .descriptor_blocks = static_cast<std::uint32_t>(fs->desc_blocks),
          .reserved_descriptor_blocks = super.s_reserved_gdt_blocks,
          .copies = {super.s_backup_bgs[0], super.s_backup_bgs[1]}};
}

ExtLayout::Group ExtLayout::places_of(ext2_filsys fs, GroupNumber group) {
  return {ext2fs_block_bitmap_loc(fs, group), ext2fs_inode_bitmap_loc(fs, group),
          ext2fs_inode_table_loc(fs, group)};
}

// Its structures stand in the same places.
bool ExtLayout::has(ext2_filsys fs, const Structures& structures) {
  const auto descriptors = descriptors_of(fs);
  if (structures.told != told_of(fs) || structures.descriptors.size() != descriptors.size()) {
    return false;
  }
  bool same = true;
  for_each_other_descriptor(
      structures.descriptors, descriptors, EXT2_DESC_SIZE(fs->super),
      [&](GroupNumber group) { same = same && structures.groups[group] == places_of(fs, group); });
  return same;
}

Result<std::vector<ExtLayout::Area>> ExtLayout::areas_of(ext2_filsys fs, const Size& size,
                                                         const Structures& structures) {
  const Told& told = structures.told;
  std::vector<Area> areas;
  areas.reserve(4 * std::size_t{size.groups});
  std::optional<Area> misplaced;
  const auto add = [&](const Area& area) {
    if (area.begin >= area.end) return;
    const bool has_place = area.kind == Kind::kSuperblock || area.begin > size.first_block;
    if ((!has_place || area.end > size.blocks) && !misplaced) misplaced = area;
    areas.push_back(area);
  };
  const FsBlock old_blocks =
      ext2fs_has_feature_meta_bg(fs->super)
          ? told.first_meta_group
          : FsBlock{told.descriptor_blocks} + told.reserved_descriptor_blocks;
  for (GroupNumber group = 0; group < size.groups; ++group) {
    blk64_t super_at = 0;
    blk64_t old_at = 0;
    blk64_t new_at = 0;
    blk_t used = 0;
    if (const errcode_t error =
            ext2fs_super_and_bgd_loc2(fs, group, &super_at, &old_at, &new_at, &used)) {
      return corrupt(ext_error_text(error));
    }
    if (super_at != 0 || group == 0) add({super_at, super_at + 1, Kind::kSuperblock, group});
    if (group == 0 && super_at == 1) add({0, 1, Kind::kSuperblock, group});
    if (old_at != 0) add({old_at, old_at + old_blocks, Kind::kGroupDescriptors, group});
    if (new_at != 0) add({new_at, new_at + 1, Kind::kGroupDescriptors, group});
    const Group& at = structures.groups[group];
    add({at.block_bitmap, at.block_bitmap + 1, Kind::kBlockBitmap, group});
    add({at.inode_bitmap, at.inode_bitmap + 1, Kind::kInodeBitmap, group});
    add({at.inode_table, at.inode_table + fs->inode_blocks_per_group, Kind::kInodeTable, group});
  }
  if (misplaced) {
    return corrupt(fmt::format("the {} of group {} would be blocks {} to {}, of {}",
                               describe(misplaced->kind), misplaced->group, misplaced->begin,
                               misplaced->end, size.blocks));
  }
  // (Without flex_bg they come in order.)
  if (!std::ranges::is_sorted(areas, {}, &Area::begin)) {
    std::ranges::sort(areas, {}, &Area::begin);
  }
  for (std::size_t i = 1; i < areas.size(); ++i) {
    const Area& one = areas[i - 1];
    const Area& other = areas[i];
    if (one.end <= other.begin) continue;
    return corrupt(fmt::format("the {} of group {} and the {} of group {} overlap at block {}",
                               describe(one.kind), one.group, describe(other.kind), other.group,
                               other.begin));
  }
  return areas;
}

Result<ExtLayout> ExtLayout::of(const ExtVolume& volume, const ExtLayout* like) {
  const ext2_filsys fs = volume.fs();
  const ext2_super_block& super = *fs->super;
  ExtLayout layout;
  layout.size_ = {.block_bytes = fs->blocksize,
                  .inode_bytes = static_cast<std::uint32_t>(EXT2_INODE_SIZE(fs->super)),
                  .inodes_per_group = super.s_inodes_per_group,
                  .blocks_per_group = super.s_blocks_per_group,
                  .first_block = super.s_first_data_block,
                  .blocks = ext2fs_blocks_count(fs->super),
                  .groups = static_cast<GroupNumber>(fs->group_desc_count),
                  .inodes = super.s_inodes_count};
  const Size& mine = layout.size_;
  const std::uint64_t size = volume.view().size_bytes();
  if (mine.blocks > size / mine.block_bytes) {
    return corrupt(fmt::format("it has {} blocks of {} bytes, in a volume of {} bytes", mine.blocks,
                               mine.block_bytes, size));
  }
  if (mine.inodes != std::uint64_t{mine.inodes_per_group} * mine.groups) {
    return corrupt(fmt::format("it has {} inodes, and {} groups of {}", mine.inodes, mine.groups,
                               mine.inodes_per_group));
  }
  if (like != nullptr && like->size_ == mine && has(fs, *like->structures_)) {
    layout.structures_ = like->structures_;
    return layout;
  }
  const auto structures = std::make_shared<Structures>();
  structures->told = told_of(fs);
  const auto descriptors = descriptors_of(fs);
  structures->descriptors.assign(descriptors.begin(), descriptors.end());
  structures->groups.reserve(mine.groups);
  for (GroupNumber group = 0; group < mine.groups; ++group) {
    structures->groups.push_back(places_of(fs, group));
  }
  auto areas = areas_of(fs, mine, *structures);
  if (!areas) return areas.error();
  structures->areas = std::move(*areas);
  layout.structures_ = structures;
  return layout;
}

ExtLayout::Place ExtLayout::place_of(FsBlock block) const {
  const std::vector<Area>& areas = structures_->areas;
  const auto after = std::ranges::upper_bound(areas, block, {}, &Area::begin);
  if (after == areas.begin() || std::prev(after)->end <= block) {
    const FsBlock from = std::max(block, size_.first_block) - size_.first_block;
    const FsBlock group = std::min<FsBlock>(from / size_.blocks_per_group, size_.groups - 1);
    return {Kind::kData, static_cast<GroupNumber>(group), 0};
  }
  const Area& area = *std::prev(after);
  Place place{area.kind, area.group, 0};
  if (area.kind == Kind::kInodeTable) {
    const FsBlock inodes_before = (block - area.begin) * (size_.block_bytes / size_.inode_bytes);
    place.first_inode =
        area.group * size_.inodes_per_group + static_cast<InodeNumber>(inodes_before) + 1;
  }
  return place;
}

std::pair<FsBlock, FsBlock> ExtLayout::within(const BlockRange& range) const {
  const ByteRange bytes = to_bytes(range);
  const FsBlock end = (bytes.end() + size_.block_bytes - 1) / size_.block_bytes;
  return {std::min<FsBlock>(bytes.offset / size_.block_bytes, size_.blocks),
          std::min(end, size_.blocks)};
}

ByteRange ExtLayout::inode_place(InodeNumber inode) const {
  const InodeNumber index = (inode - 1) % size_.inodes_per_group;
  return {structures_->groups[group_of(inode)].inode_table * size_.block_bytes +
              std::uint64_t{index} * size_.inode_bytes,
          size_.inode_bytes};
}

}  // namespace mariner::ifsck
