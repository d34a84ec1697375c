// One round of mending: what was found, what there is room for, and how inodes, blocks and
// descriptors are written, with their checksums.
//
// What it writes is in the view at once. Bitmaps are not touched for what is allocated: that it is
// claimed is found by the next check. One thread.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ifsck/ext_context.h"
#include "ifsck/group_bitmaps.h"
#include "ifsck/inode_check.h"
#include "ifsck/repair.h"
#include "proto/error.h"

namespace mariner::ifsck {

// Of whose blocks are asked for together.
inline constexpr std::size_t kDirectoriesAtOnce = 1024;

class MendWork {
 public:
  struct Options {
    // All that is wrong.
    std::span<const Finding> findings;
    // There was more: what is free cannot be told.
    bool cut_short = false;
    // All that may be in use, but those within their inodes; others may be among them. Null: inode
    // tables are read for them.
    std::function<std::vector<InodeNumber>()> directories;
    // Of these, those that may well be in groups from `first` to before `end`; others may be among
    // them, and some not. Null: all are asked for.
    std::function<std::vector<InodeNumber>(GroupNumber first, GroupNumber end)> directories_in;
  };

  // `context`, which is writable, and the findings outlive it.
  MendWork(const ExtContext& context, const Options& options);

  [[nodiscard]] const ExtContext& context() const { return context_; }
  [[nodiscard]] const ExtLayout& layout() const { return context_.layout; }
  [[nodiscard]] std::span<const Finding> findings() const { return options_.findings; }

  // Tables of inodes that are going to be read, at once; numbers that cannot be are left out. Of
  // very many, here and below, the first.
  [[nodiscard]] Result<void> prefetch_inodes(std::span<const InodeNumber> numbers) const;
  // Blocks of the file system that are.
  [[nodiscard]] Result<void> prefetch(std::span<const BlockMap::Run> runs) const;
  // As it stands in its table now; empty: the table was never used that far, or it has no such one.
  [[nodiscard]] Result<std::vector<std::byte>> inode(InodeNumber number) const;
  [[nodiscard]] Result<CheckedInode> checked(InodeNumber number) const;
  // EXT2_FT_*; 0: not in use.
  [[nodiscard]] Result<std::uint8_t> kind_of(InodeNumber number) const;
  [[nodiscard]] Result<void> put_inode(InodeNumber number, std::span<std::byte> bytes);
  // Nothing is written where nothing changes.
  [[nodiscard]] Result<void> put_block(FsBlock block, std::span<const std::byte> bytes);

  // An inode is not in use any more; its names are still there.
  [[nodiscard]] Result<void> release(InodeNumber number);
  // What says when something was deleted.
  [[nodiscard]] std::uint32_t now() const;

  // Who may be a directory, each once, ascending: many are none.
  [[nodiscard]] Result<std::vector<InodeNumber>> possible_directories() const;
  // Of these, those that are likely in some groups, if that can be told without all of them.
  [[nodiscard]] std::optional<std::vector<InodeNumber>> likely_directories(GroupNumber first,
                                                                           GroupNumber end) const;
  // Of these, and of all, those that are.
  [[nodiscard]] Result<std::vector<InodeNumber>> directories_of(
      std::span<const InodeNumber> numbers) const;
  [[nodiscard]] Result<std::vector<InodeNumber>> directories() const;
  // Their blocks, with all that says where these are, in few questions. What they are now.
  [[nodiscard]] Result<std::vector<CheckedInode>> prefetch_directories(
      std::span<const InodeNumber> numbers) const;
  // Calls `visit(number, bytes)` for all inodes in use, in order. It reads all inode tables.
  [[nodiscard]] Result<void> for_each_inode(
      const std::function<Result<void>(InodeNumber, std::span<std::byte>)>& visit) const;

  [[nodiscard]] bool may_allocate() const { return !options_.cut_short; }
  // That is neither marked nor claimed, below `end`. Nothing: there is none, or !may_allocate().
  [[nodiscard]] Result<std::optional<FsBlock>> allocate(FsBlock end = ~FsBlock{0});
  // The same of inodes; its bytes are 0.
  [[nodiscard]] Result<std::optional<InodeNumber>> allocate_inode();

  // Descriptors are written at the end of the round.
  void touch_descriptor(GroupNumber group) { descriptors_.insert(group); }
  void touch_superblock() { superblock_ = true; }
  // A group's bitmap gets what it has when nothing is in use, and is initialized from then on.
  [[nodiscard]] Result<void> initialize_blocks(GroupNumber group);
  [[nodiscard]] Result<void> initialize_inodes(GroupNumber group);
  [[nodiscard]] Result<void> put_block_bitmap(GroupNumber group, std::span<std::byte> bytes);
  [[nodiscard]] Result<void> put_inode_bitmap(GroupNumber group, std::span<std::byte> bytes);
  [[nodiscard]] Result<void> finish();

  void done(const Finding& finding, Repair::Done what) { repairs_.push_back({finding, what}); }
  [[nodiscard]] std::vector<Repair>& repairs() { return repairs_; }

 private:
  // Without reading inode tables.
  [[nodiscard]] bool knows_directories() const;
  [[nodiscard]] Result<bool> find_free(GroupNumber group, FsBlock end);
  [[nodiscard]] Result<std::optional<InodeNumber>> find_free_inode(GroupNumber group, bool beyond);

  const ExtContext& context_;
  const Options options_;
  std::vector<Repair> repairs_;
  std::unordered_set<FsBlock> claimed_;  // and not marked
  std::unordered_set<InodeNumber> claimed_inodes_;
  std::optional<GroupBitmaps> bitmaps_;  // of the group where there was room last
  FsBlock next_ = 0;
  GroupNumber full_ = 0;  // groups below have no room
  std::unordered_set<GroupNumber> descriptors_;
  bool superblock_ = false;
};

}  // namespace mariner::ifsck
