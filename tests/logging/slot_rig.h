// A log on a faulty disk whose tracks stand in slots, with all that belongs to it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "logging/log_array.h"
#include "logging/slotted_disk.h"
#include "tests/logging/log_testing.h"
#include "tests/support/passing_disk.h"

namespace mariner::logging::test {

// Blocks that differ in their first bytes only, and compress well.
Payload text_of(std::uint64_t seed, std::uint32_t blocks);
// That do not.
Payload noise_of(std::uint64_t seed, std::uint32_t blocks);

// Passes everything on; `before_read` runs before each blocking read, on its thread.
class HookedDisk final : public mariner::test::PassingDisk {
 public:
  using PassingDisk::PassingDisk;
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override {
    if (before_read) before_read(offset, to.size());
    return PassingDisk::read(offset, to);
  }
  std::function<void(std::uint64_t offset, std::size_t bytes)> before_read;
};

// Members are public: a test turns and breaks each part.
class SlotRig {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::uint64_t slots = 8;
    std::chrono::nanoseconds delay_max{0};
  };

  SlotRig() : SlotRig(Options{}) {}
  explicit SlotRig(const Options& options);
  ~SlotRig();

  // Recovers the log and begins an array at the tail found. False, with a test failure, when that
  // fails.
  bool open();
  // Waits until nothing is left to do, and ends the array.
  void close();
  // The power goes, and the array ends; then it is back.
  void crash();

  // Appends a record of `blocks` blocks of text_of(sequence), or else of noise_of(sequence) (of 0
  // blocks: one of zeros), and waits; whether it is durable shows in `durable`.
  void append(std::uint64_t sequence, std::uint32_t blocks = 16, bool text = true);
  // The next one begins another track.
  void leave_track() { member().log_disk->leave_track(std::chrono::nanoseconds(0)); }
  // `count` records, each in a track of its own, and a last track that is being filled.
  void fill_tracks(std::uint64_t first_sequence, std::uint64_t count, bool text = true);
  // Frees the allocations below `oldest`.
  Result<void> release(std::uint64_t oldest);
  // Packs all that can be, as long as there is power.
  Result<void> pack();
  void start_packing(const PackingOptions& options = {});

  // Turns, and lets the clock and other threads go on, until `reached`; false when it takes too
  // long.
  bool wait(const std::function<bool()>& reached);

  // "ok", or what was wrong with what recovery found: every durable record that was not released,
  // whole, at its place.
  std::string check_records();
  // "ok", or which slot is held by nothing, or by something that is not needed.
  std::string check_slots();

  [[nodiscard]] LogArray::Member& member() { return *array->find(0); }
  [[nodiscard]] SlottedDisk& slotted() { return *member().slotted; }
  [[nodiscard]] SlotKeeper& slots() { return *member().slots; }
  [[nodiscard]] TrackPlace place(std::uint64_t allocation) {
    return slotted().map().place_of(*member().tracks.track(allocation));
  }
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t track) const {
    return superblock.track_first_sector(track) * kBlockBytes;
  }
  [[nodiscard]] bool readable(std::uint64_t sequence);

  struct Durable {
    LogLocation location;
    std::uint64_t allocation = 0;
    std::uint32_t blocks = 0;
    bool text = true;
  };

  const Options options;
  ManualExecutor executor;
  FaultyDisk disk;
  std::shared_ptr<HookedDisk> hooked = std::make_shared<HookedDisk>(disk);
  Superblock superblock;
  std::unique_ptr<LogArray> array;
  Recovered recovered;
  std::map<std::uint64_t, LogLocation> visited;  // by sequence number
  std::map<std::uint64_t, Durable> durable;      // by sequence number
  std::vector<std::string> failures;             // of appends
  std::vector<PackingReport> reports;
  std::uint64_t released = 1;  // allocations below it were released, or are about to be
};

}  // namespace mariner::logging::test
