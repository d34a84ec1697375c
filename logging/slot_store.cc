#include "logging/slot_store.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "proto/bytes.h"
#include "proto/payload.h"

namespace mariner::logging {

namespace {

Result<void> write_copy(Disk& disk, const Superblock& superblock, std::uint32_t copy,
                        std::span<const std::byte> map) {
  const Payload bytes = Payload::copy_of(map);
  const ConstBytes part = bytes.bytes();
  return disk.write(superblock.map_first_block(copy) * kBlockBytes, {&part, 1},
                    Durability::kDurable);
}

}  // namespace

Result<void> write_slot_map(Disk& disk, const Superblock& superblock, const SlotMap& map,
                            std::uint64_t generation) {
  const std::vector<std::byte> bytes = map.to_bytes(generation);
  for (std::uint32_t copy = 0; copy < 2; ++copy) {
    if (Result<void> r = write_copy(disk, superblock, copy, bytes); !r) return r;
  }
  return {};
}

Result<SlotMap::Found> read_slot_map(Disk& disk, const Superblock& superblock) {
  std::optional<SlotMap::Found> best;
  bool alike = true;
  Error why;
  Payload bytes =
      Payload::allocate(std::size_t{map_blocks_for(superblock.slot_count)} * kBlockBytes);
  for (std::uint32_t copy = 0; copy < 2; ++copy) {
    const Result<void> read =
        disk.read(superblock.map_first_block(copy) * kBlockBytes, bytes.bytes());
    Result<SlotMap::Found> found = read ? SlotMap::from_bytes(superblock, bytes.bytes())
                                        : Result<SlotMap::Found>(read.error());
    if (!found) {
      why = found.error();
      alike = false;
      continue;
    }
    alike = alike && (!best || found->generation == best->generation);
    if (!best || found->generation > best->generation) {
      best = *std::move(found);
      best->overwrite_first = 1 - copy;
    }
  }
  if (!best) {
    return Error{why.code, "log disk " + std::to_string(superblock.disk) +
                               ": neither copy of the map of its slots can be used (" +
                               why.message +
                               "); what it holds cannot be found without it: restore the disk, or "
                               "name it in [log] lost"};
  }
  best->alike = alike;
  return *std::move(best);
}

Result<SlotMap::Found> recover_slot_map(Disk& disk, const Superblock& superblock) {
  Result<SlotMap::Found> found = read_slot_map(disk, superblock);
  if (!found || found->alike) return found;
  Result<void> written =
      write_copy(disk, superblock, found->overwrite_first, found->map.to_bytes(found->generation));
  if (!written) return written.error();
  found->alike = true;
  return found;
}

}  // namespace mariner::logging
