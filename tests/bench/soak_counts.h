// What a soak of many sessions counted: the operations of each steady session, as a whole and in
// windows of some seconds, latencies of all, logins and endings, and what went wrong.
//
// Nothing counts before begin() or at its end and behind, but for what went wrong, which always
// does. Not thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/bench/latency_histogram.h"

namespace mariner::bench {

class SoakCounts {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;
  using Window = std::vector<std::uint64_t>;  // operations of each steady session

  // How many different failures are told in words.
  static constexpr std::size_t kToldMax = 20;

  explicit SoakCounts(std::size_t steady) : steady_(steady), last_(steady), silence_(steady) {}

  // Counting starts. A last window that is not whole is not there.
  void begin(Time now, Clock::duration window, Clock::duration length) {
    begin_ = now;
    end_ = now + length;
    window_ = window;
    windows_.assign(static_cast<std::size_t>(length / window), Window(steady_));
    operations_.assign(steady_, 0);
    std::fill(last_.begin(), last_.end(), now);
  }

  // A command of a steady session (its number), or of one that comes and goes.
  void completed(std::optional<std::size_t> steady, bool write, Time issued, Time now) {
    if (begin_ == Time{} || now < begin_ || now >= end_) return;
    (write ? writes_ : reads_)
        .record(static_cast<std::uint64_t>(
            std::chrono::duration_cast<std::chrono::nanoseconds>(now - issued).count()));
    if (!steady) {
      ++others_;
      return;
    }
    ++operations_[*steady];
    const auto window = static_cast<std::size_t>((now - begin_) / window_);
    if (window < windows_.size()) ++windows_[window][*steady];
    silence_[*steady] = std::max(silence_[*steady], now - last_[*steady]);
    last_[*steady] = now;
  }

  // What sessions did that come and go: "login", "logout", "cut", ...
  void event(const std::string& what) { ++events_[what]; }
  void late(std::string what) { ++late_, tell(std::move(what)); }
  void mismatch(std::string what) { ++mismatches_, tell(std::move(what)); }
  void failure(std::string what) { ++failures_, tell(std::move(what)); }

  [[nodiscard]] const std::vector<Window>& windows() const { return windows_; }
  [[nodiscard]] const std::vector<std::uint64_t>& operations() const { return operations_; }
  // Of those that come and go, together.
  [[nodiscard]] std::uint64_t others() const { return others_; }
  // The longest time in which a steady session's commands got no answer.
  [[nodiscard]] Clock::duration silence_max() const {
    Clock::duration most{};
    for (std::size_t i = 0; i < steady_; ++i) {
      most = std::max({most, silence_[i], end_ - last_[i]});
    }
    return most;
  }
  [[nodiscard]] const LatencyHistogram& reads() const { return reads_; }
  [[nodiscard]] const LatencyHistogram& writes() const { return writes_; }
  [[nodiscard]] const std::map<std::string, std::uint64_t>& events() const { return events_; }
  [[nodiscard]] std::uint64_t mismatches() const { return mismatches_; }
  [[nodiscard]] std::uint64_t late() const { return late_; }
  [[nodiscard]] std::uint64_t failures() const { return failures_; }
  // The first of them all.
  [[nodiscard]] const std::vector<std::string>& told() const { return told_; }

 private:
  void tell(std::string what) {
    if (told_.size() < kToldMax) told_.push_back(std::move(what));
  }

  const std::size_t steady_;
  Time begin_{};
  Time end_{};
  Clock::duration window_{};
  std::vector<Window> windows_;
  std::vector<std::uint64_t> operations_;
  std::vector<Time> last_;
  std::vector<Clock::duration> silence_;
  std::uint64_t others_ = 0;
  LatencyHistogram reads_;
  LatencyHistogram writes_;
  std::map<std::string, std::uint64_t> events_;
  std::uint64_t late_ = 0;
  std::uint64_t mismatches_ = 0;
  std::uint64_t failures_ = 0;
  std::vector<std::string> told_;
};

}  // namespace mariner::bench
