// One file or folder, and the way to it: what is wrong with these inodes, the directories on the
// way, and (of a folder) what its entries name.
//
// Whether others claim their blocks, too, only a look at what has changed can tell (in_scope()).
#pragma once

#include <string_view>
#include <vector>

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
  // there, by the name that is missing. Others: as the past says.
  [[nodiscard]] static Result<PathCheck> run(const ExtContext& context, std::string_view path);

  // A finding of a whole check that is about what this looks at.
  [[nodiscard]] bool in_scope(const Finding& finding) const;
  // Whether an inode, not one of these, claims a block that one of these does.
  [[nodiscard]] bool overlaps(const CheckedInode& other) const;
};

}  // namespace mariner::ifsck
