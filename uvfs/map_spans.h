// Where the contents of an object of ext2, ext3 or ext4 lay over a stretch.
#pragma once

#include <span>
#include <vector>

#include "ifsck/block_map.h"
#include "ifsck/ext_context.h"
#include "proto/error.h"
#include "uvfs/block_timelines.h"
#include "uvfs/inode_slices.h"
#include "uvfs/version_cache.h"

namespace mariner::uvfs {

// From a moment on, until the next one. What is not there, or has its contents in the inode, has an
// empty map.
struct MapSpan {
  SequenceNumber from;
  VersionTime time;
  ifsck::BlockMap map;
};

// Reads what read_map_spans() of these inodes will, most of it, at once. (A cache has room for so
// many.)
[[nodiscard]] Result<void> prefetch_map_nodes(VersionCache& cache, const ifsck::ExtContext& context,
                                              std::span<const std::span<const InodeSlice>> inodes);

// `slices` are those of the inode, over the whole stretch. Spans that follow each other differ.
// What a map has wrong (BlockMap::Fault) has no blocks. Errors: of the past; kLimit.
[[nodiscard]] Result<std::vector<MapSpan>> read_map_spans(BlockTimelines& timelines,
                                                          VersionCache& cache,
                                                          const ifsck::ExtContext& context,
                                                          ifsck::InodeNumber number,
                                                          std::span<const InodeSlice> slices);

}  // namespace mariner::uvfs
