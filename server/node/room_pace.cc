#include "server/node/room_pace.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "replication/write_coordinator.h"
#include "server/node/fair_share.h"

namespace mariner::node {
namespace {

constexpr std::uint64_t kUnlimited = replication::WriteCoordinator::kUnlimited;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

}  // namespace

std::uint64_t RoomPace::room_of(const LogStack& log) {
  const logging::LogWriter& writer = log.writer();
  const std::uint64_t tracks = std::max<std::uint64_t>(log.track_count(), 1);
  const std::uint64_t taken =
      writer.used_bytes() + writer.kept_tracks() * (writer.limit_bytes() / tracks);
  return writer.limit_bytes() - std::min(writer.limit_bytes(), taken);
}

void RoomPace::ran_out() {
  if (std::exchange(active_, true)) return;
  turned_ = executor_.monotonic_time();
  meet_hosts();
  for (auto& [id, host] : paced_) {
    if (const auto volume = host.volume.lock()) volume->pace(host.stamped_bytes);
  }
  turn_later();
}

void RoomPace::let_go() {
  active_ = false;
  for (auto& [id, host] : std::exchange(paced_, {})) {
    if (const auto volume = host.volume.lock()) volume->pace(kUnlimited);
  }
}

void RoomPace::turn_later() {
  if (std::exchange(timer_set_, true)) return;
  executor_.after(kTurn, [this, alive = alive_] {
    if (!*alive) return;
    timer_set_ = false;
    turn();
  });
}

void RoomPace::turn() {
  if (!active_) return;
  const Room room = room_();
  if (!room) return let_go();
  const Duration now = executor_.monotonic_time();
  const Duration passed = std::min(now - std::exchange(turned_, now), kTurnMax);
  meet_hosts();
  share(static_cast<double>(*room) * static_cast<double>(passed.count()) /
        static_cast<double>(kDrainTime.count()));
  turn_later();
}

// Who is there now; of a new one, nothing was granted yet.
void RoomPace::meet_hosts() {
  std::map<VolumeId, Paced> met;
  for (Host& host : hosts_()) {
    const std::shared_ptr<volume::Paced> volume = host.volume.lock();
    if (volume == nullptr) continue;
    const auto known = paced_.find(host.id);
    const bool same = known != paced_.end() && known->second.volume.lock() == volume;
    const std::uint64_t stamped = volume->stamped_bytes();
    met[host.id] = same ? std::move(known->second)
                        : Paced{volume, stamped, static_cast<double>(stamped), turned_};
  }
  paced_ = std::move(met);
}

// What a host did not use it has for another turn, no longer: else who was silent would take at
// once what there is for all. A write that was larger than what was left is paid by the turns after
// it.
void RoomPace::share(double bytes) {
  std::vector<double> demands;
  double sum = 0;
  double most = 0;
  for (auto& [id, host] : paced_) {
    const std::shared_ptr<volume::Paced> volume = host.volume.lock();
    const std::uint64_t stamped = volume->stamped_bytes();
    const bool held = volume->writes_wait() && static_cast<double>(stamped) >= host.granted_bytes;
    const auto used = static_cast<double>(stamped - std::exchange(host.stamped_bytes, stamped));
    if (!held || used > 0) host.moved = turned_;
    demands.push_back(held ? kInfinite : used);
    sum += demands.back();
    most = std::max(most, demands.back());
  }
  const double fair = fair_level(bytes, demands);
  // With enough for all, any of them may have what is left. With nothing, one write may come, and
  // wait for room in the log: that is what makes room be looked for at once.
  const double level = std::max(fair == kInfinite ? most + bytes - sum : fair, 1.0);
  for (auto& [id, host] : paced_) {
    const auto stamped = static_cast<double>(host.stamped_bytes);
    host.granted_bytes = std::min(host.granted_bytes + level, stamped + 2 * level);
    if (turned_ - host.moved >= kHeldMax)
      host.granted_bytes = std::max(host.granted_bytes, stamped + 1);
    if (const auto volume = host.volume.lock()) {
      volume->pace(static_cast<std::uint64_t>(host.granted_bytes));
    }
  }
}

}  // namespace mariner::node
