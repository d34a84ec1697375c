// What is different between two moments of a file system, the first of which is known: the inodes
// that changed, as they were and as they are, and the blocks.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

#include "ifsck/baseline.h"
#include "ifsck/block_ranges.h"
#include "ifsck/ext_context.h"
#include "ifsck/finding.h"
#include "ifsck/inode_check.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::ifsck {

class RecheckMemory;

struct MomentChange {
  struct Inode {
    CheckedInode then;
    CheckedInode now;
  };
  using Inodes = std::map<InodeNumber, std::shared_ptr<const Inode>>;

  const ExtContext& then;
  const ExtContext& now;
  const Baseline& known;  // of then
  BlockRanges dirty;
  std::set<GroupNumber> groups;  // whose bitmaps, or descriptors, are dirty
  // Changed themselves, or a block of theirs that has an owner did.
  Inodes inodes;

  struct Options {
    // Of checks of the same moments before; it is begun.
    const RecheckMemory* memory = nullptr;
    // What inodes claim is asked for, and nothing else of what changed is going to be read: neither
    // bitmaps nor what stands in directories.
    bool claims_only = false;
    // Blocks that are going to be read by others: they are asked for together with the first ones.
    std::span<const FsBlock> also = {};
  };
  // `changed`: of the volume. kInvalidArgument: no comparison (ExtContext::is_comparable_with()).
  // Others: as the past says.
  [[nodiscard]] static Result<MomentChange> find(const ExtContext& then, const ExtContext& now,
                                                 const Baseline& known,
                                                 std::span<const BlockRange> changed,
                                                 const Options& options);
};

// The inode table's bytes of one inode; empty where the table was never used as far as that.
[[nodiscard]] Result<std::vector<std::byte>> read_inode(const ExtContext& context,
                                                        InodeNumber number);

}  // namespace mariner::ifsck
