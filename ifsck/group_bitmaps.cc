#include "ifsck/group_bitmaps.h"

#include <utility>

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

bool bit_of(const std::vector<std::byte>& bytes, std::uint64_t bit) {
  return (std::to_integer<unsigned>(bytes[bit / 8]) >> (bit % 8) & 1) != 0;
}

char* characters(std::vector<std::byte>& bytes) { return reinterpret_cast<char*>(bytes.data()); }

}  // namespace

GroupBitmaps::GroupBitmaps(const ExtContext& context, GroupNumber group)
    : context_(&context),
      group_(group),
      first_(ext2fs_group_first_block2(context.fs, group)),
      last_(ext2fs_group_last_block2(context.fs, group)),
      has_blocks_(!context.is_uninitialized(group, EXT2_BG_BLOCK_UNINIT)),
      has_inodes_(!context.is_uninitialized(group, EXT2_BG_INODE_UNINIT)) {}

Result<GroupBitmaps> GroupBitmaps::read(const ExtContext& context, GroupNumber group) {
  GroupBitmaps bitmaps(context, group);
  auto blocks = context.read_block(ext2fs_block_bitmap_loc(context.fs, group));
  if (!blocks) return blocks.error();
  auto inodes = context.read_block(ext2fs_inode_bitmap_loc(context.fs, group));
  if (!inodes) return inodes.error();
  bitmaps.blocks_ = std::move(*blocks);
  bitmaps.inodes_ = std::move(*inodes);
  return bitmaps;
}

bool GroupBitmaps::is_marked(FsBlock block) const {
  if (!has_blocks_) return context_->layout.place_of(block).kind != ExtLayout::Kind::kData;
  return bit_of(blocks_, block - first_);
}

bool GroupBitmaps::is_marked_inode(InodeNumber number) const {
  return has_inodes_ && bit_of(inodes_, (number - 1) % context_->layout.inodes_per_group());
}

void GroupBitmaps::compare(const GroupBitmaps& other, const std::function<void(FsBlock)>& block,
                           const std::function<void(InodeNumber)>& inode) const {
  const auto visit = [](bool one, bool two, const std::vector<std::byte>& bytes,
                        const std::vector<std::byte>& others, std::uint64_t bits, auto&& bit) {
    if (!one && !two) return;  // both have structures alone
    for (std::uint64_t i = 0; i < bits; ++i) {
      if (one == two && i % 8 == 0 && bytes[i / 8] == others[i / 8]) {
        i += 7;
      } else {
        bit(i);
      }
    }
  };
  visit(has_blocks_, other.has_blocks_, blocks_, other.blocks_, last_ - first_ + 1,
        [&](std::uint64_t i) {
          if (is_marked(first_ + i) != other.is_marked(first_ + i)) block(first_ + i);
        });
  const InodeNumber first_inode = group_ * context_->layout.inodes_per_group() + 1;
  visit(has_inodes_, other.has_inodes_, inodes_, other.inodes_, context_->layout.inodes_per_group(),
        [&](std::uint64_t i) {
          const auto number = first_inode + static_cast<InodeNumber>(i);
          if (is_marked_inode(number) != other.is_marked_inode(number)) inode(number);
        });
}

bool GroupBitmaps::is_padded(const std::vector<std::byte>& bitmap, std::uint64_t from) const {
  for (std::uint64_t bit = from; bit < bitmap.size() * 8; ++bit) {
    if (!bit_of(bitmap, bit)) return false;
  }
  return true;
}

std::vector<Finding> GroupBitmaps::faults() {
  std::vector<Finding> found;
  const auto fs = context_->fs;
  const auto add = [&](Code code, FsBlock block = 0) {
    found.push_back({.code = code, .block = block, .group = group_});
  };
  if (ext2fs_has_group_desc_csum(fs) != 0 && ext2fs_group_desc_csum_verify(fs, group_) == 0) {
    add(Code::kGroupChecksum);
  }
  if (has_blocks_) {
    const auto bytes = static_cast<int>(context_->super.s_clusters_per_group / 8);
    if (context_->checksums &&
        ext2fs_block_bitmap_csum_verify(fs, group_, characters(blocks_), bytes) == 0) {
      add(Code::kBlockBitmapChecksum);
    }
    if (!is_padded(blocks_, last_ - first_ + 1)) {
      add(Code::kPadding, ext2fs_block_bitmap_loc(fs, group_));
    }
  }
  if (has_inodes_) {
    const std::uint32_t inodes = context_->layout.inodes_per_group();
    if (context_->checksums && ext2fs_inode_bitmap_csum_verify(fs, group_, characters(inodes_),
                                                               static_cast<int>(inodes / 8)) == 0) {
      add(Code::kInodeBitmapChecksum);
    }
    if (!is_padded(inodes_, inodes)) add(Code::kPadding, ext2fs_inode_bitmap_loc(fs, group_));
  }
  return found;
}

}  // namespace mariner::ifsck
