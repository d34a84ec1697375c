// The load: many writes of random kinds, sizes and places outstanding at once, all on record.
//
// Two writes that share a 4 KiB block are never outstanding together, so that the order of all
// versions of a block is known. Some reads go along, and are compared with the model at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>

#include "proto/error.h"
#include "tests/hammer/initiator.h"

namespace mariner::hammer {

struct LoadOptions {
  InitiatorOptions initiator;
  std::filesystem::path campaign;  // the journals' folder
  CellRange region;                // count 0: the whole LUN
  std::size_t depth = 48;
  std::uint64_t writes_max = 0;  // 0: no limit
  double seconds_max = 0;        // 0: no limit
  std::uint64_t seed = 0;        // 0: from the clock
  std::uint32_t unmap_percent = 4;
  std::uint32_t same_percent = 4;
  std::uint32_t read_percent = 10;
  std::uint32_t block_writes_only = 0;  // each write is this many cells; 0: a mixture
};

struct LoadReport {
  std::uint64_t seed = 0;
  std::uint64_t issued = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t reads = 0;
  std::uint64_t payload_bytes = 0;
  double seconds = 0;
  std::string end;  // done, lost, refused: why it stopped
  std::string detail;
  std::string fault;  // a read that returned wrong bytes; empty: none
};

// Runs until a limit, `stop`, a lost connection or a write that did not end with GOOD.
Result<LoadReport> run_load(const LoadOptions& options, const std::atomic<bool>& stop);

}  // namespace mariner::hammer
