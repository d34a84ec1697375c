// The inode that keeps blocks for more group descriptors (resize_inode): what it has is given by
// where these are.
//
// One doubly indirect block, that may be anywhere; each reserved block behind the descriptors is an
// indirect block, that names the same block of each group that has a copy of the superblock.
#pragma once

#include <optional>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/ext_context.h"

namespace mariner::ifsck {

struct ResizeInode {
  std::vector<FsBlock> reserved;             // in order
  std::vector<std::vector<FsBlock>> copies;  // of each
  std::size_t first = 0;                     // entry of the first one in the doubly indirect block

  // Nothing: the file system has none. Errors: none.
  [[nodiscard]] static std::optional<ResizeInode> of(const ExtContext& context);

  // Whether a map without faults is its.
  [[nodiscard]] bool fits(const BlockMap& map, std::uint32_t block_bytes) const;
};

}  // namespace mariner::ifsck
