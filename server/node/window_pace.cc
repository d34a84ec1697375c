#include "server/node/window_pace.h"

#include <algorithm>

namespace mariner::node {

double WindowPace::allowed(const WindowForecast& forecast, const WindowForecast::Held& held,
                           double room_bytes, const Since& since) {
  const auto window = std::max(1.0, static_cast<double>(held.window.count()));
  room_bytes = std::max(1.0, room_bytes);
  const double reserve = room_bytes * kReserveShare;
  const double basic = (room_bytes - reserve) / window;
  const std::chrono::seconds leeway = std::max({std::chrono::seconds(1), held.window / kLeewayShare,
                                                std::min(kLumps, held.window / kLeewayShareMost)});
  const double even = forecast.sustainable(held, room_bytes, leeway);
  const double before = std::min(reserve_, reserve);
  reserve_ = before + basic * since.seconds - since.bytes;
  // (Who goes on at the even rate takes nothing.)
  if (reserve_ < 0) {
    const double rate = std::max(even, basic);
    reserve_ = std::clamp(before + rate * since.seconds - since.bytes, -room_bytes, 0.0);
  }
  reserve_ = std::min(reserve_, reserve);
  const double spare = forecast.spare(held, room_bytes, basic);
  if (spare < 0) return std::max(even, basic * kLeastShare);
  const double left = std::clamp(std::min(reserve_, spare), 0.0, reserve);
  const double used = std::max(1 - left / reserve, 1e-6);
  return std::max(even, std::min(basic / (used * used), basic + left / kBurstSeconds));
}

}  // namespace mariner::node
