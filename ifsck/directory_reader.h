// The entries of one directory, block by block, or from within its inode; and what is wrong with
// them whatever they name.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "ifsck/block_map.h"
#include "ifsck/ext_context.h"
#include "ifsck/finding.h"
#include "proto/error.h"

namespace mariner::ifsck {

class DirectoryVisitor {
 public:
  virtual ~DirectoryVisitor() = default;
  virtual void found(const Finding& finding) = 0;
  // "." (which is the directory itself) or "..", of an inode that can be.
  virtual void dot(InodeNumber inode, bool parent) = 0;
  // Another name, of an inode that need not be. It is good during the call.
  virtual void entry(InodeNumber inode, std::uint8_t type, std::string_view name) = 0;
};

struct DirectoryBlocks {
  InodeNumber number = 0;
  const BlockMap* map = nullptr;
  bool inlined = false;  // the entries are in the inode
  bool indexed = false;  // an index is to be looked at
  // What is wrong is not asked for: names, checksums and the index are not looked at.
  bool trusted = false;
};

// Reads those blocks for which `wanted(logical, block)`; what is missing is found in any case. What
// is in the inode is always wanted. An index is read whenever something is wanted; where a block of
// it is wanted, hashes of the names in all blocks are looked at. Errors: of the past alone.
[[nodiscard]] Result<void> read_directory(
    const ExtContext& context, const DirectoryBlocks& directory,
    const std::function<bool(std::uint64_t logical, FsBlock block)>& wanted,
    DirectoryVisitor& visitor);

}  // namespace mariner::ifsck
