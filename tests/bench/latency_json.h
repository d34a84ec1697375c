// Latencies in the JSON that loads print.
#pragma once

#include <fmt/format.h>

#include <string>

#include "tests/bench/latency_histogram.h"

namespace mariner::bench {

// An object: mean, percentiles and the highest, in microseconds.
inline std::string latency_us_json(const LatencyHistogram& of) {
  const auto us = [&](double percent) {
    return static_cast<double>(of.percentile(percent)) / 1000;
  };
  return fmt::format(
      "{{\"mean\": {:.1f}, \"p50\": {:.1f}, \"p90\": {:.1f}, \"p99\": {:.1f}, \"p99.9\": {:.1f}, "
      "\"max\": {:.1f}}}",
      of.mean() / 1000, us(50), us(90), us(99), us(99.9), static_cast<double>(of.max()) / 1000);
}

}  // namespace mariner::bench
