// Why the probe can hurt nothing.
//
// - It writes to Superblock::scratch() alone: whole blocks behind the last slot of the allocation
//   list and in front of the first track. No structure stands there and nothing reads it: recovery
//   reads the superblocks, the list's slots and the tracks, each at places computed from the
//   superblock, which was read and verified before. (A structure that is to stand there some day
//   needs a new version of the superblock, which this program then refuses to open.)
// - A write that a power cut tears is torn within its own sectors. Should the device write in
// larger
//   units, then the scratch area begins and ends at multiples of 256 KiB of the disk, so that no
//   such unit has neighbours in it.
// - What it writes is no structure of the log: no magic begins with these bytes.
// - The disk is locked against other processes, and in this one the probe ends, with nothing in
//   flight, before anything else uses the disk.
#include "logging/durability_probe.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "proto/check.h"
#include "proto/payload.h"

namespace mariner::logging {
namespace {

using std::chrono::nanoseconds;

constexpr std::uint64_t kTrialBytes = 8192;  // a batch of one block: its header area and the block
static_assert(kScratchBlocks * kBlockBytes >= kTrialWritesMax * kTrialBytes);
// A flush must be faster by so much to be chosen: chance alone changes nothing from start to start.
constexpr int kClearlyPercent = 90;

nanoseconds median(std::vector<nanoseconds>& times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

std::string microseconds(nanoseconds time) {
  return std::to_string((time.count() + 500) / 1000) + " us";
}

// An asynchronous write, waited for: what a batch of the log writer goes through.
Result<void> write_and_wait(const DurabilityProbe& probe, std::uint64_t offset, ConstBytes bytes) {
  std::optional<Result<void>> outcome;
  probe.disk.async_write(offset, {bytes}, Durability::kDurable,
                         [&outcome](Result<void> result) { outcome = std::move(result); });
  while (!outcome) probe.ring.wait();
  return *std::move(outcome);
}

// Space that was never written would cost a change of the file system's metadata, once.
Result<void> write_scratch_once(Disk& disk, ByteRange scratch, const Payload& filler) {
  for (std::uint64_t at = scratch.offset; at < scratch.end(); at += filler.size()) {
    const ConstBytes part = filler.bytes();
    if (Result<void> r = disk.write(at, {&part, 1}, Durability::kVolatile); !r) return r;
  }
  return disk.flush();
}

DurableChoice measure(const DurabilityProbe& probe) {
  DurableChoice choice;
  const std::optional<ByteRange> scratch = probe.superblock.scratch();
  if (!scratch) {
    choice.not_measured = "its allocation list leaves no room to try in";
    return choice;
  }
  Payload filler = Payload::allocate(kTrialBytes);
  std::memset(filler.data(), 's', filler.size());
  if (Result<void> r = write_scratch_once(probe.disk, *scratch, filler); !r) {
    choice.not_measured = r.error().message;
    return choice;
  }
  DurableTrial trial;
  trial.write = [&](DurableWay way, std::uint32_t index) {
    probe.disk.set_durable_way(way);
    return write_and_wait(probe, scratch->offset + index * kTrialBytes, filler.bytes());
  };
  trial.now = [&] { return probe.clock.monotonic_time(); };
  return measure_durable_ways(trial);
}

}  // namespace

const char* durable_way_name(DurableWay way) { return way == DurableWay::kFua ? "fua" : "flush"; }

std::string to_string(const DurableChoice& choice) {
  std::string text = choice.way == DurableWay::kFua ? "each write forced to the medium (fua)"
                                                    : "a flush behind each write (flush)";
  if (choice.configured) return text + ", as configured";
  if (choice.writes == 0) return text + ", not measured: " + choice.not_measured;
  return text + ", measured at start: fua " + microseconds(choice.fua) + ", flush " +
         microseconds(choice.flush) + " (medians of " + std::to_string(choice.writes) +
         " writes of 8 KiB)";
}

DurableChoice measure_durable_ways(DurableTrial& trial) {
  DurableChoice choice;
  std::vector<nanoseconds> times[2];
  const auto attempt = [&](DurableWay way, std::uint32_t index) -> Result<void> {
    const nanoseconds began = trial.now();
    Result<void> written = trial.write(way, index);
    if (written) times[static_cast<std::size_t>(way)].push_back(trial.now() - began);
    return written;
  };
  const nanoseconds began = trial.now();
  std::uint32_t pairs = 0;
  for (; pairs < kTrialWritesMax && trial.now() - began < kTrialTimeMax; ++pairs) {
    // Each goes first as often as the other: what the first leaves to do may burden the second.
    const DurableWay first = pairs % 2 == 0 ? DurableWay::kFua : DurableWay::kFlush;
    const DurableWay second = pairs % 2 == 0 ? DurableWay::kFlush : DurableWay::kFua;
    for (const DurableWay way : {first, second}) {
      const Result<void> written = attempt(way, pairs);
      if (written) continue;
      choice.way = way == DurableWay::kFua ? DurableWay::kFlush : DurableWay::kFua;
      choice.not_measured =
          std::string(durable_way_name(way)) + " failed: " + written.error().message;
      // Neither works: as if nothing had been tried. The log meets the error with somebody to tell.
      if (!attempt(choice.way, pairs)) choice.way = DurableWay::kFua;
      return choice;
    }
  }
  if (pairs < kTrialWritesMin) {
    choice.not_measured = "only " + std::to_string(pairs) + " writes of each kind in " +
                          std::to_string(kTrialTimeMax.count()) + " ms";
    return choice;
  }
  choice.writes = pairs;
  choice.fua = median(times[static_cast<std::size_t>(DurableWay::kFua)]);
  choice.flush = median(times[static_cast<std::size_t>(DurableWay::kFlush)]);
  if (choice.flush * 100 < choice.fua * kClearlyPercent) choice.way = DurableWay::kFlush;
  return choice;
}

DurableChoice choose_durable_way(const DurabilityProbe& probe,
                                 std::optional<DurableWay> configured) {
  DurableChoice choice;
  if (configured) {
    choice.way = *configured;
    choice.configured = true;
  } else {
    CHECK(probe.ring.in_flight() == 0);
    choice = measure(probe);
  }
  probe.disk.set_durable_way(choice.way);
  return choice;
}

}  // namespace mariner::logging
