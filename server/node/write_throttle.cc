#include "server/node/write_throttle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "server/node/fair_share.h"
#include "server/node/log_space.h"

namespace mariner::node {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kDemandSeconds = 5;          // that a measured demand remembers
constexpr double kAmplificationSeconds = 30;  // likewise what the log is written for a byte
constexpr double kAmplificationMax = 8;
constexpr double kFree = 4e9;          // bytes a second: a bound that is none
constexpr double kRateMin = 1u << 16;  // bytes a second of a volume: no pace stands still
constexpr double kRoomSeconds = 60;    // room that has shrunk comes back so slowly
constexpr unsigned kHeldShare = 4;     // slowed is whose writes waited at one turn in so many
constexpr auto kToldAgainAfter = std::chrono::minutes(10);

double fades(double passed, double remembered) { return std::exp(-passed / remembered); }

}  // namespace

// Tracks are given up one by one, from when fewer are free than LogSpace wants.
WriteThrottle::Space WriteThrottle::space_of(const LogStack& log) {
  const logging::LogWriter& writer = log.writer();
  const std::uint64_t tracks = std::max<std::uint64_t>(log.track_count(), 1);
  const std::uint64_t left = writer.kept_tracks() + LogSpace::tracks_wanted(log) + 1;
  const std::uint64_t bytes = left * (writer.limit_bytes() / tracks);
  return {.room_bytes = writer.limit_bytes() - std::min(writer.limit_bytes(), bytes),
          .written_bytes = log.batch_bytes().sum()};
}

void WriteThrottle::look(const WindowForecast& forecast, const Space& space,
                         const std::vector<Volume>& volumes) {
  const auto now = executor_.monotonic_time();
  std::map<VolumeId, Host> hosts;
  for (const Volume& volume : volumes) {
    const std::shared_ptr<volume::Paced> host = volume.host.lock();
    if (host == nullptr) continue;
    const auto known = hosts_.find(volume.id);
    Host& here = hosts[volume.id];
    if (known != hosts_.end()) {
      here = std::move(known->second);
    } else {
      here.stamped_bytes = host->stamped_bytes();
    }
    here.volume = host;
  }
  hosts_ = std::move(hosts);
  const double log_bytes = static_cast<double>(space.written_bytes - written_bytes_);
  written_bytes_ = space.written_bytes;
  if (!looked_) {
    looked_ = now;
    room_bytes_ = static_cast<double>(space.room_bytes);
    return;
  }
  const double passed = Seconds(now - *looked_).count();
  if (passed <= 0) return;
  looked_ = now;
  measure(passed, log_bytes);
  const double bytes_per_second = allowed(forecast, space, volumes, {passed, log_bytes});
  const std::optional<double> level_now = level(bytes_per_second);
  if (level_now) tell(bytes_per_second);
  for (auto& [id, host] : hosts_) {
    host.turns = host.held = 0;
    const std::shared_ptr<volume::Paced> volume = host.volume.lock();
    if (volume == nullptr) continue;
    const bool was_paced = host.pace.rate().has_value();
    host.pace.set(level_now, volume->stamped_bytes(), now);
    if (was_paced && !level_now) volume->pace(volume::WritePace::kUnlimited);
  }
  if (level_now) turn();
}

void WriteThrottle::let_go() {
  for (auto& [id, host] : std::exchange(hosts_, {})) {
    const std::shared_ptr<volume::Paced> volume = host.volume.lock();
    if (volume != nullptr && host.pace.rate()) volume->pace(volume::WritePace::kUnlimited);
  }
}

// What the log is written, and what hosts write of late.
void WriteThrottle::measure(double passed, double log_bytes) {
  double host_bytes = 0;
  for (auto& [id, host] : hosts_) {
    const std::shared_ptr<volume::Paced> volume = host.volume.lock();
    if (volume == nullptr) continue;
    const std::uint64_t stamped = volume->stamped_bytes();
    const auto bytes = static_cast<double>(stamped - std::exchange(host.stamped_bytes, stamped));
    host.demand += (bytes / passed - host.demand) * (1 - fades(passed, kDemandSeconds));
    host_bytes += bytes;
  }
  const double remembered = fades(passed, kAmplificationSeconds);
  log_bytes_ = log_bytes_ * remembered + log_bytes;
  host_bytes_ = host_bytes_ * remembered + host_bytes;
}

