#include "server/client/zone.h"

#include <algorithm>
#include <ctime>

namespace mariner {

std::vector<std::int64_t> Zone::moments_of(std::int64_t local_s) const {
  // No zone is further from UTC than 26 hours (the largest that tzdata ever had is below 16), so
  // the offsets in force around that time are those that are in force within this reach of it.
  constexpr std::int64_t kReach_s = 26 * 3600;
  constexpr std::int64_t kStep_s = 13 * 3600;
  std::vector<std::int64_t> moments;
  for (auto at = local_s - kReach_s; at <= local_s + kReach_s; at += kStep_s) {
    const auto moment = local_s - offset_s(at);
    if (moment + offset_s(moment) == local_s) moments.push_back(moment);
  }
  std::sort(moments.begin(), moments.end());
  moments.erase(std::unique(moments.begin(), moments.end()), moments.end());
  return moments;
}

std::int64_t SystemZone::offset_s(std::int64_t utc_s) const {
  // localtime_r() need not look at TZ by itself.
  tzset();
  const auto seconds = static_cast<std::time_t>(utc_s);
  std::tm local{};
  return localtime_r(&seconds, &local) == nullptr ? 0 : local.tm_gmtoff;
}

}  // namespace mariner
