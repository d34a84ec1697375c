// A rotating drive of the year 2000 in virtual time: what track-based logging was made for.
//
// It behaves as such a drive does with its write cache off: one command at a time in the order of
// their arrival, and a write completes when its last sector has passed under the head. The time of
// a command is: controller delay, moving the head (settle on the same track, switch of heads or
// cylinders, or seek), waiting for the sector, and media transfer, where track ends cost their
// switch. Contents are kept sparsely, so that a log can be recovered from it.
//
// The platter does not turn evenly. Its speed wanders slowly around the nominal one
// (Ornstein-Uhlenbeck), so whoever extrapolates the head's position from the last completion is
// the more wrong the longer ago that was: nearly linearly in the time at first, as Figure 4.7 of
// the dissertation has it. Everything random comes from the seed.
//
// Asynchronous calls belong to the executor's thread and take virtual time. Blocking ones act on
// the contents at once and take none: a virtual clock cannot wait. They may come from any thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <random>
#include <unordered_map>
#include <vector>

#include "logging/disk.h"
#include "logging/geometry.h"
#include "proto/executor.h"

namespace mariner::test {

class SimulatedDrive final : public logging::Disk {
 public:
  using Time = std::chrono::nanoseconds;
  static constexpr std::uint32_t kSectorBytes = 512;
  static constexpr std::size_t kQueueMax = 1024;  // commands that wait, a bug when exceeded

  struct Options {
    logging::Geometry geometry;  // of the whole drive, sectors of 512 bytes, rotating
    std::uint32_t heads = 1;     // consecutive tracks of one cylinder
    Time controller_delay{0};    // of each command, before the head or the platter matter
    Time settle{0};              // on the track where the head is already, before it can write
    Time track_switch{0};        // to another head, or to the neighbouring cylinder
    Time seek_average{0};        // over a third of the cylinders
    Time seek_full{0};           // over all of them
    double speed_deviation = 0;  // of the platter's speed, relative, one standard deviation
    Time speed_memory{1};        // how long a deviation lasts
    std::uint64_t seed = 1;

    // Of each track against the one before: its first sector comes by just when the head has
    // switched and settled.
    [[nodiscard]] Time track_skew() const { return track_switch + settle; }
  };

  // IBM Deskstar DTLA-307030: see the source for where each number comes from.
  static Options deskstar(std::uint64_t seed);

  SimulatedDrive(Executor& executor, const Options& options);
  ~SimulatedDrive() override;

  [[nodiscard]] std::uint64_t size_bytes() const override;
  [[nodiscard]] std::uint32_t alignment() const override { return kSectorBytes; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override;
  Result<void> write(std::uint64_t offset, std::span<const logging::ConstBytes> parts,
                     logging::Durability durability) override;
  Result<void> flush() override { return {}; }  // there is no cache
  Result<void> discard(ByteRange range) override;
  void async_read(std::uint64_t offset, std::span<std::byte> to, Completion done) override;
  void async_write(std::uint64_t offset, std::vector<logging::ConstBytes> parts,
                   logging::Durability durability, Completion done) override;

  // The power goes. Of the write that is being served the sectors remain that have passed under the
  // head, the first ones; of the commands behind it nothing. They fail, and so does every other
  // call until the power is back; then the head and the platter are anywhere.
  void cut_power();
  void restore_power();

  [[nodiscard]] const logging::Geometry& geometry() const { return options_.geometry; }
  [[nodiscard]] std::size_t in_flight() const { return commands_.size(); }
  [[nodiscard]] Time busy_time() const { return busy_time_; }  // of all completed commands

 private:
  static constexpr std::uint32_t kPageBytes = 4096;
  using Page = std::array<std::byte, kPageBytes>;
  struct Command {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::vector<logging::ConstBytes> parts;  // of a write
    std::span<std::byte> to;                 // of a read
    Completion done;
  };

  void submit(Command command);
  void start_next();
  void complete();
  [[nodiscard]] std::uint64_t sectors_passed() const;  // of the command that is being served
  [[nodiscard]] Result<void> check(std::uint64_t offset, std::uint64_t length) const;
  void put(std::uint64_t offset, std::span<const std::byte> bytes);  // with mutex_ held
  void get(std::uint64_t offset, std::span<std::byte> to) const;     // with mutex_ held

  // A stretch of one command's sectors under the head.
  struct Pass {
    Time begin{0};
    Time end{0};
    std::uint64_t sectors = 0;
  };

  // The mechanics. `clock_` is how far the platter has been turned.
  Time serve(std::uint64_t sector, std::uint64_t count);  // returns the time of completion
  void turn_until(Time time);
  void turn_to(std::uint64_t track, std::uint32_t sector);
  void turn_over(std::uint32_t sectors, std::uint32_t sectors_per_track);
  void turn_by(double revolutions);
  [[nodiscard]] Time move_time(std::uint64_t track) const;
  [[nodiscard]] double angle_of(std::uint64_t track, std::uint32_t sector) const;

  Executor& executor_;
  const Options options_;
  const double skew_;  // of each track against the one before, in revolutions

  std::deque<Command> commands_;  // the first is being served
  std::vector<Pass> passes_;      // of that
  std::uint64_t power_cuts_ = 0;
  std::atomic<bool> powered_ = true;
  Time busy_time_{0};
  Time started_{0};
  std::uint64_t track_ = 0;  // under the head
  Time clock_{0};
  double angle_ = 0;      // of the platter under the head at clock_, in revolutions, [0, 1)
  double deviation_ = 0;  // of the speed at clock_, relative
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;

  mutable std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;  // guarded by mutex_
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::test
