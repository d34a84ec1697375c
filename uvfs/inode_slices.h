// What inodes of ext2, ext3 or ext4 were over a stretch, as they stand in their tables.
#pragma once

#include <cstddef>
#include <span>
#include <unordered_map>
#include <vector>

#include "ifsck/ext_layout.h"
#include "proto/error.h"
#include "uvfs/block_timelines.h"

namespace mariner::uvfs {

// From a moment on, until the next one. Slices that follow each other are not is_same_inode().
struct InodeSlice {
  SequenceNumber from;
  VersionTime time;
  std::vector<std::byte> bytes;
};

using InodeSlices = std::unordered_map<ifsck::InodeNumber, std::vector<InodeSlice>>;

// Slices that are made at a time: each takes as many bytes as an inode.
inline constexpr std::size_t kInodeSlicesMax = 4'000'000;

// Of each of `numbers`, which are inodes that there can be: the first slice begins where the
// stretch does. Blocks with several of them are read once. Errors: of the past; kLimit.
[[nodiscard]] Result<InodeSlices> read_inode_slices(BlockTimelines& timelines,
                                                    const ifsck::ExtLayout& layout,
                                                    std::span<const ifsck::InodeNumber> numbers);

}  // namespace mariner::uvfs
