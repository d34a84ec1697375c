// The shape of an index file: where its superblock, its checkpoints and its blocks stand.
// FORMAT.md sections 1 and 2.
//
// Each block has two places and is written to them by turns, so that its only copy is never
// overwritten. Blocks stand in groups: first one place of all of a group, then the other, so that
// neighbours are read and written together. The superblock has two copies, written by turns; the
// newer one names the checkpoint that says which places hold.
#pragma once

#include <cstdint>

#include "index/index_block.h"
#include "logging/disk.h"

namespace mariner::index {

struct IndexSuperblock {
  IndexFileId file{};
  std::uint32_t block_bytes = 0;
  std::uint32_t group_blocks = 0;
  std::uint32_t blocks = 0;      // capacity
  std::uint64_t area_bytes = 0;  // of each of the two checkpoint areas
  std::uint64_t generation = 0;  // counts checkpoints, from 1
  // The newest checkpoint; none in a new file (0 bytes).
  std::uint64_t checkpoint_bytes = 0;
  std::uint32_t checkpoint_crc = 0;

  friend bool operator==(const IndexSuperblock&, const IndexSuperblock&) = default;

  // Checkpoints alternate between the areas.
  [[nodiscard]] std::uint64_t area_offset(std::uint64_t of_generation) const;
  // Of place 0 or 1 of a block.
  [[nodiscard]] std::uint64_t offset_of(BlockAddress address, unsigned place) const;
  [[nodiscard]] std::uint64_t end_offset() const;
};

struct IndexShape {
  IndexFileId file{};
  std::uint32_t block_bytes = 16384;  // a power of two from 4 KiB to 1 MiB
  std::uint32_t group_blocks = 32;    // 1 to 256; a run of blocks that is committed lies in a group
};

// A file of as many blocks as `disk` has room for. Durable on return. kInvalidArgument when the
// shape is wrong or the disk too small.
Result<IndexSuperblock> format_index_file(logging::Disk& disk, const IndexShape& shape);

// The newer good copy. kCorrupt when there is none or the disk is shorter than it says.
Result<IndexSuperblock> read_index_superblock(logging::Disk& disk);

// The bytes of the copy that a checkpoint of this generation writes, and where they go.
void pack_index_superblock(const IndexSuperblock& superblock, std::span<std::byte> block);
[[nodiscard]] inline std::uint64_t superblock_offset(std::uint64_t generation) {
  return (generation & 1) * kBlockBytes;
}

}  // namespace mariner::index
