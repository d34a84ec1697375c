// Reads and writes the slot map of a log disk (slot_map.h), which stands there twice.
// FORMAT.md section 7. Blocking.
//
// A new map is written over one copy, durably, and then over the other: whatever a crash leaves,
// one of them is whole. The first is never the only one that is (SlotMap::Found::overwrite_first).
// As both are alike in between, losing either costs nothing.
#pragma once

#include <cstdint>

#include "logging/disk.h"
#include "logging/slot_map.h"

namespace mariner::logging {

// Both copies. Durable on return.
Result<void> write_slot_map(Disk& disk, const Superblock& superblock, const SlotMap& map,
                            std::uint64_t generation);

// The newer whole one; one that cannot be read counts as damaged. kCorrupt, or what reading gave,
// when there is none.
Result<SlotMap::Found> read_slot_map(Disk& disk, const Superblock& superblock);

// The same. Both copies hold it, durably, on return: what is done by it must not be undone by an
// older one that is left over.
Result<SlotMap::Found> recover_slot_map(Disk& disk, const Superblock& superblock);

}  // namespace mariner::logging
