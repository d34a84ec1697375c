#include "ifsck/group_maps.h"

#include <algorithm>
#include <bit>

#include "proto/check.h"

namespace mariner::ifsck {
namespace {

constexpr std::uint64_t kRangeMax = 1u << 30;  // that libext2fs is asked for at once

bool bit_at(const std::vector<std::byte>& bytes, std::uint32_t i) {
  return (bytes[i / 8] >> (i % 8) & std::byte{1}) != std::byte{0};
}
void set_bit(std::vector<std::byte>& bytes, std::uint32_t i, bool on) {
  const std::byte bit = std::byte{1} << (i % 8);
  bytes[i / 8] = on ? bytes[i / 8] | bit : bytes[i / 8] & ~bit;
}
std::uint32_t zeros(const std::vector<std::byte>& bytes, std::uint32_t bits) {
  std::uint32_t count = 0;
  for (std::uint32_t i = 0; i < bits; ++i) count += bit_at(bytes, i) ? 0 : 1;
  return count;
}

// A bitmap was never written. (Only where groups have checksums there are such.)
bool is_unwritten(ext2_filsys fs, GroupNumber group, std::uint16_t flag) {
  return ext2fs_has_group_desc_csum(fs) && ext2fs_bg_flags_test(fs, group, flag);
}

void mark(ext2_filsys fs, FsBlock first, std::uint64_t count, bool in_use) {
  while (count > 0) {
    const auto some = static_cast<unsigned>(std::min(count, kRangeMax));
    if (in_use) {
      ext2fs_mark_block_bitmap_range2(fs->block_map, first, some);
    } else {
      ext2fs_unmark_block_bitmap_range2(fs->block_map, first, some);
    }
    first += some;
    count -= some;
  }
}

}  // namespace

GroupMaps::GroupMaps(const ExtVolume& volume, const ExtLayout& layout)
    : volume_(volume), layout_(layout), fs_(volume.fs()) {
  CHECK(fs_->block_map == nullptr && fs_->cluster_ratio_bits == 0);
  fs_->default_bitmap_type = EXT2FS_BMAP64_RBTREE;
  CHECK(ext2fs_allocate_block_bitmap(fs_, "blocks in use", &fs_->block_map) == 0);
  const FsBlock first = fs_->super->s_first_data_block;
  mark(fs_, first, layout.blocks() - first, true);
}

FsBlock GroupMaps::first_of(GroupNumber group) const {
  return ext2fs_group_first_block2(fs_, group);
}
std::uint32_t GroupMaps::blocks_of(GroupNumber group) const {
  return static_cast<std::uint32_t>(ext2fs_group_blocks_count(fs_, group));
}
GroupNumber GroupMaps::group_of(FsBlock block) const { return ext2fs_group_of_blk2(fs_, block); }

// Of a group that was never written to: what has its place there.
Result<GroupMaps::Bytes> GroupMaps::read_blocks(GroupNumber group) const {
  Bytes bytes(layout_.block_bytes());
  if (!is_unwritten(fs_, group, EXT2_BG_BLOCK_UNINIT)) {
    const auto read =
        volume_.view().read(layout_.bytes_of(ext2fs_block_bitmap_loc(fs_, group)), bytes);
    if (!read) return read.error();
    return bytes;
  }
  for (std::uint32_t i = 0; i < blocks_of(group); ++i) {
    const bool used = layout_.place_of(first_of(group) + i).kind != ExtLayout::Kind::kData;
    set_bit(bytes, i, used);
  }
  return bytes;
}

Result<GroupMaps::Bytes> GroupMaps::read_inodes(GroupNumber group) const {
  Bytes bytes(layout_.block_bytes());
  if (is_unwritten(fs_, group, EXT2_BG_INODE_UNINIT)) return bytes;
  const auto read =
      volume_.view().read(layout_.bytes_of(ext2fs_inode_bitmap_loc(fs_, group)), bytes);
  if (!read) return read.error();
  return bytes;
}

Result<void> GroupMaps::load(GroupNumber group) {
  CHECK(group < layout_.groups());
  if (groups_.contains(group)) return {};
  auto blocks = read_blocks(group);
  if (!blocks) return blocks.error();
  auto inodes = read_inodes(group);
  if (!inodes) return inodes.error();
  mark(fs_, first_of(group), blocks_of(group), false);
  ext2fs_set_block_bitmap_range2(fs_->block_map, first_of(group), blocks_of(group), blocks->data());
  // As it is understood: without what stands behind the group's end.
  blocks->assign(blocks->size(), std::byte{0});
  ext2fs_get_block_bitmap_range2(fs_->block_map, first_of(group), blocks_of(group), blocks->data());
  groups_[group] = {std::move(*blocks), std::move(*inodes)};
  return {};
}

Result<bool> GroupMaps::load_another() {
  while (next_ < layout_.groups() && groups_.contains(next_)) ++next_;
  if (next_ == layout_.groups()) return false;
  if (const Result<void> done = load(next_); !done) return done.error();
  return true;
}

Result<void> GroupMaps::set_blocks(FsBlock first, std::uint64_t count, bool in_use) {
  CHECK(count > 0 && layout_.may_claim(first) && layout_.may_claim(first + count - 1));
  for (GroupNumber group = group_of(first); group <= group_of(first + count - 1); ++group) {
    if (const Result<void> done = load(group); !done) return done;
  }
  mark(fs_, first, count, in_use);
  return {};
}

Result<FsBlock> GroupMaps::take_block(FsBlock near) {
  if (const Result<void> done = load(group_of(near)); !done) return done.error();
  blk64_t found = 0;
  while (ext2fs_new_block2(fs_, near, nullptr, &found) != 0) {
    const auto more = load_another();
    if (!more) return more.error();
    if (!*more) return Error{ErrorCode::kNoSpace, "ext2/3/4: there is no free block"};
  }
  mark(fs_, found, 1, true);
  return found;
}

Result<bool> GroupMaps::inode(InodeNumber number) {
  const GroupNumber group = layout_.group_of(number);
  if (const Result<void> done = load(group); !done) return done.error();
  return bit_at(groups_[group].inodes, (number - 1) % layout_.inodes_per_group());
}

Result<void> GroupMaps::set_inode(InodeNumber number, bool in_use) {
  const auto before = inode(number);
  if (!before) return before.error();
  Group& group = groups_[layout_.group_of(number)];
  if (*before == in_use) return {};
  set_bit(group.inodes, (number - 1) % layout_.inodes_per_group(), in_use);
  group.inodes_changed = true;
  return {};
}

Result<void> GroupMaps::add_directories(InodeNumber number, int more) {
  if (const auto known = inode(number); !known) return known.error();
  Group& group = groups_[layout_.group_of(number)];
  group.directories += more;
  group.inodes_changed = true;
  return {};
}

Result<void> GroupMaps::store_blocks(GroupNumber number, Group& group) {
  Bytes bytes(layout_.block_bytes());
  const std::uint32_t count = blocks_of(number);
  ext2fs_get_block_bitmap_range2(fs_->block_map, first_of(number), count, bytes.data());
  if (bytes == group.blocks) return {};
  group.blocks = bytes;
  for (std::uint32_t i = count; i < bytes.size() * 8; ++i) set_bit(bytes, i, true);
  const FsBlock place = ext2fs_block_bitmap_loc(fs_, number);
  if (const auto done = volume_.view().write(layout_.bytes_of(place), bytes); !done) return done;
  ext2fs_bg_free_blocks_count_set(fs_, number, zeros(bytes, count));
  ext2fs_bg_flags_clear(fs_, number, EXT2_BG_BLOCK_UNINIT);
  ext2fs_block_bitmap_csum_set(fs_, number, reinterpret_cast<char*>(bytes.data()),
                               static_cast<int>(fs_->super->s_clusters_per_group / 8));
  return store_descriptor(number);
}

Result<void> GroupMaps::store_inodes(GroupNumber number, Group& group) {
  if (!group.inodes_changed) return {};
  Bytes& bytes = group.inodes;
  const std::uint32_t count = layout_.inodes_per_group();
  for (std::uint32_t i = count; i < bytes.size() * 8; ++i) set_bit(bytes, i, true);
  const FsBlock place = ext2fs_inode_bitmap_loc(fs_, number);
  if (const auto done = volume_.view().write(layout_.bytes_of(place), bytes); !done) return done;
  ext2fs_bg_free_inodes_count_set(fs_, number, zeros(bytes, count));
  ext2fs_bg_used_dirs_count_set(
      fs_, number,
      static_cast<std::uint32_t>(static_cast<int>(ext2fs_bg_used_dirs_count(fs_, number)) +
                                 group.directories));
  ext2fs_bg_flags_clear(fs_, number, EXT2_BG_INODE_UNINIT);
  if (ext2fs_has_group_desc_csum(fs_)) {
    std::uint32_t used = count;
    while (used > 0 && !bit_at(bytes, used - 1)) --used;
    const std::uint32_t unused = ext2fs_bg_itable_unused(fs_, number);
    ext2fs_bg_itable_unused_set(fs_, number, std::min(unused, count - used));
  }
  ext2fs_inode_bitmap_csum_set(fs_, number, reinterpret_cast<char*>(bytes.data()),
                               static_cast<int>(count / 8));
  group.inodes_changed = false;
  group.directories = 0;
  return store_descriptor(number);
}

Result<void> GroupMaps::store_descriptor(GroupNumber number) const {
  ext2fs_group_desc_csum_set(fs_, number);
  const std::uint32_t size = EXT2_DESC_SIZE(fs_->super);
  const std::uint32_t in_block = layout_.block_bytes() / size;
  const FsBlock block =
      ext2fs_descriptor_block_loc2(fs_, fs_->super->s_first_data_block, number / in_block);
  const ByteRange place{layout_.bytes_of(block).offset + std::uint64_t{number % in_block} * size,
                        size};
  return volume_.view().write(
      place,
      std::as_bytes(std::span(
          reinterpret_cast<const char*>(ext2fs_group_desc(fs_, fs_->group_desc, number)), size)));
}

Result<void> GroupMaps::store() {
  for (auto& [number, group] : groups_) {
    if (const Result<void> done = store_blocks(number, group); !done) return done;
    if (const Result<void> done = store_inodes(number, group); !done) return done;
  }
  return {};
}

}  // namespace mariner::ifsck
