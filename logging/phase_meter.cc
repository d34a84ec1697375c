#include "logging/phase_meter.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "proto/check.h"

namespace mariner::logging {

namespace {

// By how much a time that should be whole revolutions may be off. Beyond it, something was late.
constexpr double kWholeTolerance = 0.02;
constexpr double kSteadyShare = 0.65;

// How many whole revolutions `revolutions` is; 0 if it is none.
double whole_of(double revolutions) {
  const double whole = std::round(revolutions);
  return std::abs(revolutions - whole) <= kWholeTolerance ? whole : 0;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

PhaseMeter::Time to_time(double ns) { return PhaseMeter::Time(std::llround(ns)); }

}  // namespace

double around(double revolutions) { return revolutions - std::floor(revolutions + 0.5); }

Result<PhaseMeter::Time> PhaseMeter::access(std::uint64_t sector) {
  if (commands_left_ == 0) {
    return Error{ErrorCode::kLimit, "after " + std::to_string(commands_) +
                                        " commands, as many as are allowed, not all is known"};
  }
  --commands_left_;
  ++commands_;
  return disk_.access(sector);
}

Result<PhaseMeter::Repetition> PhaseMeter::repeat(std::uint64_t sector) {
  Result<Time> before = access(sector);
  if (!before) return before.error();
  std::vector<double> times;
  for (int i = 0; i < kRepetitions; ++i) {
    const Result<Time> at = access(sector);
    if (!at) return at.error();
    times.push_back(static_cast<double>((*at - *before).count()));
    before = at;
  }
  const double median = median_of(times);
  const auto steady = std::ranges::count_if(
      times, [median](double time) { return median > 0 && whole_of(time / median) > 0; });
  const Repetition repetition{.least = to_time(std::ranges::min(times)),
                              .median = to_time(median),
                              .most = to_time(std::ranges::max(times)),
                              .steady = static_cast<double>(steady) >= kSteadyShare * kRepetitions};
  if (repetition.steady) {
    rotation_ns_ = median;
    revolutions_.push_back(median);
  }
  return repetition;
}

Result<double> PhaseMeter::phase(std::uint64_t from, std::uint64_t to) {
  CHECK(rotation_ns_ > 0);
  static_assert(kAgreeing == 3, "the message below says three");
  std::vector<double> seen;
  Result<Time> before = access(from);
  if (!before) return before.error();
  for (int round = 0; round < kRoundsMax; ++round) {
    const Result<Time> at = access(to);
    if (!at) return at.error();
    const Result<Time> after = access(from);
    if (!after) return after.error();
    const auto total = static_cast<double>((*after - *before).count());
    const auto part = static_cast<double>((*at - *before).count());
    before = after;
    const double whole = whole_of(total / rotation_ns_);
    if (whole == 0) continue;
    revolutions_.push_back(total / whole);
    const double phase = part / total * whole;
    double apart = 0;
    int agreeing = 1;
    for (const double other : seen) {
      if (std::abs(around(phase - other)) > kAgreement) continue;
      apart += around(other - phase);
      ++agreeing;
    }
    if (agreeing >= kAgreeing) {
      const double mean = phase + apart / agreeing;
      return mean - std::floor(mean);
    }
    seen.push_back(phase);
  }
  return Error{ErrorCode::kLimit, "the angle between sectors " + std::to_string(from) + " and " +
                                      std::to_string(to) + " does not hold still: no three of " +
                                      std::to_string(kRoundsMax) + " measurements agree"};
}

PhaseMeter::Time PhaseMeter::rotation() const {
  CHECK(!revolutions_.empty());
  return to_time(median_of(revolutions_));
}

}  // namespace mariner::logging
