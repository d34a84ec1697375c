#include "ifsck/mend_work.h"

#include <algorithm>
#include <set>

#include "ifsck/each_once.h"
#include "ifsck/ext_inode.h"
#include "ifsck/map_prefetch.h"
#include "ifsck/moment_change.h"
#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

// More are read one by one when their turn comes: an image may say that a directory has all blocks.
constexpr std::size_t kPrefetchMax = 32 * 1024;

using Code = Finding::Code;

constexpr std::uint64_t kBytesAtOnce = 4u << 20;
constexpr std::size_t kSuperblockAt = 1024;

void set_bit(std::span<std::byte> bytes, std::uint64_t bit) {
  bytes[bit / 8] |= static_cast<std::byte>(1u << bit % 8);
}

char* characters(std::span<std::byte> bytes) { return reinterpret_cast<char*>(bytes.data()); }

}  // namespace

MendWork::MendWork(const ExtContext& context, const Options& options)
    : context_(context), options_(options) {
  for (const Finding& each : options_.findings) {
    if (each.code == Code::kBlockMarked && each.expected != 0) claimed_.insert(each.block);
    if (each.code == Code::kInodeMarked && each.expected != 0) claimed_inodes_.insert(each.inode);
  }
}

// ---- inodes and blocks

Result<std::vector<std::byte>> MendWork::inode(InodeNumber number) const {
  if (number == 0 || number > layout().inodes()) return std::vector<std::byte>{};
  return read_inode(context_, number);
}

Result<void> MendWork::prefetch_inodes(std::span<const InodeNumber> numbers) const {
  std::vector<Lbn> wanted;
  for (const InodeNumber each : numbers) {
    if (each == 0 || each > layout().inodes()) continue;
    wanted.push_back(layout().inode_place(each).covering_blocks().first);
  }
  sort_each_once(wanted);
  if (wanted.size() > kPrefetchMax) wanted.resize(kPrefetchMax);
  return context_.volume.view().prefetch(wanted);
}

Result<void> MendWork::prefetch(std::span<const BlockMap::Run> runs) const {
  std::vector<Lbn> wanted;
  for (const BlockMap::Run& run : runs) {
    const ByteRange bytes{layout().bytes_of(run.physical).offset,
                          run.count * layout().block_bytes()};
    const BlockRange blocks = bytes.covering_blocks();
    for (Lbn lbn = blocks.first; lbn < blocks.end() && wanted.size() < kPrefetchMax;
         lbn = lbn + BlockCount{1}) {
      wanted.push_back(lbn);
    }
  }
  return context_.volume.view().prefetch(wanted);
}

Result<CheckedInode> MendWork::checked(InodeNumber number) const {
  auto bytes = inode(number);
  if (!bytes) return bytes.error();
  if (bytes->empty()) return CheckedInode{};
  return check_inode(context_, number, *bytes, true);
}

Result<std::uint8_t> MendWork::kind_of(InodeNumber number) const {
  const auto bytes = inode(number);
  if (!bytes) return bytes.error();
  if (bytes->empty() || context_.is_reserved(number)) return std::uint8_t{0};
  const ExtInode one(*bytes);
  if (one.links() == 0) return std::uint8_t{0};
  return one.type() != 0 ? one.type() : CheckedInode::kStrange;
}

Result<void> MendWork::put_inode(InodeNumber number, std::span<std::byte> bytes) {
  // (What it keeps of inodes would be older.)
  (void)ext2fs_flush_icache(context_.fs);
  (void)ext2fs_inode_csum_set(context_.fs, number,
                              reinterpret_cast<ext2_inode_large*>(bytes.data()));
  return context_.volume.view().write(layout().inode_place(number), bytes);
}

Result<void> MendWork::put_block(FsBlock block, std::span<const std::byte> bytes) {
  const auto before = context_.read_block(block);
  if (!before) return before.error();
  if (std::ranges::equal(*before, bytes)) return {};
  return context_.volume.view().write(layout().bytes_of(block), bytes);
}

Result<void> MendWork::release(InodeNumber number) {
  auto bytes = inode(number);
  if (!bytes) return bytes.error();
  if (bytes->empty()) return {};
  store_le<std::uint16_t>(bytes->data() + InodeAt::kLinks, 0);
  store_le<std::uint32_t>(bytes->data() + InodeAt::kDeleted, now());
  return put_inode(number, *bytes);
}

std::uint32_t MendWork::now() const {
  return std::max(
      {context_.super.s_wtime, context_.super.s_mkfs_time, context_.super.s_inodes_count});
}

bool MendWork::knows_directories() const {
  return options_.directories && ext2fs_has_feature_inline_data(context_.fs->super) == 0;
}

std::optional<std::vector<InodeNumber>> MendWork::likely_directories(GroupNumber first,
                                                                     GroupNumber end) const {
  if (!knows_directories() || !options_.directories_in) return {};
  std::vector<InodeNumber> some = options_.directories_in(first, end);
  sort_each_once(some);
  return some;
}

