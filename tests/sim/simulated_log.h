// The log as the daemon runs it, on simulated drives in virtual time: formatted, recovered, written
// and given up by logging's own code. Each drive's log lies in one zone, its tracks on the drive's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "logging/log_array.h"
#include "logging/superblock_store.h"
#include "tests/sim/simulated_drive.h"

namespace mariner::test {

class SimulatedLog {
 public:
  using Time = std::chrono::nanoseconds;

  struct Options {
    std::size_t disks = 1;
    std::size_t zone = 0;
    std::uint64_t tracks = 0;  // on each drive; 0: as many as the zone has
    std::uint32_t look_ahead_sectors = 22;
    double t_switch = 12;
    Time t_idle{std::chrono::milliseconds(50)};
    logging::LogWriter::Options writer{};
    std::uint64_t seed = 1;  // of the drives
  };

  // Drives with an empty log. `executor` outlives it.
  SimulatedLog(Executor& executor, const Options& options);
  ~SimulatedLog();  // idle() must hold

  // Recovers the log from the drives and begins to write at its end. An error or what was found.
  Result<logging::Recovered> open(const logging::RecordVisitor& visit);
  // Ends the writing; idle() must hold. Where the heads are is forgotten.
  void close();

  [[nodiscard]] logging::LogArray& log() { return *log_; }
  [[nodiscard]] const logging::LogArray::Member& member(std::size_t disk) const {
    return *log_->members()[disk];
  }
  [[nodiscard]] SimulatedDrive& drive(std::size_t disk) { return *disks_[disk].drive; }
  // Nothing is on its way.
  [[nodiscard]] bool idle() const;

  // Gives up complete tracks of the disk, as many as go at once, when only a quarter is left. The
  // oldest go, whatever they hold.
  void recycle(std::size_t disk);

  void cut_power();
  void restore_power();

  // Of the tracks that were left since open(); of the present ones, if none was. 0 to 1.
  [[nodiscard]] double utilization() const;

 private:
  class WatchedPlacement;
  struct Disk {
    std::shared_ptr<SimulatedDrive> drive;
    SimulatedDrive::Options options;
    WatchedPlacement* placement = nullptr;  // that of the log
  };
  [[nodiscard]] logging::LogShape shape_of(std::size_t disk) const;
  [[nodiscard]] std::unique_ptr<WatchedPlacement> placement_of(const Disk& disk) const;

  Executor& executor_;
  const Options options_;
  std::vector<Disk> disks_;
  std::unique_ptr<logging::LogArray> log_;
};

}  // namespace mariner::test
