// Whether one receiver takes part in a stream: what the sender knows of it, and the rules.
//
// Probes show that multicast reaches it; then it is admitted. It is dismissed when nothing comes by
// multicast any more although something is sent, when it makes no progress, when it is silent, or
// when it lags behind the others; who lagged waits longer each time before it may come back. Sans
// I/O.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "trm-multicast/messages.h"

namespace mariner::trm {

// Why a receiver does not take part (any more).
enum class Dismissal : std::uint8_t {
  kDeaf,          // multicast does not get through
  kStuck,         // it makes no progress
  kSlow,          // it lags behind another one
  kCannotListen,  // so it says
  kDisconnected,  // its connection has ended
};
inline constexpr std::size_t kDismissals = 5;
[[nodiscard]] std::string_view describe(Dismissal why);

class Membership {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  struct Options {
    Nanoseconds probe_interval = std::chrono::milliseconds(100);
    // Probes that have to come one after the other before a receiver is admitted.
    std::uint64_t probes_min = 4;
    // Something was sent, and nothing has come by multicast for so long.
    Nanoseconds deaf_max = std::chrono::milliseconds(400);
    // It lacks something, and nothing more of it, nor of what stands before it on the connection,
    // got through for so long.
    Nanoseconds stuck_max = std::chrono::milliseconds(500);
    // The same, although its connection takes what it is given.
    Nanoseconds stuck_moving_max = std::chrono::seconds(10);
    // Who did not listen, or lagged, is tried again after so long, doubled each time.
    Nanoseconds again_min = std::chrono::seconds(2);
    Nanoseconds again_max = std::chrono::seconds(60);
  };

  // How it does, as the sender sees it.
  struct Health {
    std::uint64_t sent = 0;  // bytes that were multicast, ever
    bool lacks = false;      // something that it was sent is not through
    bool moves = false;      // its connection has taken something since it was looked at last
    bool lags = false;       // RateControl::lags()
  };

  Membership() = default;
  explicit Membership(const Options& options) : options_(options) {}

  void reported(const Report& report, Nanoseconds now);

  // It may be admitted, as far as is known here.
  [[nodiscard]] bool ready(Nanoseconds now) const;
  void admitted(std::uint64_t sent, Nanoseconds now);

  // Of one that is admitted: why it is to be dismissed, if it is.
  [[nodiscard]] std::optional<Dismissal> fault(const Health& health, Nanoseconds now);
  // It is out, or cannot come in. `punished`: it is not to come back soon.
  void dismissed(bool punished, Nanoseconds now);
  // The time for which it was punished is over.
  [[nodiscard]] bool may_come_back(Nanoseconds now) const { return now >= not_before_; }

  // Of the largest probe that it has got lately; 0: of none.
  [[nodiscard]] std::uint32_t largest_probe() const { return last_ ? last_->largest_probe : 0; }

 private:
  Options options_{};
  std::optional<Report> last_;
  std::uint64_t probes_before_ = 0;      // its count when the row of probes began
  std::optional<Nanoseconds> probe_at_;  // when the last of the row came
  std::uint64_t sent_ = 0;               // Health::sent, when it was looked at last
  std::uint64_t heard_at_sent_ = 0;      // the same, when multicast reached it last
  std::optional<Nanoseconds> unheard_since_;
  Nanoseconds progressed_{};
  Nanoseconds through_at_{};                // when it had more through last, or lacked nothing
  std::optional<Nanoseconds> admitted_at_;  // since it was punished last
  Nanoseconds not_before_{};
  Nanoseconds again_{};
};

}  // namespace mariner::trm
