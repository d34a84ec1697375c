// One file or folder, and the way to it: what is wrong with these inodes, the directories on the
// way, and (of a folder) what its entries name.
//
// Whether others claim their blocks, too, only a look at what has changed can tell (in_scope()).
#pragma once

#include <string_view>
#include <vector>

#include "ifsck/baseline.h"
#include "ifsck/block_ranges.h"
#include "ifsck/ext_context.h"
#include "ifsck/finding.h"
#include "ifsck/inode_check.h"
#include "proto/error.h"

namespace mariner::ifsck {

struct PathCheck {
  struct Step {
    InodeNumber number = 0;
    CheckedInode inode;
  };
  std::vector<Step> steps;  // from the root on
  std::vector<Finding> findings;

  // Of an absolute path, links not followed. kInvalidArgument: it is none. kNotFound: nothing is
  // there, by the name that is missing. Others: as the past says. `known`: of a moment nearby, says
  // beforehand what is likely to be read; null: nothing does.
  [[nodiscard]] static Result<PathCheck> run(const ExtContext& context, std::string_view path,
                                             const Baseline* known = nullptr);

  // What is likely to be read of one inode, first of the root: itself, and the blocks near it that
  // it had at a moment nearby; those of a folder, and those that describe others.
  [[nodiscard]] static std::vector<FsBlock> likely(const ExtContext& context, const Baseline& known,
                                                   InodeNumber number);

  // A finding of a whole check that is about what this looks at.
  [[nodiscard]] bool in_scope(const Finding& finding) const;
  // What these claim.
  [[nodiscard]] BlockRanges claims() const;
};

}  // namespace mariner::ifsck
