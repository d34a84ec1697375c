// Finds out in which of its two ways (DurableWay) a log disk makes a small batch durable faster.
//
// Writes of 8 KiB, alternating between the ways, one at a time, to the scratch area of the log disk
// (FORMAT.md section 1), which holds nothing: whatever becomes of it, power cuts included, hurts
// nothing. The medians decide. Bounded in number and time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "logging/file_disk.h"
#include "logging/track.h"
#include "proto/unique_function.h"

namespace mariner::logging {

// "fua", "flush".
[[nodiscard]] const char* durable_way_name(DurableWay way);

// Which way a disk goes, and why.
struct DurableChoice {
  DurableWay way = DurableWay::kFua;
  bool configured = false;  // not asked of the disk
  // Medians of `writes` writes each; 0 writes: not measured, and if not configured, why not.
  std::uint32_t writes = 0;
  std::chrono::nanoseconds fua{0};
  std::chrono::nanoseconds flush{0};
  std::string not_measured;
};

// For people: "a flush behind each write, measured at start: fua 110 us, flush 90 us".
[[nodiscard]] std::string to_string(const DurableChoice& choice);

// The measurement without its disk: what it does and when it is, so that a test can say both.
struct DurableTrial {
  // Makes one write durable, the `index`th of its way; what comes back decides nothing but whether
  // the way works.
  UniqueFunction<Result<void>(DurableWay way, std::uint32_t index)> write;
  UniqueFunction<std::chrono::nanoseconds()> now;
};
inline constexpr std::uint32_t kTrialWritesMax = 32;  // of each way
inline constexpr std::uint32_t kTrialWritesMin = 4;   // fewer decide nothing
inline constexpr std::chrono::milliseconds kTrialTimeMax{300};
[[nodiscard]] DurableChoice measure_durable_ways(DurableTrial& trial);

struct DurabilityProbe {
  FileDisk& disk;
  IoRing& ring;  // the disk's; nothing may be in flight in it
  Executor& clock;
  const Superblock& superblock;  // of the log on the disk
};
// Sets the disk's way: to `configured`, or without it to the faster one. Blocking; before the disk
// is used. Never fails: a disk that cannot be measured goes by kFua.
DurableChoice choose_durable_way(const DurabilityProbe& probe,
                                 std::optional<DurableWay> configured);

}  // namespace mariner::logging
