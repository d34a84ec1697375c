#include "index/index_file.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>

#include "logging/block_frame.h"
#include "proto/bytes.h"
#include "proto/payload.h"

namespace mariner::index {
namespace {

constexpr logging::BlockKind kSuperblock{0x58444e494e52414d, 1};  // "MARNINDX"
constexpr std::uint64_t kAreasAt = std::uint64_t{1} << 20;
// What a checkpoint needs at most for each block (of the store and of its tree), and beyond.
constexpr std::uint64_t kCheckpointBytesPerBlock = 64;
constexpr std::uint64_t kCheckpointBytesBeyond = std::uint64_t{1} << 20;
constexpr std::uint64_t kAreaUnit = std::uint64_t{1} << 20;

std::uint64_t area_bytes_for(std::uint64_t blocks) {
  const std::uint64_t needed = blocks * kCheckpointBytesPerBlock + kCheckpointBytesBeyond;
  return (needed + kAreaUnit - 1) / kAreaUnit * kAreaUnit;
}

std::optional<IndexSuperblock> unpack(std::span<const std::byte> block) {
  if (!logging::is_sealed(block, kSuperblock)) return std::nullopt;
  const std::byte* const from = block.data();
  IndexSuperblock superblock;
  std::copy_n(from + 16, superblock.file.size(), superblock.file.begin());
  superblock.block_bytes = load_le<std::uint32_t>(from + 32);
  superblock.group_blocks = load_le<std::uint32_t>(from + 36);
  superblock.blocks = load_le<std::uint32_t>(from + 40);
  superblock.checkpoint_crc = load_le<std::uint32_t>(from + 44);
  superblock.area_bytes = load_le<std::uint64_t>(from + 48);
  superblock.generation = load_le<std::uint64_t>(from + 56);
  superblock.checkpoint_bytes = load_le<std::uint64_t>(from + 64);
  return superblock;
}

bool is_sound(const IndexSuperblock& superblock, std::uint64_t disk_bytes) {
  return std::has_single_bit(superblock.block_bytes) &&
         superblock.block_bytes >= kIndexBlockBytesMin &&
         superblock.block_bytes <= kIndexBlockBytesMax && superblock.group_blocks >= 1 &&
         superblock.group_blocks <= 256 && superblock.blocks % superblock.group_blocks == 0 &&
         superblock.area_bytes == area_bytes_for(superblock.blocks) &&
         superblock.checkpoint_bytes <= superblock.area_bytes &&
         superblock.checkpoint_bytes % kBlockBytes == 0 && superblock.end_offset() <= disk_bytes;
}

Error misshapen(std::string what) { return {ErrorCode::kInvalidArgument, std::move(what)}; }

}  // namespace

std::uint64_t IndexSuperblock::area_offset(std::uint64_t of_generation) const {
  return kAreasAt + (of_generation & 1) * area_bytes;
}

std::uint64_t IndexSuperblock::offset_of(BlockAddress address, unsigned place) const {
  CHECK(address.value < blocks && place < 2);
  const std::uint64_t group = address.value / group_blocks;
  const std::uint64_t in_group = address.value % group_blocks;
  return kAreasAt + 2 * area_bytes +
         (group * 2 * group_blocks + place * std::uint64_t{group_blocks} + in_group) * block_bytes;
}

std::uint64_t IndexSuperblock::end_offset() const {
  return kAreasAt + 2 * area_bytes + 2 * std::uint64_t{blocks} * block_bytes;
}

Result<IndexSuperblock> format_index_file(logging::Disk& disk, const IndexShape& shape) {
  if (!std::has_single_bit(shape.block_bytes) || shape.block_bytes < kIndexBlockBytesMin ||
      shape.block_bytes > kIndexBlockBytesMax) {
    return misshapen("an index block must be a power of two from 4 KiB to 1 MiB; " +
                     std::to_string(shape.block_bytes) + " bytes were asked for");
  }
  if (shape.group_blocks < 1 || shape.group_blocks > 256) {
    return misshapen("a group must have 1 to 256 index blocks; " +
                     std::to_string(shape.group_blocks) + " were asked for");
  }
  IndexSuperblock superblock;
  superblock.file = shape.file;
  superblock.block_bytes = shape.block_bytes;
  superblock.group_blocks = shape.group_blocks;
  const std::uint64_t group_bytes = 2 * std::uint64_t{shape.group_blocks} * shape.block_bytes;
  std::uint64_t groups =
      std::min<std::uint64_t>(disk.size_bytes() / group_bytes, UINT32_MAX / shape.group_blocks);
  for (; groups > 0; --groups) {  // the areas take room from the blocks
    superblock.blocks = static_cast<std::uint32_t>(groups * shape.group_blocks);
    superblock.area_bytes = area_bytes_for(superblock.blocks);
    if (superblock.end_offset() <= disk.size_bytes()) break;
    const std::uint64_t missing = superblock.end_offset() - disk.size_bytes();
    groups -= std::min(groups - 1, missing / (2 * group_bytes));
  }
  if (groups == 0) {
    return misshapen("an index file needs " + std::to_string(group_bytes + 5 * kAreaUnit) +
                     " bytes at least; this one has " + std::to_string(disk.size_bytes()));
  }
  // The older copy first: a file is an index file only when both are whole.
  Payload block = Payload::zeroed(kBlockBytes);
  for (const std::uint64_t generation : {std::uint64_t{1}, std::uint64_t{0}}) {
    if (generation == 0) pack_index_superblock(superblock, block.bytes());
    const logging::ConstBytes part = block.bytes();
    if (Result<void> r =
            disk.write(superblock_offset(generation), {&part, 1}, logging::Durability::kDurable);
        !r) {
      return r.error();
    }
  }
  return superblock;
}

Result<IndexSuperblock> read_index_superblock(logging::Disk& disk) {
  std::optional<IndexSuperblock> newest;
  std::optional<Error> unreadable;
  Payload block = Payload::allocate(kBlockBytes);
  for (const std::uint64_t generation : {std::uint64_t{0}, std::uint64_t{1}}) {
    if (Result<void> r = disk.read(superblock_offset(generation), block.bytes()); !r) {
      unreadable = r.error();
      continue;
    }
    const std::optional<IndexSuperblock> found = unpack(block.bytes());
    if (found && (!newest || found->generation > newest->generation)) newest = found;
  }
  if (!newest && unreadable) return *unreadable;
  if (!newest) return Error{ErrorCode::kCorrupt, "neither copy of the index's superblock is good"};
  if (!is_sound(*newest, disk.size_bytes())) {
    return Error{ErrorCode::kCorrupt, "the index's superblock does not fit its file of " +
                                          std::to_string(disk.size_bytes()) +
                                          " bytes (it ends at " +
                                          std::to_string(newest->end_offset()) + ")"};
  }
  return *newest;
}

void pack_index_superblock(const IndexSuperblock& superblock, std::span<std::byte> block) {
  CHECK(block.size() == kBlockBytes);
  std::ranges::fill(block, std::byte{0});
  std::byte* const to = block.data();
  std::ranges::copy(superblock.file, to + 16);
  store_le(to + 32, superblock.block_bytes);
  store_le(to + 36, superblock.group_blocks);
  store_le(to + 40, superblock.blocks);
  store_le(to + 44, superblock.checkpoint_crc);
  store_le(to + 48, superblock.area_bytes);
  store_le(to + 56, superblock.generation);
  store_le(to + 64, superblock.checkpoint_bytes);
  logging::seal_block(block, kSuperblock);
}

}  // namespace mariner::index
