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

  // `changed`: of the volume. `memory`: of checks of the same moments before; it is begun.
  // kInvalidArgument: no comparison (ExtContext::is_comparable_with()). Others: as the past says.
  [[nodiscard]] static Result<MomentChange> find(const ExtContext& then, const ExtContext& now,
                                                 const Baseline& known,
                                                 std::span<const BlockRange> changed,
                                                 const RecheckMemory* memory = nullptr);
};

// The inode table's bytes of one inode; empty where the table was never used as far as that.
[[nodiscard]] Result<std::vector<std::byte>> read_inode(const ExtContext& context,
                                                        InodeNumber number);

}  // namespace mariner::ifsck
