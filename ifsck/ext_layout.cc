#include "ifsck/ext_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "ifsck/each_once.h"
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

// Its structures stand in the same places.
bool ExtLayout::has(ext2_filsys fs, const Structures& structures) {
  const auto descriptors = descriptors_of(fs);
  const std::size_t each = structures.descriptor_bytes;
  if (structures.told != told_of(fs) || each != EXT2_DESC_SIZE(fs->super) ||
      structures.descriptors.size() != descriptors.size()) {
    return false;
  }
  bool same = true;
  for_each_other_descriptor(structures.descriptors, descriptors, each, [&](GroupNumber group) {
    same =
        same && structures.places_of(group) == places_in(descriptors, group, each, structures.wide);
  });
  return same;
}

GroupNumber ExtLayout::Structures::groups_before(const Area& area, FsBlock block) const {
  switch (area.kind) {
    case Kind::kBlockBitmap:
    case Kind::kInodeBitmap: return static_cast<GroupNumber>(block - area.begin);
    case Kind::kInodeTable: return static_cast<GroupNumber>((block - area.begin) / table_blocks);
    default: return 0;
  }
}

std::vector<GroupNumber> ExtLayout::copies_of(ext2_filsys fs) {
  std::vector<GroupNumber> possible{0};
  const GroupNumber end = fs->group_desc_count;
  if (ext2fs_has_feature_sparse_super2(fs->super) != 0) {
    for (const GroupNumber each : fs->super->s_backup_bgs) possible.push_back(each);
  } else if (ext2fs_has_feature_sparse_super(fs->super) != 0) {
    possible.push_back(1);
    for (const std::uint64_t base : {3, 5, 7}) {
      for (std::uint64_t power = base; power < end; power *= base) {
        possible.push_back(static_cast<GroupNumber>(power));
      }
    }
  } else {
    for (GroupNumber each = 1; each < end; ++each) possible.push_back(each);
  }
  std::erase_if(possible, [&](GroupNumber each) {
    return each >= end || (each != 0 && ext2fs_bg_has_super(fs, each) == 0);
  });
  sort_each_once(possible);
  return possible;
}

Result<ExtLayout::Areas> ExtLayout::areas_of(ext2_filsys fs, const Size& size,
                                             const Structures& structures) {
  const Told& told = structures.told;
  const bool meta_groups = ext2fs_has_feature_meta_bg(fs->super) != 0;
  const FsBlock old_blocks =
      meta_groups ? told.first_meta_group
                  : FsBlock{told.descriptor_blocks} + told.reserved_descriptor_blocks;
  const std::vector<GroupNumber> copies = copies_of(fs);
  Areas areas(3 * std::size_t{size.groups} + 4 * (meta_groups ? size.groups : copies.size()),
              boost::container::default_init);
  std::size_t count_of_all = 0;
  const auto add = [&](FsBlock begin, FsBlock count, Kind kind, GroupNumber group) {
    areas[count_of_all++] = {begin, begin + count, kind, group};
  };
  // With flex_bg, groups have theirs next to each other.
  std::array<std::size_t, 3> last{};  // the area of a kind that was the last, from 1 on
  const auto add_next = [&](FsBlock begin, FsBlock count, Kind kind, GroupNumber group,
                            std::size_t& before) {
    if (before != 0 && areas[before - 1].end == begin) {
      areas[before - 1].end += count;
    } else {
      add(begin, count, kind, group);
      before = count_of_all;
    }
  };
  auto copy = copies.begin();
  for (GroupNumber group = 0; group < size.groups; ++group) {
    const bool has_copy = copy != copies.end() && *copy == group;
    if (has_copy) ++copy;
    if (has_copy || meta_groups) {
      blk64_t super_at = 0;
      blk64_t old_at = 0;
      blk64_t new_at = 0;
      blk_t used = 0;
      if (const errcode_t error =
              ext2fs_super_and_bgd_loc2(fs, group, &super_at, &old_at, &new_at, &used)) {
        return corrupt(ext_error_text(error));
      }
      if (group == 0 && super_at == 1) add(0, 1, Kind::kSuperblock, group);
      if (super_at != 0 || group == 0) add(super_at, 1, Kind::kSuperblock, group);
      if (old_at != 0 && old_blocks != 0) add(old_at, old_blocks, Kind::kGroupDescriptors, group);
      if (new_at != 0) add(new_at, 1, Kind::kGroupDescriptors, group);
    }
    const GroupPlaces at = structures.places_of(group);
    add_next(at.block_bitmap, 1, Kind::kBlockBitmap, group, last[0]);
    add_next(at.inode_bitmap, 1, Kind::kInodeBitmap, group, last[1]);
    add_next(at.inode_table, structures.table_blocks, Kind::kInodeTable, group, last[2]);
  }
  areas.resize(count_of_all);
  if (const auto placed = place(areas, size, structures); !placed) return placed.error();
  return areas;
}

