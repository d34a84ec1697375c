#include "uvfs/snapshot_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <set>

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;
constexpr std::uint64_t kMinute_s = 60;
constexpr std::uint64_t kHour_s = 60 * kMinute_s;
constexpr std::uint64_t kDay_s = 24 * kHour_s;
constexpr std::uint64_t kWeek_s = 7 * kDay_s;
// (1970-01-01 was a Thursday.)
constexpr std::uint64_t kMonday_s = 4 * kDay_s;

struct Grid {
  std::uint64_t step_s = 0;
  std::uint64_t reach_s = 0;  // before the newest
  std::uint64_t begin_s = 0;  // one of its times
};
constexpr Grid kGrids[] = {{.step_s = 5 * kMinute_s, .reach_s = kHour_s, .begin_s = 0},
                           {.step_s = kHour_s, .reach_s = 2 * kDay_s, .begin_s = 0},
                           {.step_s = kDay_s, .reach_s = 60 * kDay_s, .begin_s = 0},
                           {.step_s = kWeek_s, .reach_s = ~std::uint64_t{0}, .begin_s = kMonday_s}};

constexpr std::string_view kPrefix = "@GMT-";

// The digits at `at`, as many as a field has.
std::optional<unsigned> number_at(std::string_view text, std::size_t at, std::size_t digits) {
  unsigned value = 0;
  const char* const end = text.data() + at + digits;
  const auto [stop, error] = std::from_chars(text.data() + at, end, value);
  if (error != std::errc() || stop != end) return {};
  return value;
}

}  // namespace

std::vector<VersionTime> snapshot_times(VersionTime oldest, VersionTime newest) {
  const std::uint64_t last_s = newest.ns / kNsPerSecond;
  const std::uint64_t first_s = (oldest.ns + kNsPerSecond - 1) / kNsPerSecond;
  std::set<std::uint64_t> seconds;
  for (const Grid& grid : kGrids) {
    if (last_s < grid.begin_s) continue;
    const std::uint64_t from_s =
        std::max({first_s, last_s - std::min(last_s, grid.reach_s), grid.begin_s});
    std::uint64_t at_s = last_s - (last_s - grid.begin_s) % grid.step_s;
    for (std::size_t i = 0; i < kSnapshotTimesMax && at_s >= from_s; ++i) {
      seconds.insert(at_s);
      if (at_s < grid.step_s) break;
      at_s -= grid.step_s;
    }
  }
  std::vector<VersionTime> times;
  for (const std::uint64_t each : seconds) times.push_back({each * kNsPerSecond});
  if (times.size() > kSnapshotTimesMax) times.erase(times.begin(), times.end() - kSnapshotTimesMax);
  return times;
}

std::string snapshot_name(VersionTime time) {
  const std::chrono::sys_seconds at(
      std::chrono::seconds((time.ns + kNsPerSecond - 1) / kNsPerSecond));
  const auto day = std::chrono::floor<std::chrono::days>(at);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(at - day);
  return fmt::format("{}{:04}.{:02}.{:02}-{:02}.{:02}.{:02}", kPrefix,
                     static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()), clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

std::optional<VersionTime> parse_snapshot_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return {};
  const std::string_view text = name.substr(kPrefix.size());
  constexpr std::string_view kLike = "0000.00.00-00.00.00";
  if (text.size() != kLike.size()) return {};
  for (std::size_t i = 0; i < kLike.size(); ++i) {
    if (kLike[i] != '0' && text[i] != kLike[i]) return {};
  }
  std::array<unsigned, 6> fields{};
  constexpr std::size_t kPlaces[] = {0, 5, 8, 11, 14, 17};
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto field = number_at(text, kPlaces[i], i == 0 ? 4 : 2);
    if (!field) return {};
    fields[i] = *field;
  }
  const auto [year, month, day, hour, minute, second] = fields;
  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(year)),
                                         std::chrono::month(month), std::chrono::day(day)};
  if (!date.ok() || hour > 23 || minute > 59 || second > 59) return {};
  const auto since = std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
                     std::chrono::minutes(minute) + std::chrono::seconds(second);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since).count();
  constexpr std::int64_t kSecondsMax = ~std::uint64_t{0} / kNsPerSecond;
  if (seconds < 0 || seconds > kSecondsMax) return {};
  return VersionTime{static_cast<std::uint64_t>(seconds) * kNsPerSecond};
}

}  // namespace mariner::uvfs
