// When what the log keeps of volumes' bases waits for a host's write to go with.
//
// Nobody waits for such a record. A batch of them alone would keep the disk from the write that
// comes meanwhile, and a host that sends one write after the other notices that. So where hosts
// wrote only just now they rest a little: the next write will be here soon, and takes them along.
#pragma once

#include <chrono>
#include <optional>

namespace mariner::logging {

class BaseRest {
 public:
  using Time = std::chrono::nanoseconds;
  static constexpr Time kLongest = std::chrono::milliseconds(1);

  // A record comes to those that wait; `first`: nothing waited.
  void arrived(bool of_base, bool first, Time now) {
    if (!of_base) {
      wanted_ = true;
      last_wanted_ = now;
    } else if (first) {
      ends_ = now + kLongest;
    }
  }
  // Records that had left wait again.
  void came_back() { wanted_ = true; }
  void all_left() { wanted_ = false; }

  // Until when what waits (something does) rests, if it does.
  [[nodiscard]] std::optional<Time> until(Time now) const {
    const bool soon = last_wanted_ && now - *last_wanted_ < kLongest;
    if (wanted_ || !soon || now >= ends_) return std::nullopt;
    return ends_;
  }

 private:
  bool wanted_ = false;              // somebody waits for some of it
  std::optional<Time> last_wanted_;  // when the last such record came
  Time ends_{0};
};

}  // namespace mariner::logging
