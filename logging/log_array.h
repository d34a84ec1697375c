// The log put together: its disks with all that belongs to each, and what writes and reads them.
//
// Owner's thread only, but for disks() and what its entries give.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "logging/disk.h"
#include "logging/log_disk.h"
#include "logging/log_disks.h"
#include "logging/log_reader.h"
#include "logging/log_writer.h"
#include "logging/recovery.h"
#include "logging/slot_keeper.h"
#include "logging/slotted_disk.h"
#include "logging/track_initialiser.h"
#include "logging/track_packer.h"
#include "logging/track_recycler.h"
#include "logging/track_scrubber.h"
#include "proto/executor.h"

namespace mariner::logging {

class LogArray {
 public:
  // One disk. Stays where it is as long as it is in the array.
  struct Member {
    std::shared_ptr<Disk> disk;
    Superblock superblock;
    TrackList tracks;
    std::unique_ptr<LogDisk> log_disk;
    std::unique_ptr<TrackInitialiser> initialiser;
    std::unique_ptr<TrackRecycler> recycler;
    std::unique_ptr<TrackScrubber> scrubber;  // null as long as nothing is verified
    // Where tracks stand in slots; otherwise null.
    std::shared_ptr<SlottedDisk> slotted;
    std::unique_ptr<SlotKeeper> slots;
    std::unique_ptr<TrackPacker> packer;  // null as long as nothing is packed

    // What the live track of that allocation takes of the disk, which is less than its length when
    // it is packed.
    [[nodiscard]] std::uint64_t bytes_of(std::uint64_t allocation) const;
  };

  // `executor` outlives it. `next_ordinal` comes from recovery.
  LogArray(Executor& executor, std::uint64_t next_ordinal, LogWriter::Options options);
  ~LogArray();  // idle() must hold
  LogArray(const LogArray&) = delete;
  LogArray& operator=(const LogArray&) = delete;

  // A disk as recovery found it. Its number must be free. `placement`: as for a LogDisk.
  Member& add(std::shared_ptr<Disk> disk, const Superblock& superblock, RecoveredDisk recovered,
              std::unique_ptr<Placement> placement = nullptr);
  // The same of one with slots: `disk` reads and writes through `slotted`, or is it.
  Member& add_slotted(std::shared_ptr<Disk> disk, std::shared_ptr<SlottedDisk> slotted,
                      const Superblock& superblock, RecoveredDisk recovered);

  // No more records go to the disk; what it holds can be read until it is removed. `done` runs when
  // nothing is on its way to it any more; at once with kBusy for the last disk that works.
  void drain(std::uint8_t number, UniqueFunction<void(Result<void>)> done);
  // Whether a drained disk holds nothing that has not been given up.
  [[nodiscard]] bool is_empty(std::uint8_t number) const;
  // Forgets a drained disk.
  void remove(std::uint8_t number);

  // Begins to initialise tracks in the background.
  void start();
  // Begins to verify complete tracks in the background, on all disks together at most so many bytes
  // per second; 0: not at all.
  using ScrubReporter = UniqueFunction<void(std::uint8_t disk, const TrackDamage& damage)>;
  void start_scrubbing(std::uint64_t bytes_per_second, ScrubReporter report);
  // Begins to pack cold tracks in the background, where tracks stand in slots.
  using PackingReporter = UniqueFunction<void(std::uint8_t disk, const PackingReport& report)>;
  void start_packing(const PackingOptions& options, PackingReporter report);
  void set_packing(const PackingOptions& options);
  [[nodiscard]] const PackingOptions& packing() const { return packing_; }
  // Packs every complete track, of all disks; `done` runs with the first error, if any. Requires
  // start_packing().
  void pack_now(UniqueFunction<void(Result<void>)> done);
  void stop();
  [[nodiscard]] bool idle() const;

  [[nodiscard]] LogWriter& writer() { return *writer_; }
  [[nodiscard]] const LogWriter& writer() const { return *writer_; }
  [[nodiscard]] LogReader& reader() { return *reader_; }
  [[nodiscard]] const LogDisks& disks() const { return disks_; }
  [[nodiscard]] const std::vector<std::unique_ptr<Member>>& members() const { return members_; }
  [[nodiscard]] Member* find(std::uint8_t number) const;

 private:
  Member& set_up(std::unique_ptr<Member> made, DiskTail tail, std::unique_ptr<Placement> placement);
  void start(Member& member);
  void start_scrubber(Member& member);
  void start_packer(Member& member);

  Executor& executor_;
  std::uint64_t scrub_rate_ = 0;
  ScrubReporter scrub_reporter_;
  PackingOptions packing_;
  PackingReporter packing_reporter_;
  LogDisks disks_;
  std::vector<std::unique_ptr<Member>> members_;
  std::unique_ptr<LogWriter> writer_;
  std::unique_ptr<LogReader> reader_;
  bool started_ = false;
};

}  // namespace mariner::logging
