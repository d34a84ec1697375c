// A simulated drive as whoever times its commands sees it: through a host that sometimes notices a
// completion late.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <vector>

#include "logging/phase_meter.h"
#include "tests/sim/simulated_drive.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {

class TimedDrive final : public logging::TimedDisk {
 public:
  struct Options {
    SimulatedDrive::Options drive;
    bool writes = false;
    Time late_max{0};           // each completion is noticed so much later, evenly distributed
    double hiccups = 0;         // the share of those that are noticed later still,
    Time hiccup_max{0};         // by up to this
    std::uint64_t fail_at = 0;  // the number of the command, from 1, that fails; 0: none
  };
  explicit TimedDrive(const Options& options)
      : options_(options), drive_(executor_, options.drive), random_(options.drive.seed + 1) {}

  Result<Time> access(std::uint64_t sector) override {
    Result<void> result;
    auto done = [&result](Result<void> ended) { result = std::move(ended); };
    const std::uint64_t offset = sector * SimulatedDrive::kSectorBytes;
    if (options_.writes) {
      drive_.async_write(offset, {logging::ConstBytes(bytes_)}, logging::Durability::kDurable,
                         done);
    } else {
      drive_.async_read(offset, bytes_, done);
    }
    executor_.run_until_idle();
    if (++commands_ == options_.fail_at) return Error{ErrorCode::kIo, "a sector cannot be read"};
    if (!result) return result.error();
    executor_.advance(up_to(options_.late_max));
    if (std::uniform_real_distribution<double>(0, 1)(random_) < options_.hiccups) {
      executor_.advance(up_to(options_.hiccup_max));
    }
    return executor_.monotonic_time();
  }

  [[nodiscard]] std::uint64_t commands() const { return commands_; }

 private:
  Time up_to(Time most) {
    return Time(std::uniform_int_distribution<std::int64_t>(0, most.count())(random_));
  }

  const Options options_;
  ManualExecutor executor_;
  SimulatedDrive drive_;
  std::mt19937_64 random_;
  std::uint64_t commands_ = 0;
  std::vector<std::byte> bytes_ = std::vector<std::byte>(SimulatedDrive::kSectorBytes);
};

}  // namespace mariner::test
