// Whether a block device may become a disk of a log: only one that holds nothing. Blocking.
#pragma once

#include "logging/disk.h"

namespace mariner::logging {

// What file systems, partition tables, volume managers and arrays are known by stands within so
// much of a disk's beginning or end (Btrfs at 64 KiB, ZFS in the first and the last 512 KiB, GPT
// and md in the last sectors).
inline constexpr std::uint64_t kSignatureBytes = 1u << 20;

// kAlreadyExists if there is anything but zeros in the first and the last kSignatureBytes: it says
// where, and what to do.
Result<void> check_fresh(Disk& disk, const std::string& path);

}  // namespace mariner::logging
