// GUID partition tables (UEFI specification, chapter 5), with their CRCs.
#pragma once

#include <cstdint>
#include <span>

#include "ifsck/view.h"
#include "proto/error.h"
#include "uvfs/parts/partition_table.h"

namespace mariner::uvfs {

struct GptQuestion {
  std::span<const std::uint32_t> sector_bytes;  // those that sectors may have
  // A sector in which the backup may be besides the volume's last: where the protective MBR says
  // that the disk ended (before it was grown).
  std::uint64_t former_last = 0;
};

// The primary table, or else its backup. Where neither is good there are no partitions; notes say
// what is wrong. `sector_bytes` is 0 then. Errors: as the past says.
[[nodiscard]] Result<PartitionTable> read_gpt(ifsck::View& view, const GptQuestion& question);

}  // namespace mariner::uvfs
