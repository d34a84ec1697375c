// Who writes in mariner-trm-load: keeps so many writes under way, each to all receivers, and
// counts.
//
// A write is over when all receivers that count have it. A receiver that lags by more than
// `lag_bytes_max` is left out until it has what it was sent, and misses what comes meanwhile, as a
// coordinator would have it. One thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <vector>

#include "proto/executor.h"
#include "tests/bench/latency_histogram.h"
#include "tests/bench/trm_counters.h"
#include "tests/bench/trm_payload.h"
#include "tests/bench/trm_ways.h"

namespace mariner::bench {

class TrmWriter {
 public:
  struct Options {
    std::size_t receivers = 3;
    std::size_t write_bytes = 8192;
    std::uint64_t outstanding_max = 64;
    // So many are issued at a time.
    std::uint64_t aggregate = 1;
    std::uint64_t lag_bytes_max = 32u << 20;
    // A write is over when this receiver has it; 0: all that are not left out.
    std::size_t answers = 0;
    // Not without end, but so much, in one file after another, with pauses between.
    std::uint64_t file_bytes = 0;
    std::chrono::nanoseconds pause = std::chrono::milliseconds(20);
    TrmContent content = TrmContent::kStamps;
  };

  TrmWriter(Executor& executor, const Options& options) : executor_(executor), options_(options) {}

  void attach(TrmSending& sending) { sending_ = &sending; }
  void up(std::size_t receiver);
  void down(std::size_t receiver);
  void acknowledged(std::size_t receiver, std::uint64_t write);

  [[nodiscard]] bool all_up() const { return up_ == options_.receivers; }
  void begin();
  void stop() { stopped_ = true; }
  // What is counted begins anew.
  void forget();

  [[nodiscard]] const LatencyHistogram& latency() const { return latency_; }
  [[nodiscard]] const std::vector<double>& files_s() const { return files_s_; }
  [[nodiscard]] std::uint64_t completed() const { return completed_; }
  // Times that somebody was left out.
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  struct Receiver {
    bool up = false;
    bool left_out = false;
    std::uint64_t sent = 0;
    std::uint64_t has = 0;
  };
  [[nodiscard]] std::uint64_t over() const;
  void fill_later();
  void fill();
  void issue();
  void advance();

  Executor& executor_;
  const Options options_;
  TrmSending* sending_ = nullptr;
  std::array<Receiver, kTrmReceiversMax + 1> receivers_{};  // from 1 on
  std::size_t up_ = 0;
  bool begun_ = false;
  bool stopped_ = false;
  bool filling_ = false;
  std::uint64_t issued_ = 0;
  std::uint64_t over_ = 0;
  std::uint64_t file_end_ = 0;
  std::chrono::nanoseconds file_began_{};
  std::deque<std::chrono::nanoseconds> issued_at_;  // of those that are not over
  LatencyHistogram latency_;
  std::vector<double> files_s_;
  std::uint64_t completed_ = 0;
  std::uint64_t left_out_ = 0;
};

}  // namespace mariner::bench
