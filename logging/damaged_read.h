// Reads of what may be damaged, for who tells from the bytes what is whole and reports the rest.
#pragma once

#include <cstdint>
#include <span>

#include "logging/disk.h"

namespace mariner::logging {

// Like Disk::read(), but what the disk itself knows to be damaged (kCorrupt: of a damaged pack) is
// zeros in `to`, to the block: so it costs the batches that stand there, and not the log. Other
// errors are passed on.
Result<void> read_with_damage(Disk& disk, std::uint64_t offset, std::span<std::byte> to);

}  // namespace mariner::logging
