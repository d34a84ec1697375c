#include "trm-multicast/rate_control.h"

#include <algorithm>
#include <array>
#include <utility>

namespace mariner::trm {
namespace {

using std::chrono::duration;

// Of the base, in the phases of a cycle.
constexpr std::array kGains = {1.25, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0};
constexpr int kDrainPhase = 1;
constexpr double kStartingGain = 2.0;
constexpr int kFlatPhasesMax = 3;
// A sample is of at least so much.
constexpr auto kSampleTimeMin = std::chrono::milliseconds(4);
constexpr std::uint64_t kLossBytesMin = 64 * 1024;
constexpr double kLossWeight = 0.25;
constexpr double kLaggingShare = 0.5;

}  // namespace

void RateControl::add(ReceiverIndex receiver) {
  Path path;
  for (const auto& [other, each] : paths_) {
    if (!each.measured) continue;
    path.most_before =
        path.most_before <= 0 ? each.most() : std::min(path.most_before, each.most());
  }
  paths_[receiver] = path;
}

void RateControl::reported(ReceiverIndex receiver, const Report& report, Load load,
                           Nanoseconds now) {
  const auto found = paths_.find(receiver);
  if (found == paths_.end()) return;
  Path& path = found->second;
  if (!path.last || report.clock < path.last->clock || report.bytes < path.last->bytes) {
    path.last = report;
    path.load = Load::kFull;
    path.half_since = now;
    return;
  }
  path.load = std::max(path.load, load);
  const Nanoseconds time = report.clock - path.last->clock;
  if (time < kSampleTimeMin) return;
  const std::uint64_t bytes = report.bytes - path.last->bytes;
  const std::uint64_t sent = report.highest.value - path.last->highest.value;
  double loss = path.loss;
  if (sent >= kLossBytesMin) {
    const double lost =
        bytes >= sent ? 0 : 1 - static_cast<double>(bytes) / static_cast<double>(sent);
    loss = path.loss + kLossWeight * (lost - path.loss);
  }
  const Load all = std::exchange(path.load, Load::kFull);
  sample(path, static_cast<double>(bytes) / duration<double>(time).count(), loss,
         all == Load::kFull, now);
  path.last = report;
  judge(now, all == Load::kFull);
  // (While the window holds the sender up it is seen to lag as before.)
  if (all == Load::kIdle) path.lagging_since.reset();
}

void RateControl::sample(Path& path, double rate, double loss, bool busy, Nanoseconds now) {
  if (now - path.half_since >= options_.memory && busy) {
    path.most_before = path.most_now;
    path.most_now = 0;
    path.half_since = now;
  }
  path.loss = loss;
  phase_busy_ |= busy;
  path.measured |= busy;
  if (loss > options_.loss_max && busy) {
    path.most_now = rate;
    path.most_before = 0;
    path.loss = 0;
    starting_ = false;
    return;
  }
  if (busy || rate > path.most()) path.most_now = std::max(path.most_now, rate);
}

// Who gets enough does not lag, whatever kept the sender from sending more.
void RateControl::judge(Nanoseconds now, bool busy) {
  double best = 0;
  for (const auto& [receiver, path] : paths_)
    best = std::max(best, path.measured ? path.most() : 0);
  for (auto& [receiver, path] : paths_) {
    if (!path.measured || path.most() >= kLaggingShare * best) {
      path.lagging_since.reset();
    } else if (busy && !path.lagging_since) {
      path.lagging_since = now;
    }
  }
}

bool RateControl::lags(ReceiverIndex receiver, Nanoseconds now) const {
  const auto found = paths_.find(receiver);
  return found != paths_.end() && found->second.lagging_since &&
         now - *found->second.lagging_since >= options_.lagging_max;
}

std::optional<double> RateControl::seen(ReceiverIndex receiver) const {
  const auto found = paths_.find(receiver);
  if (found == paths_.end() || !found->second.measured) return std::nullopt;
  return found->second.most();
}

// What the slowest takes, but not less than half of what the fastest does. In the beginning also of
// those who were never sent as much as they take: a lone writer is not to be held at where the pace
// began.
double RateControl::base() const {
  double least = 0;
  double most = 0;
  for (const auto& [receiver, path] : paths_) {
    if (!path.measured && !starting_) continue;
    least = least <= 0 ? path.most() : std::min(least, path.most());
    most = std::max(most, path.most());
  }
  return std::max(least, kLaggingShare * most);
}

void RateControl::next_phase(Nanoseconds now) {
  phase_since_ = now;
  const bool busy = std::exchange(phase_busy_, false);
  if (!starting_) {
    phase_ = (phase_ + 1) % static_cast<int>(kGains.size());
    // Who never had more to send than the pace allowed has queued nothing that is to be drained.
    if (phase_ == kDrainPhase && !busy) ++phase_;
    return;
  }
  if (base() >= best_ * 1.25) {
    best_ = base();
    flat_phases_ = 0;
  } else if (busy && ++flat_phases_ >= kFlatPhasesMax) {
    starting_ = false;
    phase_ = kDrainPhase;
  }
}

double RateControl::bytes_per_second(Nanoseconds now) {
  if (now - phase_since_ >= options_.phase) next_phase(now);
  const double gain = starting_ ? kStartingGain : kGains[static_cast<std::size_t>(phase_)];
  const double least = starting_ ? options_.bytes_per_second_start : options_.bytes_per_second_min;
  const double rate = std::max(gain * base(), std::min(least, options_.bytes_per_second_max));
  return std::clamp(rate, options_.bytes_per_second_min, options_.bytes_per_second_max);
}

}  // namespace mariner::trm
