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

// One thread.
class InodeSliceReader {
 public:
  // Slices that are made at a time: each takes as many bytes as an inode.
  static constexpr std::size_t kSlicesMax = 4'000'000;
  // ... and those that are kept of inodes that stood beside: in the same block as one that was
  // asked for, and maybe asked for next (a directory, and what is in it).
  static constexpr std::size_t kBesideMax = 200'000;

  // Both outlive it.
  InodeSliceReader(BlockTimelines& timelines, const ifsck::ExtLayout& layout)
      : timelines_(timelines), layout_(layout) {}

  // Of each of `numbers`, which are inodes that there can be, each once: the first slice begins
  // where the stretch does. Blocks with several of them are read once. Errors: of the past; kLimit.
  [[nodiscard]] Result<InodeSlices> read(std::span<const ifsck::InodeNumber> numbers);

 private:
  struct Block;
  [[nodiscard]] std::vector<Block> blocks_of(std::span<const ifsck::InodeNumber> numbers) const;
  // What a block was from a moment on, behind what it was before.
  void add(const Block& block, const InodeSlice& now, InodeSlices& slices);
  void take(ifsck::InodeNumber number, const InodeSlice& now, std::vector<InodeSlice>& to);
  void forget_beside(const Block& block);

  BlockTimelines& timelines_;
  const ifsck::ExtLayout& layout_;
  InodeSlices beside_;
  std::size_t beside_slices_ = 0;
  std::size_t made_ = 0;
};

}  // namespace mariner::uvfs
