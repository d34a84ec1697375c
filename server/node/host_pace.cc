#include "server/node/host_pace.h"

#include <utility>
#include <vector>

#include "server/node/moments.h"

namespace mariner::node {

HostPace::HostPace(Parts parts, OnFull on_full) : parts_(parts) {
  set_on_full(on_full);
  parts_.log_space.set_pressed([this] {
    if (room_ != nullptr) room_->ran_out();
  });
}

HostPace::~HostPace() { parts_.log_space.set_pressed(nullptr); }

void HostPace::set_on_full(OnFull on_full) {
  const bool throttled = on_full == OnFull::kThrottle;
  const bool shortened = on_full == OnFull::kShortenWindow;
  if (throttled == (throttle_ != nullptr) && shortened == (room_ != nullptr)) return;
  let_go();
  throttle_ = throttled ? std::make_unique<WriteThrottle>(parts_.executor, parts_.log) : nullptr;
  room_ = shortened ? make_room_pace() : nullptr;
}

std::unique_ptr<RoomPace> HostPace::make_room_pace() {
  auto room = [parts = parts_]() -> RoomPace::Room {
    if (!parts.log_space.pressed()) return std::nullopt;
    return RoomPace::room_of(parts.log_stack);
  };
  auto hosts = [parts = parts_] {
    std::vector<RoomPace::Host> all;
    for (const auto& [name, served] : parts.volumes.all()) {
      if (served.volume != nullptr) all.push_back({VolumeId{served.meta.id()}, served.volume});
    }
    return all;
  };
  return std::make_unique<RoomPace>(parts_.executor, std::move(room), std::move(hosts));
}

void HostPace::look(const WindowForecast& forecast) {
  if (throttle_ == nullptr) return;
  std::vector<WriteThrottle::Volume> hosts;
  for (const auto& [name, served] : parts_.volumes.all()) {
    if (served.volume == nullptr) continue;
    hosts.push_back({VolumeId{served.meta.id()}, std::chrono::seconds(served.meta.window_s()),
                     oldest_moment(served).time, served.volume->index().newest().time,
                     served.volume});
  }
  throttle_->look(forecast, WriteThrottle::space_of(parts_.log_stack), hosts);
}

void HostPace::let_go() {
  if (throttle_ != nullptr) throttle_->let_go();
  if (room_ != nullptr) room_->let_go();
}

void HostPace::stop() {
  let_go();
  throttle_.reset();
  room_.reset();
}

std::optional<double> HostPace::pace_of(VolumeId volume) const {
  return throttle_ == nullptr ? std::nullopt : throttle_->pace_of(volume);
}

}  // namespace mariner::node
