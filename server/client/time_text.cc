#include "server/client/time_text.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

namespace mariner {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

// `local_s` counts a local date and time as if it were UTC.
std::string date_and_time(std::int64_t local_s, char separator) {
  using namespace std::chrono;
  const sys_seconds at{seconds(local_s)};
  const auto day = floor<days>(at);
  const year_month_day date(day);
  const hh_mm_ss time(at - day);
  return fmt::format("{:04}-{:02}-{:02}{}{:02}:{:02}:{:02}", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     separator, time.hours().count(), time.minutes().count(),
                     time.seconds().count());
}

}  // namespace

std::string format_utc(VersionTime time) {
  return fmt::format("{}.{:09}Z",
                     date_and_time(static_cast<std::int64_t>(time.ns / kNsPerSecond), 'T'),
                     time.ns % kNsPerSecond);
}

std::string format_local(VersionTime time, const Zone& zone) {
  const auto utc_s = static_cast<std::int64_t>(time.ns / kNsPerSecond);
  const auto offset_s = zone.offset_s(utc_s);
  // Offsets with seconds ended before 1972 almost everywhere; RFC 3339 cannot write them.
  const auto offset_min = std::abs(offset_s) / 60;
  return fmt::format("{}.{:09}{}{:02}:{:02}", date_and_time(utc_s + offset_s, 'T'),
                     time.ns % kNsPerSecond, offset_s < 0 ? '-' : '+', offset_min / 60,
                     offset_min % 60);
}

std::string format_local_short(VersionTime time, const Zone& zone) {
  const auto utc_s = static_cast<std::int64_t>(time.ns / kNsPerSecond);
  return date_and_time(utc_s + zone.offset_s(utc_s), ' ');
}

}  // namespace mariner
