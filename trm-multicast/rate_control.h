// How fast a stream is sent: as fast as its slowest live receiver takes it.
//
// A model of the path, not a reaction to single losses, as BBR has it (N. Cardwell and others,
// "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016; with version 2's bound on
// loss): what a receiver takes is the most that it was seen to get in the last two seconds; the
// stream is paced at the least of its receivers', now and then at more, to find out whether there
// is more, and then at less, to drain what that has queued. That the slowest governs is from pgmcc
// (L. Rizzo, SIGCOMM 2000). Loss that is random costs repairs and nothing else; loss of more than a
// tenth says that the model is wrong: then it begins anew from what gets through.
//
// Who gets less than half of what another one gets, and for long, is not followed: lags() names it,
// and it is for the caller to take it out. One thread; sans I/O.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>

#include "trm-multicast/messages.h"

namespace mariner::trm {

// A receiver of a stream, as its sender numbers them: 0 to kReceiversMax - 1.
using ReceiverIndex = std::uint8_t;
inline constexpr std::size_t kReceiversMax = 32;

class RateControl {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  struct Options {
    double bytes_per_second_max = 1.25e9;  // 10 Gbit/s
    double bytes_per_second_min = 125e3;   // 1 Mbit/s
    double bytes_per_second_start = 12.5e6;
    double loss_max = 0.1;
    Nanoseconds phase = std::chrono::milliseconds(20);
    Nanoseconds memory = std::chrono::seconds(1);  // half of it
    Nanoseconds lagging_max = std::chrono::milliseconds(300);
  };

  explicit RateControl(const Options& options) : options_(options) {}

  // It is taken to be as good as the others until it was seen for a while.
  void add(ReceiverIndex receiver);
  void remove(ReceiverIndex receiver) { paths_.erase(receiver); }

  // What kept the sender from sending more, since the last report of this receiver: the worst of
  // it.
  enum class Load : std::uint8_t {
    kFull,    // the pace alone
    kWindow,  // at times, receivers that had not enough through
    kIdle,    // at times there was nothing to send
  };
  // But with a full load, what it got says little about what it can get.
  void reported(ReceiverIndex receiver, const Report& report, Load load, Nanoseconds now);

  // Of datagrams' bodies.
  [[nodiscard]] double bytes_per_second(Nanoseconds now);
  [[nodiscard]] bool lags(ReceiverIndex receiver, Nanoseconds now) const;
  // What it was seen to get; nothing: not seen yet.
  [[nodiscard]] std::optional<double> seen(ReceiverIndex receiver) const;
  [[nodiscard]] bool starting() const { return starting_; }

 private:
  struct Path {
    std::optional<Report> last;
    Load load = Load::kFull;  // ever since
    bool measured = false;    // with a full load
    double most_now = 0;      // in this half of the memory
    double most_before = 0;   // in the one before
    Nanoseconds half_since{};
    double loss = 0;
    std::optional<Nanoseconds> lagging_since;

    [[nodiscard]] double most() const { return most_now > most_before ? most_now : most_before; }
  };

  void sample(Path& path, double rate, double loss, bool busy, Nanoseconds now);
  void judge(Nanoseconds now, bool busy);
  void next_phase(Nanoseconds now);
  [[nodiscard]] double base() const;

  const Options options_;
  std::map<ReceiverIndex, Path> paths_;
  bool starting_ = true;
  double best_ = 0;  // base() when it last grew by a quarter
  int flat_phases_ = 0;
  bool phase_busy_ = false;  // somebody's sample in this phase was
  int phase_ = 0;
  Nanoseconds phase_since_{};
};

}  // namespace mariner::trm