Result<std::vector<InodeNumber>> MendWork::possible_directories() const {
  std::vector<InodeNumber> all;
  if (knows_directories()) {
    all = options_.directories();
    sort_each_once(all);
    return all;
  }
  const auto done = for_each_inode([&](InodeNumber number, std::span<std::byte> bytes) {
    if (ExtInode(bytes).is_directory() && !context_.is_reserved(number)) all.push_back(number);
    return Result<void>{};
  });
  if (!done) return done.error();
  return all;
}

Result<std::vector<InodeNumber>> MendWork::directories() const {
  const auto possible = possible_directories();
  if (!possible) return possible.error();
  return directories_of(*possible);
}

Result<std::vector<InodeNumber>> MendWork::directories_of(
    std::span<const InodeNumber> numbers) const {
  std::vector<InodeNumber> some;
  while (!numbers.empty()) {
    const auto next = numbers.first(std::min(numbers.size(), kPrefetchMax));
    numbers = numbers.subspan(next.size());
    if (const auto done = prefetch_inodes(next); !done) return done.error();
    for (const InodeNumber each : next) {
      const auto kind = kind_of(each);
      if (!kind) return kind.error();
      if (*kind == EXT2_FT_DIR) some.push_back(each);
    }
  }
  return some;
}

Result<std::vector<CheckedInode>> MendWork::prefetch_directories(
    std::span<const InodeNumber> numbers) const {
  if (const auto done = prefetch_inodes(numbers); !done) return done.error();
  MapPrefetch maps{&context_, {}};
  for (const InodeNumber each : numbers) {
    auto bytes = inode(each);
    if (!bytes) return bytes.error();
    maps.inodes.push_back(std::move(*bytes));
  }
  if (const auto done = prefetch_maps(std::span(&maps, 1)); !done) return done.error();
  std::vector<CheckedInode> all;
  std::vector<BlockMap::Run> runs;
  for (const InodeNumber each : numbers) {
    auto one = checked(each);
    if (!one) return one.error();
    if (one->directory && runs.size() < kPrefetchMax) {
      runs.insert(runs.end(), one->map.runs.begin(), one->map.runs.end());
    }
    all.push_back(std::move(*one));
  }
  if (const auto done = prefetch(runs); !done) return done.error();
  return all;
}

Result<void> MendWork::for_each_inode(
    const std::function<Result<void>(InodeNumber, std::span<std::byte>)>& visit) const {
  const std::uint32_t inode_bytes = layout().inode_bytes();
  const auto at_once = static_cast<std::uint32_t>(kBytesAtOnce / inode_bytes);
  std::vector<std::byte> bytes;
  for (GroupNumber group = 0; group < layout().groups(); ++group) {
    const std::uint32_t end = context_.table_end(group);
    for (std::uint32_t from = 0; from < end; from += at_once) {
      const std::uint32_t count = std::min(at_once, end - from);
      const InodeNumber first = group * layout().inodes_per_group() + from + 1;
      bytes.resize(std::size_t{count} * inode_bytes);
      const ByteRange range{layout().inode_place(first).offset, bytes.size()};
      if (const auto read = context_.volume.view().read(range, bytes); !read) return read;
      for (std::uint32_t i = 0; i < count; ++i) {
        const auto one = std::span(bytes).subspan(std::size_t{i} * inode_bytes, inode_bytes);
        if (ExtInode(one).links() == 0 && !context_.is_reserved(first + i)) continue;
        if (const Result<void> done = visit(first + i, one); !done) return done;
      }
    }
  }
  return {};
}

// ---- room

Result<bool> MendWork::find_free(GroupNumber group, FsBlock end) {
  if (!bitmaps_ || bitmaps_->first() != ext2fs_group_first_block2(context_.fs, group)) {
    auto read = GroupBitmaps::read(context_, group);
    if (!read) return read.error();
    bitmaps_ = std::move(*read);
    next_ = bitmaps_->first();
  }
  for (;; ++next_) {
    next_ = bitmaps_->next_unmarked(next_);
    if (next_ > bitmaps_->last() || next_ >= end) return false;
    if (!claimed_.contains(next_) && layout().may_claim(next_) &&
        layout().place_of(next_).kind == ExtLayout::Kind::kData) {
      return true;
    }
  }
}

Result<std::optional<FsBlock>> MendWork::allocate(FsBlock end) {
  if (!may_allocate()) return std::optional<FsBlock>{};
  for (GroupNumber group = full_; group < layout().groups(); ++group) {
    // As the descriptor says: not all bitmaps are read where nothing is free.
    if (ext2fs_bg_free_blocks_count(context_.fs, group) == 0) continue;
    const auto found = find_free(group, end);
    if (!found) return found.error();
    if (!*found) continue;
    full_ = group;
    return std::optional<FsBlock>(next_++);
  }
  full_ = layout().groups();
  return std::optional<FsBlock>{};
}

