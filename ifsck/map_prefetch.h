// The nodes of many inodes' maps, asked for level by level and of all inodes at once: what is read
// afterwards, inode by inode, is there.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ifsck/ext_context.h"
#include "proto/error.h"

namespace mariner::ifsck {

// Beyond so many they are left to who reads them.
inline constexpr std::size_t kPrefetchedNodesMax = 8192;

struct MapPrefetch {
  const ExtContext* context = nullptr;
  // As they stand in the table, and may be empty; they have at least 128 bytes else.
  std::vector<std::vector<std::byte>> inodes;
};

// Whatever the nodes say: nothing is checked here. Errors: of the past alone.
[[nodiscard]] Result<void> prefetch_maps(std::span<const MapPrefetch> maps);

}  // namespace mariner::ifsck
