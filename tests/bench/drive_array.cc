#include "tests/bench/drive_array.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "logging/batch_length.h"
#include "proto/check.h"

namespace mariner::bench {

using logging::RotationalPlacement;
using logging::SectorRange;
using test::SimulatedDrive;

namespace {

constexpr std::uint32_t kSectorBytes = SimulatedDrive::kSectorBytes;
// As much as a batch may take: well below a track of any zone.
constexpr std::uint32_t kBatchSectorsMax = 256;

double ms(Time time) { return static_cast<double>(time.count()) / 1e6; }

}  // namespace

DriveArray::DriveArray(const ArrayOptions& options)
    : options_(options),
      policy_({.t_wait = options.t_wait, .batch_bytes_max = kBatchSectorsMax}),
      zeros_(std::size_t{kBatchSectorsMax} * kSectorBytes),
      random_(options.seed) {
  for (std::size_t i = 0; i < options.disks; ++i) {
    const auto drive = SimulatedDrive::deskstar(options.seed * 1000 + i);
    Disk disk;
    disk.drive = std::make_unique<SimulatedDrive>(executor_, drive);
    disk.placement = std::make_unique<RotationalPlacement>(
        RotationalPlacement::Options{.rotation = drive.geometry.rotation(),
                                     .command_delay = drive.controller_delay,
                                     .look_ahead_sectors = options.look_ahead_sectors,
                                     .track_skew = drive.track_skew(),
                                     .t_switch = options.t_switch,
                                     .t_idle = options.t_idle});
    policy_.add(*disk.placement, 1);
    disks_.push_back(std::move(disk));
  }
}

DriveArray::~DriveArray() = default;

Measured DriveArray::run(const Load& load) {
  load_ = load;
  record_sectors_ = 1 + load.payload_bytes / kSectorBytes;
  CHECK(record_sectors_ <= kBatchSectorsMax);
  pump();  // the first tracks
  executor_.advance(std::chrono::milliseconds(40));
  const Time began = executor_.monotonic_time();
  arrive();
  while (latencies_.size() < load.requests) executor_.advance(std::chrono::milliseconds(1));
  const Measured result = measured(began);
  // What is left are timers and perhaps a measurement of a head's position.
  while (std::ranges::any_of(disks_, [](const Disk& d) { return d.drive->in_flight() > 0; })) {
    executor_.advance(std::chrono::milliseconds(1));
  }
  return result;
}

void DriveArray::arrive() {
  ++arrived_;
  waiting_.push_back({executor_.monotonic_time()});
  assign_waiting();
  pump();
  if (load_.interval > Time{0} && arrived_ < load_.requests) {
    executor_.after(next_interval(), [this] { arrive(); });
  }
}

Time DriveArray::next_interval() {
  if (!load_.random_intervals) return load_.interval;
  const auto mean = static_cast<double>(load_.interval.count());
  return Time(std::llround(std::exponential_distribution<double>(1 / mean)(random_)));
}

void DriveArray::assign_waiting() {
  while (!waiting_.empty()) {
    const auto disk = policy_.assign(record_sectors_, executor_.monotonic_time());
    if (!disk) return;
    disks_[*disk].queue.push_back(waiting_.front());
    waiting_.pop_front();
  }
}

void DriveArray::pump() {
  const Time now = executor_.monotonic_time();
  while (const auto disk = policy_.next_switch()) switch_track(*disk);
  while (const auto disk = policy_.next_dispatch(now)) dispatch(*disk);
  if (const auto time = policy_.wake()) wake_at(*time);
}

void DriveArray::wake_at(Time time) {
  if (wake_ && *wake_ <= time) return;
  wake_ = time;
  const Time delay = std::max(Time{0}, time - executor_.monotonic_time());
  executor_.after(delay, [this, time] {
    if (wake_ == time) wake_.reset();
    pump();
  });
}

void DriveArray::dispatch(std::size_t number) {
  Disk& disk = disks_[number];
  const Time now = executor_.monotonic_time();
  std::vector<std::uint32_t> waiting(disk.queue.size());  // sectors of a batch of so many
  for (std::size_t i = 0; i < waiting.size(); ++i) {
    waiting[i] = static_cast<std::uint32_t>(i + 1) * record_sectors_;
  }
  const std::size_t count = options_.whole_batches
                                ? waiting.size()
                                : logging::batch_length(*disk.placement, waiting, now);
  CHECK(count > 0);
  const auto end = disk.queue.begin() + static_cast<std::ptrdiff_t>(count);
  std::vector<Request> batch(disk.queue.begin(), end);
  disk.queue.erase(disk.queue.begin(), end);
  if (!disk.queue.empty()) {
    const auto left = static_cast<std::uint32_t>(disk.queue.size());
    policy_.put_back(number, {.bytes = left * record_sectors_,
                              .first_bytes = record_sectors_,
                              .oldest = disk.queue.front().arrived});
  }
  const auto sectors = static_cast<std::uint32_t>(count) * record_sectors_;
  const auto place = disk.placement->place(sectors, now);
  const SectorRange range{place->sector, sectors};
  disk.placement->dispatched(range, now);
  ++batches_;
  disk.drive->async_write(range.first * kSectorBytes,
                          {logging::ConstBytes(zeros_).first(std::size_t{sectors} * kSectorBytes)},
                          logging::Durability::kDurable,
                          [this, number, range, batch = std::move(batch)](Result<void> result) {
                            CHECK(result.has_value());
                            for (const Request& request : batch) {
                              latencies_.push_back(executor_.monotonic_time() - request.arrived);
                            }
                            completed(number, range);
                            if (load_.interval == Time{0} && arrived_ < load_.requests) arrive();
                          });
}

// The tracks of the zone one after another, and again from the first: there is no recovery to keep
// anything for.
SectorRange DriveArray::take_track(Disk& disk) const {
  const logging::Geometry& geometry = disk.drive->geometry();
  const logging::Zone& zone = geometry.zones()[options_.zone];
  const std::uint64_t number = disk.tracks_taken++ % zone.tracks;
  return geometry.track(geometry.track_of(zone.first_sector) + number);
}

void DriveArray::switch_track(std::size_t number) {
  Disk& disk = disks_[number];
  if (disk.placement->utilization() > 0) {
    left_utilization_ += disk.placement->utilization();
    ++left_tracks_;
  }
  disk.placement->start_track(take_track(disk), {}, executor_.monotonic_time());
  position(number);
}

// A read of one sector: moves the head to the placement's track and measures where it is.
void DriveArray::position(std::size_t number) {
  Disk& disk = disks_[number];
  const auto sector = disk.placement->recalibration_sector(executor_.monotonic_time());
  CHECK(sector.has_value());
  auto buffer = std::make_unique<std::array<std::byte, kSectorBytes>>();
  const std::span<std::byte> to(*buffer);
  disk.drive->async_read(*sector * kSectorBytes, to,
                         [this, number, range = SectorRange{*sector, 1},
                          kept = std::move(buffer)](Result<void> result) {
                           CHECK(result.has_value());
                           completed(number, range);
                         });
}

void DriveArray::completed(std::size_t number, SectorRange range) {
  disks_[number].placement->completed(range, executor_.monotonic_time());
  policy_.completed(number);
  assign_waiting();
  pump();
  watch_idle(number);
}

void DriveArray::watch_idle(std::size_t number) {
  const auto due = disks_[number].placement->recalibration_due();
  if (!due) return;
  const Time delay = std::max(Time{0}, *due - executor_.monotonic_time());
  executor_.after(delay, [this, number, due] {
    // Anything dispatched since has moved the moment, and set a timer of its own when it ended.
    if (disks_[number].placement->recalibration_due() != due || !policy_.idle(number)) return;
    policy_.occupied(number);
    position(number);
  });
}

Measured DriveArray::measured(Time began) const {
  const Time span = executor_.monotonic_time() - began;
  std::vector<Time> sorted = latencies_;
  std::ranges::sort(sorted);
  const double count = static_cast<double>(sorted.size());
  Time busy{0};
  double utilization = left_utilization_;
  std::size_t tracks = left_tracks_;
  for (const Disk& disk : disks_) {
    busy += disk.drive->busy_time();
    if (left_tracks_ == 0) {  // a run too short to leave one
      utilization += disk.placement->utilization();
      ++tracks;
    }
  }
  const double seconds = static_cast<double>(span.count()) / 1e9;
  return {.latency_ms_mean = ms(std::accumulate(sorted.begin(), sorted.end(), Time{0})) / count,
          .latency_ms_min = ms(sorted.front()),
          .latency_ms_p50 = ms(sorted[sorted.size() / 2]),
          .latency_ms_p99 = ms(sorted[sorted.size() * 99 / 100]),
          .rate_s = count / seconds,
          .batch_bytes_mean = count * load_.payload_bytes / static_cast<double>(batches_),
          .utilization = utilization / static_cast<double>(tracks),
          .busy = static_cast<double>(busy.count()) / static_cast<double>(span.count()) /
                  static_cast<double>(disks_.size()),
          .seconds = seconds};
}

}  // namespace mariner::bench
