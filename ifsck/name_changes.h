// Which names a directory has at one of two moments and not at the other.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "ifsck/block_ranges.h"
#include "ifsck/ext_context.h"
#include "ifsck/inode_check.h"
#include "proto/error.h"

namespace mariner::ifsck {

struct DirectoryName {
  std::string name;
  InodeNumber inode = 0;
  std::uint8_t type = 0;  // EXT2_FT_*; 0 where the file system has none
  friend auto operator<=>(const DirectoryName&, const DirectoryName&) = default;
};

struct NameChanges {
  std::vector<DirectoryName> lost;  // ascending, both
  std::vector<DirectoryName> gained;
};

// One moment of the directory; it need not be one then.
struct DirectoryAt {
  const ExtContext& context;
  const CheckedInode& inode;
};

// Without "." and "..". Blocks that it has at both moments, at the same place, and that are not
// `dirty` are alike and not read. Errors: of the past alone.
[[nodiscard]] Result<NameChanges> find_name_changes(InodeNumber number, const DirectoryAt& from,
                                                    const DirectoryAt& to,
                                                    const BlockRanges& dirty);

}  // namespace mariner::ifsck
