#include "ifsck/group_bitmaps.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>

#include "ifsck/ext_checksum.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

bool bit_of(const std::vector<std::byte>& bytes, std::uint64_t bit) {
  return (std::to_integer<unsigned>(bytes[bit / 8]) >> (bit % 8) & 1) != 0;
}

// The bits, of the first so many, that are not the same in both.
template <typename Visit>
void for_each_difference(const std::vector<std::byte>& one, const std::vector<std::byte>& two,
                         std::uint64_t bits, Visit visit) {
  constexpr std::size_t kPiece = 64;  // bytes; mostly they are alike
  for (std::size_t at = 0; at * 8 < bits; at += kPiece) {
    const std::size_t bytes = std::min(kPiece, one.size() - at);
    if (std::memcmp(one.data() + at, two.data() + at, bytes) == 0) continue;
    const std::uint64_t end = std::min<std::uint64_t>((at + bytes) * 8, bits);
    for (std::uint64_t i = at * 8; i < end; ++i) {
      if (bit_of(one, i) != bit_of(two, i)) visit(i);
    }
  }
}

// Of a bitmap's first bytes: in the descriptor in two halves, or the lower one alone.
bool has_checksum(std::uint32_t seed, std::span<const std::byte> bytes, std::uint16_t low,
                  const std::uint16_t* high) {
  const std::uint32_t crc = ext_crc(seed, bytes);
  if (high == nullptr) return (crc & 0xffff) == low;
  return crc == (std::uint32_t{*high} << 16 | low);
}

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
  if (!bitmaps.has_blocks_) bitmaps.mark_structures();
  bitmaps.inodes_ = std::move(*inodes);
  if (!bitmaps.has_inodes_) std::ranges::fill(bitmaps.inodes_, std::byte{});
  return bitmaps;
}

void GroupBitmaps::mark_structures() {
  std::ranges::fill(blocks_, std::byte{});
  context_->layout.for_each_structure(first_, last_ + 1, [this](FsBlock begin, FsBlock end) {
    for (FsBlock block = begin; block < end; ++block) {
      blocks_[(block - first_) / 8] |= static_cast<std::byte>(1u << (block - first_) % 8);
    }
  });
}

bool GroupBitmaps::is_marked(FsBlock block) const { return bit_of(blocks_, block - first_); }

FsBlock GroupBitmaps::next_unmarked(FsBlock from) const {
  while (from <= last_ && is_marked(from)) {
    const std::uint64_t bit = from - first_;
    // Byte by byte where all of one is.
    from += bit % 8 == 0 && blocks_[bit / 8] == std::byte{0xff} ? 8 : 1;
  }
  return std::min(from, last_ + 1);
}

bool GroupBitmaps::is_marked_inode(InodeNumber number) const {
  return bit_of(inodes_, (number - 1) % context_->layout.inodes_per_group());
}

void GroupBitmaps::compare(const GroupBitmaps& other, const std::function<void(FsBlock)>& block,
                           const std::function<void(InodeNumber)>& inode) const {
  for_each_difference(blocks_, other.blocks_, last_ - first_ + 1,
                      [&](std::uint64_t i) { block(first_ + i); });
  const InodeNumber first_inode = group_ * context_->layout.inodes_per_group() + 1;
  for_each_difference(inodes_, other.inodes_, context_->layout.inodes_per_group(),
                      [&](std::uint64_t i) { inode(first_inode + static_cast<InodeNumber>(i)); });
}

bool GroupBitmaps::is_padded(const std::vector<std::byte>& bitmap, std::uint64_t from) const {
  std::uint64_t bit = from;
  for (; bit % 8 != 0; ++bit) {
    if (!bit_of(bitmap, bit)) return false;
  }
  const auto bytes = std::span(bitmap).subspan(bit / 8);
  return bytes.empty() || (bytes.front() == std::byte{0xff} &&
                           std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0);
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
  const auto* const descriptor =
      reinterpret_cast<const ext4_group_desc*>(ext2fs_group_desc(fs, fs->group_desc, group_));
  const auto high = [&](const std::uint16_t& half, std::size_t end) {
    return EXT2_DESC_SIZE(fs->super) >= end ? &half : nullptr;
  };
  if (has_blocks_) {
    const std::size_t bytes = context_->super.s_clusters_per_group / 8;
    if (context_->checksums &&
        !has_checksum(fs->csum_seed, std::span(blocks_).first(bytes),
                      descriptor->bg_block_bitmap_csum_lo,
                      high(descriptor->bg_block_bitmap_csum_hi,
                           offsetof(ext4_group_desc, bg_block_bitmap_csum_hi) + 2))) {
      add(Code::kBlockBitmapChecksum);
    }
    if (!is_padded(blocks_, last_ - first_ + 1)) {
      add(Code::kPadding, ext2fs_block_bitmap_loc(fs, group_));
    }
  }
  if (has_inodes_) {
    const std::uint32_t inodes = context_->layout.inodes_per_group();
    if (context_->checksums &&
        !has_checksum(fs->csum_seed, std::span(inodes_).first(inodes / 8),
                      descriptor->bg_inode_bitmap_csum_lo,
                      high(descriptor->bg_inode_bitmap_csum_hi,
                           offsetof(ext4_group_desc, bg_inode_bitmap_csum_hi) + 2))) {
      add(Code::kInodeBitmapChecksum);
    }
    if (!is_padded(inodes_, inodes)) add(Code::kPadding, ext2fs_inode_bitmap_loc(fs, group_));
  }
  return found;
}

}  // namespace mariner::ifsck
