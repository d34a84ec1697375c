// A log on one to four faulty disks, as a node puts it together: recovered, written, given up from
// its oldest end, with disks that come and go. Nothing of it knows what the log should hold: that
// is CampaignModel's.
//
// What a node remembers outside of the log survives here too: the members, which of them drain, and
// the ordinal up to which all has been given up.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "logging/log_array.h"
#include "logging/oldest_records.h"
#include "logging/recovery.h"
#include "tests/logging/batch_spy.h"
#include "tests/logging/log_testing.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::logging::test {

class CampaignRig {
 public:
  struct Options {
    std::uint64_t seed = 1;
    std::chrono::nanoseconds delay_max{0};
    LogWriter::Options writer{};
  };
  // A disk of the array, whether the log is open or not.
  struct Slot {
    std::uint8_t number = 0;
    bool rotates = false;
    bool slotted = false;  // its tracks stand in slots, and are packed now and then
    bool draining = false;
    std::unique_ptr<FaultyDisk> disk;
    std::shared_ptr<SlottedDisk> tracks;  // in front of it, if it is slotted and open
    std::shared_ptr<BatchSpy> spy;        // in front of that
    Superblock shape;                     // as formatted
    // Damaged behind the writer's back, without what FaultyDisk::lies() says.
    std::vector<ByteRange> damaged;
    // As recovery found it.
    std::uint64_t next_batch = 1;
    std::set<std::uint64_t> found_batches;

    [[nodiscard]] bool is_damaged() const { return !damaged.empty() || !disk->lies().empty(); }
    [[nodiscard]] bool is_damaged(ByteRange range) const;
  };
  using OldestHook = std::function<void(const OldestRecords&)>;
  using TrackHook = std::function<void(const Slot&, ByteRange)>;

  explicit CampaignRig(const Options& options);
  ~CampaignRig();

  enum class Media { kSolid, kSlotted, kRotating };
  // Formats a disk and makes it a member; of an open log at once.
  void add_disk(Media media, std::uint64_t tracks);
  // No new records for the disk from now on, across restarts. Nothing for the last one.
  void drain(std::uint8_t number);
  // Lets go of what is drained and empty.
  void retire();

  // Recovers; `visited` and `recovered` tell what was there and has not been given up. On an error
  // the log is closed.
  Result<void> open(unsigned threads, bool initialise);
  // Answers everything and ends it, with or without power.
  void close();
  [[nodiscard]] bool is_open() const { return array != nullptr; }
  void cut_power();
  void restore_power();
  [[nodiscard]] bool powered() const;

  // Gives up the oldest records that stand in the way of the oldest complete track, and frees it.
  // `given_up` runs when the ordinal is durable, `freeing` right before the track is freed. Not
  // while one is under way. The error of reading them.
  Result<void> reclaim(std::chrono::nanoseconds store_time, OldestHook given_up, TrackHook freeing);

  // Packs some complete tracks of a slotted disk, if there are any, as many as `tracks_max`.
  void pack(std::uint8_t number, std::size_t tracks_max);

  [[nodiscard]] Slot* find(std::uint8_t number);
  [[nodiscard]] std::size_t usable() const;

  const Options options;
  ManualExecutor executor;
  std::vector<std::unique_ptr<Slot>> slots;
  std::unique_ptr<LogArray> array;
  Recovered recovered;
  std::vector<Visited> visited;
  std::uint64_t given_up = 0;  // the ordinal, durable
  std::uint64_t packed = 0;    // tracks, ever

 private:
  void become_idle();
  Result<void> open_tracks(Slot& slot, const Superblock& superblock);
  void set_up(Slot& slot, const Superblock& superblock, RecoveredDisk found);
  void release_oldest(std::uint8_t number, const TrackHook& freeing);

  std::uint64_t disks_made_ = 0;
  bool reclaiming_ = false;
  bool packing_ = false;
  std::vector<std::unique_ptr<Slot>> gone_;  // until nothing can refer to them any more
};

}  // namespace mariner::logging::test