Result<std::optional<InodeNumber>> MendWork::find_free_inode(GroupNumber group, bool beyond) {
  const auto bitmaps = GroupBitmaps::read(context_, group);
  if (!bitmaps) return bitmaps.error();
  const std::uint32_t end = context_.table_end(group);
  const std::uint32_t last = beyond ? std::min(end + 1, layout().inodes_per_group()) : end;
  for (std::uint32_t i = beyond ? end : 0; i < last; ++i) {
    const InodeNumber number = group * layout().inodes_per_group() + i + 1;
    if (number < EXT2_FIRST_INODE(context_.fs->super) || bitmaps->is_marked_inode(number) ||
        claimed_inodes_.contains(number)) {
      continue;
    }
    const auto kind = kind_of(number);
    if (!kind) return kind.error();
    if (*kind == 0) return std::optional<InodeNumber>(number);
  }
  return std::optional<InodeNumber>{};
}

Result<std::optional<InodeNumber>> MendWork::allocate_inode() {
  if (!may_allocate()) return std::optional<InodeNumber>{};
  for (const bool beyond : {false, true}) {
    for (GroupNumber group = 0; group < layout().groups(); ++group) {
      if (!beyond && context_.table_end(group) == 0) continue;
      if (ext2fs_bg_free_inodes_count(context_.fs, group) == 0) continue;
      const auto found = find_free_inode(group, beyond);
      if (!found) return found.error();
      if (!*found) continue;
      const InodeNumber number = **found;
      if (beyond) {
        if (context_.is_uninitialized(group, EXT2_BG_INODE_UNINIT)) {
          if (const auto done = initialize_inodes(group); !done) return done.error();
        }
        const std::uint32_t used = (number - 1) % layout().inodes_per_group() + 1;
        ext2fs_bg_itable_unused_set(context_.fs, group, layout().inodes_per_group() - used);
        touch_descriptor(group);
      }
      claimed_inodes_.insert(number);
      std::vector<std::byte> zeros(layout().inode_bytes());
      const auto put = context_.volume.view().write(layout().inode_place(number), zeros);
      if (!put) return put.error();
      return std::optional<InodeNumber>(number);
    }
  }
  return std::optional<InodeNumber>{};
}

// ---- groups

Result<void> MendWork::initialize_blocks(GroupNumber group) {
  std::vector<std::byte> bytes(layout().block_bytes());
  const FsBlock first = ext2fs_group_first_block2(context_.fs, group);
  const FsBlock last = ext2fs_group_last_block2(context_.fs, group);
  for (FsBlock block = first; block <= last; ++block) {
    if (layout().place_of(block).kind != ExtLayout::Kind::kData) set_bit(bytes, block - first);
  }
  for (std::uint64_t bit = last - first + 1; bit < bytes.size() * 8; ++bit) set_bit(bytes, bit);
  ext2fs_bg_flags_clear(context_.fs, group, EXT2_BG_BLOCK_UNINIT);
  return put_block_bitmap(group, bytes);
}

Result<void> MendWork::initialize_inodes(GroupNumber group) {
  std::vector<std::byte> bytes(layout().block_bytes());
  for (std::uint64_t bit = layout().inodes_per_group(); bit < bytes.size() * 8; ++bit) {
    set_bit(bytes, bit);
  }
  ext2fs_bg_flags_clear(context_.fs, group, EXT2_BG_INODE_UNINIT);
  ext2fs_bg_itable_unused_set(context_.fs, group, layout().inodes_per_group());
  return put_inode_bitmap(group, bytes);
}

Result<void> MendWork::put_block_bitmap(GroupNumber group, std::span<std::byte> bytes) {
  (void)ext2fs_block_bitmap_csum_set(context_.fs, group, characters(bytes),
                                     static_cast<int>(context_.super.s_clusters_per_group / 8));
  touch_descriptor(group);
  return put_block(ext2fs_block_bitmap_loc(context_.fs, group), bytes);
}

Result<void> MendWork::put_inode_bitmap(GroupNumber group, std::span<std::byte> bytes) {
  (void)ext2fs_inode_bitmap_csum_set(context_.fs, group, characters(bytes),
                                     static_cast<int>(layout().inodes_per_group() / 8));
  touch_descriptor(group);
  return put_block(ext2fs_inode_bitmap_loc(context_.fs, group), bytes);
}

// Copies of both are left as they are: nobody looks at their counts.
Result<void> MendWork::finish() {
  const ext2_filsys fs = context_.fs;
  const std::uint32_t each = EXT2_DESC_PER_BLOCK(fs->super);
  std::set<GroupNumber> blocks;
  for (const GroupNumber group : descriptors_) {
    ext2fs_group_desc_csum_set(fs, group);
    blocks.insert(group / each);
  }
  for (const GroupNumber i : blocks) {
    const FsBlock at = ext2fs_descriptor_block_loc2(fs, context_.super.s_first_data_block, i);
    const auto* const from = reinterpret_cast<const std::byte*>(fs->group_desc) +
                             std::size_t{i} * layout().block_bytes();
    if (const auto done = put_block(at, {from, layout().block_bytes()}); !done) return done;
  }
  descriptors_.clear();
  if (!superblock_) return {};
  (void)ext2fs_superblock_csum_set(fs, fs->super);
  superblock_ = false;
  return context_.volume.view().write(
      {kSuperblockAt, sizeof *fs->super},
      {reinterpret_cast<const std::byte*>(fs->super), sizeof *fs->super});
}

}  // namespace mariner::ifsck
