#include "server/node/window_forecast.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace mariner::node {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kApartShare = 1.0 / 48;
// A rate of less is none.
constexpr double kRateSeconds = 5;

double seconds_of(VersionTime time) { return static_cast<double>(time.ns) / kNsPerSecond; }

}  // namespace

void WindowForecast::begin(VersionTime oldest, VersionTime now, std::uint64_t used_bytes) {
  used_at_begin_ = static_cast<double>(used_bytes);
  samples_.clear();
  if (oldest < now) samples_.push_back({seconds_of(oldest), 0});
  samples_.push_back({seconds_of(now), used_at_begin_});
}

void WindowForecast::sample(VersionTime now, std::uint64_t written_bytes) {
  const Sample next{seconds_of(now), used_at_begin_ + static_cast<double>(written_bytes)};
  if (!samples_.empty() && next.at <= samples_.back().at) return;
  samples_.push_back(next);
  if (samples_.size() > kSamplesMax) thin_out();
}

// Those go without which their neighbours are no more than a share of their age apart: so a window
// of any length is known as precisely as any other.
void WindowForecast::thin_out() {
  const Sample now = samples_.back();
  std::size_t kept = 1;
  for (std::size_t i = 1; i + 1 < samples_.size(); ++i) {
    const double apart = samples_[i + 1].at - samples_[kept - 1].at;
    if (apart > (now.at - samples_[i].at) * kApartShare) samples_[kept++] = samples_[i];
  }
  samples_[kept++] = now;
  samples_.resize(kept);
  // (Years, or a clock that leapt.)
  const std::size_t too_many = kept - std::min(kept, kSamplesMax / 2 + kSamplesMax / 4);
  samples_.erase(samples_.begin(), samples_.begin() + static_cast<std::ptrdiff_t>(too_many));
}

double WindowForecast::come_by(double at) const {
  const auto after = std::ranges::upper_bound(samples_, at, {}, &Sample::at);
  if (after == samples_.begin()) return samples_.front().bytes;
  const Sample& before = *std::prev(after);
  if (after == samples_.end()) return before.bytes;
  return std::lerp(before.bytes, after->bytes, (at - before.at) / (after->at - before.at));
}

std::optional<double> WindowForecast::rate() const {
  if (samples_.empty()) return std::nullopt;
  const Sample& now = samples_.back();
  const double from = std::max(samples_.front().at, now.at - static_cast<double>(kRecent.count()));
  if (now.at - from < kRateSeconds) return std::nullopt;
  return (now.bytes - come_by(from)) / (now.at - from);
}

template <class Visitor>
void WindowForecast::visit_room(const Held& held, double room_bytes, double first,
                                const Visitor& visitor) const {
  const Sample& now = samples_.back();
  const auto window = static_cast<double>(held.window.count());
  const double from = seconds_of(held.from);
  const auto visit = [&](double after) {
    const double begins = std::max(now.at + after - window, from);
    visitor(after, room_bytes - (now.bytes - come_by(begins)));
  };
  visit(std::min(first, window));
  const double begun = from - now.at + window;
  if (begun > first && begun < window) visit(begun);
  auto leaving = std::ranges::upper_bound(samples_, now.at + first - window, {}, &Sample::at);
  for (; leaving != samples_.end(); ++leaving) visit(leaving->at - now.at + window);
}

double WindowForecast::spare(const Held& held, double room_bytes, double bytes_per_second) const {
  double least = room_bytes;
  if (samples_.empty()) return least;
  visit_room(held, room_bytes, 0, [&](double after, double room) {
    least = std::min(least, room - bytes_per_second * after);
  });
  return least;
}

double WindowForecast::sustainable(const Held& held, double room_bytes,
                                   std::chrono::seconds leeway) const {
  double least = room_bytes / std::max(1.0, static_cast<double>(held.window.count()));
  if (samples_.empty()) return least;
  visit_room(held, room_bytes, static_cast<double>(leeway.count()),
             [&](double after, double room) { least = std::min(least, room / after); });
  return least;
}

std::optional<WindowForecast::Outlook> WindowForecast::outlook(std::chrono::seconds window,
                                                               std::uint64_t room_bytes) const {
  const std::optional<double> bytes_per_second = rate();
  if (!bytes_per_second) return std::nullopt;
  const Sample& now = samples_.back();
  const auto asked = static_cast<double>(window.count());
  const auto room = static_cast<double>(room_bytes);
  // What the window needs beyond the room at a time to come: between those at which a sample leaves
  // the window it grows evenly.
  const auto lacking = [&](double at) {
    return now.bytes + *bytes_per_second * (at - now.at) - come_by(at - asked) - room;
  };
  Outlook out;
  out.lasting = window;
  if (*bytes_per_second * asked > room) {
    out.lasting = std::chrono::seconds(static_cast<std::int64_t>(room / *bytes_per_second));
  }
  double before = now.at;
  double lacked = lacking(before);
  if (lacked > 0) {
    out.short_in = std::chrono::seconds(0);
    return out;
  }
  auto leaving = std::ranges::upper_bound(samples_, now.at - asked, {}, &Sample::at);
  while (before < now.at + asked) {
    const double at = leaving == samples_.end() ? now.at + asked : (leaving++)->at + asked;
    const double lacks = lacking(at);
    if (lacks > 0) {
      const double when = before + (at - before) * (-lacked / (lacks - lacked));
      out.short_in = std::chrono::seconds(static_cast<std::int64_t>(when - now.at));
      return out;
    }
    before = at;
    lacked = lacks;
  }
  return out;
}

}  // namespace mariner::node
