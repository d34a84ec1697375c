// One block of a directory: its entries, as they stand there.
//
// Pure: bytes in. Blocks of an index (dir_index) are directory blocks, too, that show one empty
// entry to who does not know it; their first one has "." and "..".
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "ifsck/ext_layout.h"

namespace mariner::ifsck {

struct DirectoryEntry {
  std::uint32_t offset = 0;  // in the block
  std::uint32_t length = 0;  // of the entry, with what is free behind the name
  InodeNumber inode = 0;     // 0: not in use
  std::uint8_t type = 0;     // EXT2_FT_*; 0 where the file system has none
  std::string_view name;     // in the block
};

// Calls `visit` for each entry in order, unused ones included. False: from some entry on the block
// is not one of a directory; those before it were visited.
bool for_each_entry(std::span<const std::byte> block,
                    const std::function<void(const DirectoryEntry&)>& visit);

}  // namespace mariner::ifsck