Result<void> ExtLayout::place(Areas& areas, const Size& size, const Structures& structures) {
  // (One that begins so far away that its end wraps around comes last when they are sorted.)
  const auto overlap = [](const Area& one, const Area& other) {
    return one.end > other.begin || one.end < one.begin;
  };
  auto first = std::ranges::adjacent_find(areas, overlap);
  if (first != areas.end()) {
    // (With flex_bg they do not come in order.)
    std::ranges::sort(areas, {}, &Area::begin);
    first = std::ranges::adjacent_find(areas, overlap);
  }
  const auto misplaced = [&](const Area& area) {
    return corrupt(fmt::format("the {} of group {} would be blocks {} to {}, of {}",
                               describe(area.kind), area.group, area.begin, area.end, size.blocks));
  };
  for (const Area& each : areas) {
    if (each.begin > size.first_block) break;
    if (each.kind != Kind::kSuperblock) return misplaced(each);
  }
  if (!areas.empty() && (areas.back().begin >= size.blocks || areas.back().end > size.blocks)) {
    return misplaced(areas.back());
  }
  if (first == areas.end()) return {};
  const Area& other = *std::next(first);
  return corrupt(fmt::format("the {} of group {} and the {} of group {} overlap at block {}",
                             describe(first->kind),
                             first->group + structures.groups_before(*first, other.begin),
                             describe(other.kind), other.group, other.begin));
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
  // (libext2fs allows groups of 64 Ki, whatever their bitmaps have room for, and counts the blocks
  // of an inode table in 32 bits.)
  const std::uint64_t bits = std::uint64_t{8} * mine.block_bytes;
  const std::uint64_t table_bytes = std::uint64_t{mine.inodes_per_group} * mine.inode_bytes;
  if (mine.inodes_per_group > bits || (mine.blocks_per_group >> fs->cluster_ratio_bits) > bits ||
      (table_bytes + mine.block_bytes - 1) / mine.block_bytes != fs->inode_blocks_per_group) {
    return corrupt(fmt::format("groups of {} blocks and {} inodes, with bitmaps of {} bytes",
                               mine.blocks_per_group, mine.inodes_per_group, mine.block_bytes));
  }
  if (like != nullptr && like->size_ == mine && has(fs, *like->structures_)) {
    layout.structures_ = like->structures_;
    return layout;
  }
  const auto structures = std::make_shared<Structures>();
  structures->told = told_of(fs);
  const auto descriptors = descriptors_of(fs);
  structures->descriptors.assign(descriptors.begin(), descriptors.end());
  structures->descriptor_bytes = EXT2_DESC_SIZE(fs->super);
  structures->wide = ext2fs_has_feature_64bit(fs->super) != 0;
  structures->table_blocks = fs->inode_blocks_per_group;
  auto areas = areas_of(fs, mine, *structures);
  if (!areas) return areas.error();
  structures->areas = std::move(*areas);
  layout.structures_ = structures;
  return layout;
}

ExtLayout::Place ExtLayout::place_of(FsBlock block) const {
  const Areas& areas = structures_->areas;
  const auto after = std::ranges::upper_bound(areas, block, {}, &Area::begin);
  if (after == areas.begin() || std::prev(after)->end <= block) {
    const FsBlock from = std::max(block, size_.first_block) - size_.first_block;
    const FsBlock group = std::min<FsBlock>(from / size_.blocks_per_group, size_.groups - 1);
    return {Kind::kData, static_cast<GroupNumber>(group), 0};
  }
  const Area& area = *std::prev(after);
  const GroupNumber before = structures_->groups_before(area, block);
  Place place{area.kind, area.group + before, 0};
  if (area.kind == Kind::kInodeTable) {
    const FsBlock blocks_before = block - area.begin - FsBlock{before} * structures_->table_blocks;
    place.first_inode =
        place.group * size_.inodes_per_group +
        static_cast<InodeNumber>(blocks_before * (size_.block_bytes / size_.inode_bytes)) + 1;
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
  return {structures_->places_of(group_of(inode)).inode_table * size_.block_bytes +
              std::uint64_t{index} * size_.inode_bytes,
          size_.inode_bytes};
}

}  // namespace mariner::ifsck
