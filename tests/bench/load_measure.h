// What a closed loop of writers measured: latencies, their parts, and the CPU time of the process.
//
// Times are nanoseconds of one clock of the caller's choice that never steps back. Nothing counts
// before `begin`; the measured part lasts from there to the last completion. Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "tests/bench/cpu_time.h"
#include "tests/bench/latency_histogram.h"

namespace mariner::bench {

using Nanoseconds = std::chrono::nanoseconds;

// One record's way, where the log tells it.
struct RecordTimes {
  Nanoseconds appended{0};
  Nanoseconds dispatched{0};
  Nanoseconds durable{0};    // known to the process
  Nanoseconds completed{0};  // its own completion runs
};

class LoadMeasure {
 public:
  LoadMeasure(Nanoseconds now, double warmup_s, double seconds)
      : begin_(now + to_ns(warmup_s)), end_(begin_ + to_ns(seconds)) {}

  [[nodiscard]] bool wants_more(Nanoseconds now) const { return failure_.empty() && now < end_; }

  void completed(Nanoseconds appended, Nanoseconds now) {
    last_ = now;
    if (!counts(now)) return;
    if (!cpu_before_) {
      cpu_before_ = CpuTime::of_self();
      first_ = now;
      return;  // its work was done before
    }
    latency_.record(ns_between(appended, now));
  }
  // The same, with the parts.
  void completed(const RecordTimes& times) {
    if (counts(times.completed) && cpu_before_) {
      gathering_.record(ns_between(times.appended, times.dispatched));
      writing_.record(ns_between(times.dispatched, times.durable));
      completing_.record(ns_between(times.durable, times.completed));
    }
    completed(times.appended, times.completed);
  }
  void batch(Nanoseconds now, std::uint32_t records, std::uint32_t bytes) {
    if (!counts(now)) return;
    batch_records_.record(records);
    batch_bytes_.record(bytes);
  }
  void fail(std::string what) {
    if (failure_.empty()) failure_ = std::move(what);
  }
  // After the last completion.
  void finish() {
    if (!cpu_before_ || latency_.total() == 0) {
      return fail("nothing was completed after the warm-up");
    }
    cpu_ = CpuTime::of_self() - *cpu_before_;
  }

  [[nodiscard]] const std::string& failure() const { return failure_; }
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(last_ - first_).count();
  }
  [[nodiscard]] const CpuTime& cpu() const { return cpu_; }
  [[nodiscard]] const LatencyHistogram& latency() const { return latency_; }
  [[nodiscard]] const LatencyHistogram& gathering() const { return gathering_; }
  [[nodiscard]] const LatencyHistogram& writing() const { return writing_; }
  [[nodiscard]] const LatencyHistogram& completing() const { return completing_; }
  [[nodiscard]] const LatencyHistogram& batch_records() const { return batch_records_; }
  [[nodiscard]] const LatencyHistogram& batch_bytes() const { return batch_bytes_; }

 private:
  static Nanoseconds to_ns(double seconds) {
    return std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
  }
  static std::uint64_t ns_between(Nanoseconds from, Nanoseconds to) {
    return to > from ? static_cast<std::uint64_t>((to - from).count()) : 0;
  }
  [[nodiscard]] bool counts(Nanoseconds now) const { return now >= begin_; }

  Nanoseconds begin_;
  Nanoseconds end_;
  Nanoseconds first_{0};
  Nanoseconds last_{0};
  std::optional<CpuTime> cpu_before_;
  CpuTime cpu_;
  LatencyHistogram latency_;
  LatencyHistogram gathering_;   // append to dispatch
  LatencyHistogram writing_;     // dispatch to durable
  LatencyHistogram completing_;  // durable to the record's own completion
  LatencyHistogram batch_records_;
  LatencyHistogram batch_bytes_;
  std::string failure_;
};

}  // namespace mariner::bench
