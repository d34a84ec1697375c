// A node of an extent tree as it is written: its head and its entries.
#pragma once

#include <ext2fs/ext2_fs.h>
#include <ext2fs/ext3_extents.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ifsck/block_map.h"

namespace mariner::ifsck {

// Of a leaf, or of a node above.
struct ExtentEntry {
  std::uint32_t logical = 0;
  FsBlock block = 0;
  std::uint16_t length = 0;  // as it is stored; of an index: 0
};

inline constexpr std::size_t kExtentHeadBytes = sizeof(ext3_extent_header);
inline constexpr std::size_t kExtentEntryBytes = sizeof(ext3_extent);

// Entries that a node of so many bytes has room for.
[[nodiscard]] constexpr std::size_t extents_max(std::size_t bytes) {
  return (bytes - kExtentHeadBytes) / kExtentEntryBytes;
}

// A run as entries of leaves, as many as it takes.
void add_extents(const BlockMap::Run& run, std::vector<ExtentEntry>& to);

// `to` is all of the node, an inode's root or a block: what stands behind the entries is left, and
// a checksum is the caller's. Height 0: a leaf. Requires that there is room.
void put_extent_node(std::span<std::byte> to, std::span<const ExtentEntry> entries,
                     std::size_t height);

}  // namespace mariner::ifsck
