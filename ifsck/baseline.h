// What is known of a file system at a moment when nothing was wrong with it, but maybe its bitmaps
// and counts: from there another moment is checked by what has changed (recheck.h).
//
// 16 bytes for each block of a directory and each block that describes others.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ifsck/block_table.h"
#include "ifsck/finding.h"
#include "ifsck/inode_check.h"
#include "proto/units.h"

namespace mariner::ifsck {

struct Baseline {
  struct Group {
    std::int64_t free_blocks = 0;
    std::int64_t free_inodes = 0;
    std::int64_t directories = 0;
    friend bool operator==(const Group&, const Group&) = default;
  };

  SequenceNumber at;
  // Whose a block is that says more than contents: of a directory, or one that describes others.
  BlockTable owners;
  BlockTable attributes;      // blocks of them, and how many share each
  std::vector<Group> groups;  // as they should say
  // Where bitmaps and counts are wrong.
  std::unordered_set<FsBlock> mismarked;
  std::unordered_set<InodeNumber> mismarked_inodes;
  std::unordered_set<GroupNumber> doubtful;
  std::unordered_set<FsBlock> doubtful_attributes;

  // Of one that is_derived().
  void note(const Finding& finding);
  friend bool operator==(const Baseline&, const Baseline&) = default;
};

// From one baseline to that of another moment.
struct BaselineChange {
  std::unordered_set<FsBlock> disowned;
  std::unordered_map<FsBlock, InodeNumber> owned;         // afterwards
  std::unordered_map<FsBlock, std::uint32_t> attributes;  // 0: it is none any more
  std::map<GroupNumber, Baseline::Group> groups;          // what is to be added
  // Looked at again: what is wrong of them is in `wrong`.
  std::unordered_set<FsBlock> blocks;
  std::unordered_set<InodeNumber> inodes;
  std::vector<Finding> wrong;

  void apply(SequenceNumber at, Baseline& baseline) const;
};

// Of what an inode claims, the blocks that have an owner.
template <typename Visit>
void for_each_owned(const CheckedInode& inode, Visit visit) {
  for (const BlockMap::Node& node : inode.map.nodes) visit(node.block);
  if (!inode.directory) return;
  for (const BlockMap::Run& run : inode.map.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) visit(run.physical + i);
  }
}

}  // namespace mariner::ifsck