// Bytes of hosts' a second, all volumes together.
double WriteThrottle::allowed(const WindowForecast& forecast, const Space& space,
                              const std::vector<Volume>& volumes, const WindowPace::Since& since) {
  const auto room = static_cast<double>(space.room_bytes);
  room_bytes_ = std::min(room, room_bytes_ + (room - room_bytes_) * since.seconds / kRoomSeconds);
  const VersionTime now = executor_.wall_time();
  double least = kInfinite;
  for (const Volume& volume : volumes) {
    const auto host = hosts_.find(volume.id);
    if (host == hosts_.end() || volume.window.count() == 0) continue;
    const WindowForecast::Held held{volume.window + kGivenUpWithin, volume.oldest};
    const double may = host->second.law.allowed(forecast, held, room_bytes_, since);
    const auto window_ns =
        static_cast<std::uint64_t>(std::chrono::nanoseconds(held.window).count());
    // The log holds nothing for a volume that was not written within its window.
    if (volume.newest.ns + window_ns >= now.ns) least = std::min(least, may);
  }
  if (host_bytes_ <= 0) return least;
  return least / std::clamp(log_bytes_ / host_bytes_, 1.0, kAmplificationMax);
}

// What each volume may write; nothing: whatever comes.
std::optional<double> WriteThrottle::level(double bytes_per_second) const {
  if (bytes_per_second >= kFree) return std::nullopt;
  std::vector<double> demands;
  double sum = 0;
  double most = 0;
  for (const auto& [id, host] : hosts_) {
    const bool slowed = host.held * kHeldShare > host.turns;
    demands.push_back(slowed ? kInfinite : host.demand);
    sum += demands.back();
    most = std::max(most, demands.back());
  }
  const double fair = fair_level(bytes_per_second, demands);
  // With enough for all, any of them may have what is left.
  return std::max(kRateMin, fair == kInfinite ? most + bytes_per_second - sum : fair);
}

void WriteThrottle::tell(double bytes_per_second) {
  const bool slowed = std::ranges::any_of(
      hosts_, [](const auto& host) { return host.second.held * kHeldShare > host.second.turns; });
  if (!slowed) return;
  const auto now = executor_.monotonic_time();
  if (!told_ || now - *told_ > kToldAgainAfter) {
    log_.warning(
        "writes are slowed so that the log holds the windows: make it larger ([log] max_size), or "
        "the windows shorter",
        {{"bytes_per_second", static_cast<std::uint64_t>(bytes_per_second)}});
  }
  told_ = now;
}

std::optional<double> WriteThrottle::pace_of(VolumeId volume) const {
  const auto host = hosts_.find(volume);
  return host == hosts_.end() ? std::nullopt : host->second.pace.rate();
}

void WriteThrottle::turn_later(std::chrono::nanoseconds delay) {
  if (std::exchange(timer_set_, true)) return;
  executor_.after(delay, [this, alive = alive_] {
    if (!*alive) return;
    timer_set_ = false;
    turn();
  });
}

void WriteThrottle::turn() {
  bool any = false;
  bool waits = false;
  const auto now = executor_.monotonic_time();
  for (auto& [id, host] : hosts_) {
    const std::shared_ptr<volume::Paced> volume = host.volume.lock();
    if (volume == nullptr || !host.pace.rate()) continue;
    any = true;
    ++host.turns;
    const std::uint64_t stamped = volume->stamped_bytes();
    const bool held = volume->writes_wait() && stamped >= host.granted_bytes;
    if (held) ++host.held;
    waits = waits || held;
    host.granted_bytes = host.pace.grant(stamped, now);
    volume->pace(host.granted_bytes);
  }
  if (any) turn_later(waits ? kTurn : kIdleTurn);
}

}  // namespace mariner::node
