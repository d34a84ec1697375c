#include "ifsck/resize_inode.h"

#include <algorithm>
#include <set>

namespace mariner::ifsck {

std::optional<ResizeInode> ResizeInode::of(const ExtContext& context) {
  const ext2_filsys fs = context.fs;
  if (!ext2fs_has_feature_resize_inode(fs->super) || ext2fs_has_feature_meta_bg(fs->super)) {
    return std::nullopt;
  }
  const std::size_t numbers = fs->blocksize / 4;
  ResizeInode made;
  made.first = fs->desc_blocks % numbers;
  for (std::uint32_t i = 0; i < context.super.s_reserved_gdt_blocks; ++i) {
    const FsBlock block = context.super.s_first_data_block + 1 + fs->desc_blocks + FsBlock{i};
    made.reserved.push_back(block);
    made.copies.emplace_back();
    for (GroupNumber group = 1; group < context.layout.groups(); ++group) {
      if (ext2fs_bg_has_super(fs, group) == 0) continue;
      made.copies.back().push_back(block + FsBlock{group} * context.super.s_blocks_per_group);
    }
  }
  return made;
}

bool ResizeInode::fits(const BlockMap& map, std::uint32_t block_bytes) const {
  const std::uint64_t numbers = block_bytes / 4;
  const std::uint64_t begin = EXT2_NDIR_BLOCKS + numbers;
  if (map.nodes.size() != reserved.size() + 1 || map.nodes.front().height != 2) return false;
  std::set<std::pair<std::uint64_t, FsBlock>> nodes;
  for (const BlockMap::Node& each : map.nodes) nodes.emplace(each.logical, each.block);
  std::set<std::pair<std::uint64_t, FsBlock>> blocks;
  for (const BlockMap::Run& run : map.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      blocks.emplace(run.logical + i, run.physical + i);
    }
  }
  std::size_t expected = 0;
  for (std::size_t i = 0; i < reserved.size(); ++i) {
    const std::uint64_t logical = begin + (first + i) % numbers * numbers;
    if (!nodes.contains({logical, reserved[i]})) return false;
    for (std::size_t k = 0; k < copies[i].size(); ++k) {
      if (!blocks.contains({logical + k, copies[i][k]})) return false;
    }
    expected += copies[i].size();
  }
  return blocks.size() == expected;
}

}  // namespace mariner::ifsck
