#include "tests/bench/drive_array.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "proto/check.h"

namespace mariner::bench {

using logging::LogLocation;
using logging::LogWriter;
using logging::Record;

namespace {

double ms(Time time) { return static_cast<double>(time.count()) / 1e6; }

}  // namespace

DriveArray::DriveArray(const ArrayOptions& options)
    : options_(options),
      log_(executor_, {.disks = options.disks,
                       .zone = options.zone,
                       .tracks = options.tracks,
                       .look_ahead_sectors = options.look_ahead_sectors,
                       .t_switch = options.t_switch,
                       .t_idle = options.t_idle,
                       .writer = {.t_wait = options.t_wait},
                       .seed = options.seed}),
      random_(options.seed) {
  const auto recovered = log_.open([](const Record&, const LogLocation&) {});
  CHECK(recovered.has_value() && recovered->records == 0);
  log_.log().writer().set_observer([this](const LogWriter::BatchReport&) { ++batches_; });
}

Measured DriveArray::run(const Load& load) {
  load_ = load;
  payload_ = Payload::zeroed(std::max(load.payload_bytes, kBlockBytes));
  executor_.advance(std::chrono::milliseconds(40));  // the first tracks
  const Time began = executor_.monotonic_time();
  arrive();
  while (latencies_.size() < load.requests) executor_.advance(std::chrono::milliseconds(1));
  const Measured result = measured(began);
  // What is left are timers and perhaps a measurement of a head's position.
  while (!log_.idle()) executor_.advance(std::chrono::milliseconds(1));
  return result;
}

void DriveArray::arrive() {
  ++arrived_;
  Record record;
  record.type = load_.payload_bytes > 0 ? logging::RecordType::kWrite : logging::RecordType::kZero;
  record.volume = VolumeId{1};
  record.epoch = Epoch{1};
  record.sequence = SequenceNumber{arrived_};
  record.time = VersionTime{arrived_};
  record.payload_blocks = load_.payload_bytes / kBlockBytes;
  record.extent = {Lbn{arrived_}, BlockCount{std::max(1u, record.payload_blocks)}};
  log_.log().writer().append(
      record, {payload_, 0, load_.payload_bytes}, LogWriter::Urgency::kOrdinary,
      [this, arrived = executor_.monotonic_time()](Result<logging::LoggedAt> at) {
        completed(arrived, at);
      });
  if (load_.interval > Time{0} && arrived_ < load_.requests) {
    executor_.after(next_interval(), [this] { arrive(); });
  }
}

Time DriveArray::next_interval() {
  if (!load_.random_intervals) return load_.interval;
  const auto mean = static_cast<double>(load_.interval.count());
  return Time(std::llround(std::exponential_distribution<double>(1 / mean)(random_)));
}

void DriveArray::completed(Time arrived, const Result<logging::LoggedAt>& at) {
  CHECK_MSG(at.has_value(), "a record could not be written");
  latencies_.push_back(executor_.monotonic_time() - arrived);
  log_.recycle(at->location.disk);
  if (load_.interval == Time{0} && arrived_ < load_.requests) arrive();
}

std::uint64_t DriveArray::recycled_tracks() {
  std::uint64_t tracks = 0;
  for (const auto& member : log_.log().members()) tracks += member->tracks.oldest() - 1;
  return tracks;
}

Measured DriveArray::measured(Time began) {
  const Time span = executor_.monotonic_time() - began;
  std::vector<Time> sorted = latencies_;
  std::ranges::sort(sorted);
  const double count = static_cast<double>(sorted.size());
  Time busy{0};
  for (std::size_t i = 0; i < options_.disks; ++i) busy += log_.drive(i).busy_time();
  const double seconds = static_cast<double>(span.count()) / 1e9;
  return {.latency_ms_mean = ms(std::accumulate(sorted.begin(), sorted.end(), Time{0})) / count,
          .latency_ms_min = ms(sorted.front()),
          .latency_ms_p50 = ms(sorted[sorted.size() / 2]),
          .latency_ms_p99 = ms(sorted[sorted.size() * 99 / 100]),
          .rate_s = count / seconds,
          .batch_bytes_mean = count * load_.payload_bytes / static_cast<double>(batches_),
          .utilization = log_.utilization(),
          .busy = static_cast<double>(busy.count()) / static_cast<double>(span.count()) /
                  static_cast<double>(options_.disks),
          .seconds = seconds};
}

}  // namespace mariner::bench
