#include "ifsck/recheck_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "ifsck/volume_ranges.h"

namespace mariner::ifsck {
namespace {

// Without what mending sets.
std::vector<std::byte> without_counts(ext2_super_block super) {
  super.s_free_blocks_count = 0;
  super.s_free_blocks_hi = 0;
  super.s_free_inodes_count = 0;
  super.s_state = 0;
  super.s_last_orphan = 0;
  super.s_checksum = 0;
  std::vector<std::byte> bytes(sizeof super);
  std::memcpy(bytes.data(), &super, bytes.size());
  return bytes;
}

}  // namespace

void RecheckMemory::forget() {
  inodes_.clear();
  directories_.clear();
  entries_ = 0;
  table_ends_.clear();
}

void RecheckMemory::begin(const ExtContext& now) {
  const std::vector<Lbn>& writes = now.volume.view().overlay().writes();
  std::vector<BlockRanges::Range> written;
  for (std::size_t i = kept_; i < writes.size(); ++i) {
    const auto [first, end] = now.layout.within({writes[i], BlockCount{1}});
    written.push_back({first, end});
  }
  seen_ = writes.size();
  written_ = BlockRanges(std::move(written));
  std::vector<std::byte> super = without_counts(now.super);
  if (super != super_ || groups_ != now.layout.groups()) forget();
  super_ = std::move(super);
  groups_ = now.layout.groups();
}

std::shared_ptr<const MomentChange::Inode> RecheckMemory::find(const ExtContext& now,
                                                               InodeNumber number) const {
  const auto found = inodes_.find(number);
  if (found == inodes_.end() ||
      (now.is_reserved(number) || number < EXT2_FIRST_INODE(now.fs->super))) {
    return nullptr;
  }
  const GroupNumber group = now.layout.group_of(number);
  const auto end = table_ends_.find(group);
  if (end == table_ends_.end() || end->second != now.table_end(group)) return nullptr;
  if (written_.contains(now.layout.inode_place(number).offset / now.layout.block_bytes())) {
    return nullptr;
  }
  const CheckedInode& before = found->second->now;
  for (const BlockMap::Node& node : before.map.nodes) {
    if (written_.contains(node.block)) return nullptr;
  }
  // (Its first block says how an index is made: check_inode() looks at it.)
  if (before.kind == EXT2_FT_DIR && !before.map.runs.empty() &&
      written_.contains(before.map.runs.front().physical)) {
    return nullptr;
  }
  return found->second;
}

const DirectoryChange* RecheckMemory::find_directory(
    const MomentChange& change, InodeNumber number,
    const std::unordered_set<InodeNumber>& also_changed) const {
  const auto found = directories_.find(number);
  const bool still =
      found != directories_.end() && found->second.is_still(change, number, written_, also_changed);
  return still ? &found->second : nullptr;
}

void RecheckMemory::forget_directory(InodeNumber number) {
  const auto found = directories_.find(number);
  if (found == directories_.end()) return;
  entries_ -= found->second.entries();
  directories_.erase(found);
}

void RecheckMemory::keep_directory(InodeNumber number, DirectoryChange directory) {
  forget_directory(number);
  const std::size_t entries = directory.entries();
  if (!directory.told_all || entries > kEntriesMax - entries_) return;
  entries_ += entries;
  directories_.emplace(number, std::move(directory));
}

void RecheckMemory::keep(const MomentChange& change) {
  kept_ = seen_;
  inodes_ = change.inodes;
  table_ends_.clear();
  for (const auto& [number, inode] : inodes_) {
    const GroupNumber group = change.now.layout.group_of(number);
    if (!table_ends_.contains(group)) table_ends_[group] = change.now.table_end(group);
  }
  std::vector<InodeNumber> gone;
  for (const auto& [number, directory] : directories_) {
    if (!inodes_.contains(number)) gone.push_back(number);
  }
  for (const InodeNumber number : gone) forget_directory(number);
}

}  // namespace mariner::ifsck
