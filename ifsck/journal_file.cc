#include "ifsck/journal_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "ifsck/ext_inode.h"
#include "proto/check.h"

namespace mariner::ifsck {

Result<JournalFile> JournalFile::open(const ExtVolume& volume, const ExtLayout& layout) {
  const InodeNumber number = volume.fs()->super->s_journal_inum;
  if (number == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "ext2/3/4: the journal is on a device of its own, which is not understood; "
                 "e2fsck -j may help"};
  }
  const auto corrupt = [&](std::string_view what) {
    return Error{ErrorCode::kCorrupt, fmt::format("the journal, inode {}: {}", number, what)};
  };
  if (number > layout.inodes()) return corrupt("there is no such inode");
  std::vector<std::byte> bytes(layout.inode_bytes());
  if (const auto read = volume.view().read(layout.inode_place(number), bytes); !read) {
    return read.error();
  }
  const ExtInode inode(bytes);
  if (inode.type() != EXT2_FT_REG_FILE || inode.links() == 0 || !has_block_map(bytes)) {
    return corrupt("it is not a file with blocks");
  }
  const auto map = map_blocks(volume, layout, number, bytes);
  if (!map) return map.error();
  JournalFile file(layout.block_bytes());
  file.take(*map, inode.size() / layout.block_bytes());
  const std::uint64_t end =
      map->runs.empty() ? 0 : map->runs.back().logical + map->runs.back().count;
  file.short_ = end * layout.block_bytes() < inode.size();
  if (file.blocks_ == 0) return corrupt("it has no blocks");
  return file;
}

void JournalFile::take(const BlockMap& map, std::uint64_t blocks_max) {
  for (const BlockMap::Run& each : map.runs) {
    if (each.logical != blocks_ || each.unwritten || blocks_ >= blocks_max) break;
    const std::uint64_t count = std::min(each.count, blocks_max - blocks_);
    by_block_.push_back({blocks_, each.physical, count});
    blocks_ += count;
  }
  by_place_ = by_block_;
  for (const BlockMap::Node& each : map.nodes) by_place_.push_back({Run::kNode, each.block, 1});
  std::ranges::sort(by_place_, {}, &Run::place);
}

ByteRange JournalFile::bytes_of(JournalBlock block) const {
  CHECK(block < blocks_);
  const Run& run = *std::prev(std::ranges::upper_bound(by_block_, block, {}, &Run::block));
  return {(run.place + (block - run.block)) * block_bytes_, block_bytes_};
}

const JournalFile::Run* JournalFile::run_of(FsBlock block) const {
  const auto after = std::ranges::upper_bound(by_place_, block, {}, &Run::place);
  if (after == by_place_.begin()) return nullptr;
  const Run& run = *std::prev(after);
  return block - run.place < run.count ? &run : nullptr;
}

bool JournalFile::has(FsBlock block) const { return run_of(block) != nullptr; }

std::optional<JournalBlock> JournalFile::find(FsBlock block) const {
  const Run* const run = run_of(block);
  if (run == nullptr || run->block == Run::kNode) return std::nullopt;
  return static_cast<JournalBlock>(run->block + (block - run->place));
}

void forget_journal(ext2_super_block& super) {
  ext2fs_clear_feature_journal(&super);
  super.s_journal_inum = 0;
  super.s_jnl_backup_type = 0;
  std::ranges::fill(super.s_jnl_blocks, 0u);
}

}  // namespace mariner::ifsck
