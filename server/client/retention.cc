#include "server/client/retention.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

namespace mariner {
namespace {

using Days = std::chrono::sys_days;
using Seconds = std::chrono::sys_seconds;

struct Period {
  const char* name;
  unsigned Retention::*count;
  // The last end of such a period at or before a time.
  Seconds (*end_before)(Seconds);
};

Days day_of(Seconds time) { return std::chrono::floor<std::chrono::days>(time); }

Seconds hour_before(Seconds time) { return std::chrono::floor<std::chrono::hours>(time); }
Seconds day_before(Seconds time) { return day_of(time); }
Seconds week_before(Seconds time) {
  const Days day = day_of(time);
  return day - (std::chrono::weekday(day) - std::chrono::Monday);
}
Seconds month_before(Seconds time) {
  const std::chrono::year_month_day day(day_of(time));
  return Days(day.year() / day.month() / 1);
}
Seconds year_before(Seconds time) {
  const std::chrono::year_month_day day(day_of(time));
  return Days(day.year() / std::chrono::January / 1);
}

constexpr std::array<Period, 5> kPeriods{{{"hourly", &Retention::hourly, &hour_before},
                                          {"daily", &Retention::daily, &day_before},
                                          {"weekly", &Retention::weekly, &week_before},
                                          {"monthly", &Retention::monthly, &month_before},
                                          {"yearly", &Retention::yearly, &year_before}}};

std::uint64_t ns_of(Seconds time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count()) * 1'000'000'000;
}

Error refused(std::string_view text, const std::string& why) {
  return Error{ErrorCode::kInvalidArgument,
               "\"" + std::string(text) + "\": " + why +
                   "; expected for instance \"hourly=24, daily=30, weekly=8, monthly=12\", or "
                   "\"none\""};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

Result<Retention> parse_retention(std::string_view text) {
  Retention out;
  if (trimmed(text) == "none") return out;
  unsigned total = 0;
  for (std::string_view left = text; !left.empty();) {
    const std::size_t comma = left.find(',');
    const std::string_view item = trimmed(left.substr(0, comma));
    left = comma == std::string_view::npos ? std::string_view{} : left.substr(comma + 1);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return refused(text, "\"" + std::string(item) + "\" says no number");
    }
    const std::string_view name = trimmed(item.substr(0, equals));
    const std::string_view number = trimmed(item.substr(equals + 1));
    unsigned count = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), count);
    if (error != std::errc{} || end != number.data() + number.size() ||
        count > Retention::kMomentsMax) {
      return refused(text, "\"" + std::string(number) + "\" is no number from 0 to " +
                               std::to_string(Retention::kMomentsMax));
    }
    bool known = false;
    for (const Period& period : kPeriods) {
      if (name != period.name) continue;
      known = true;
      if (out.*period.count != 0) return refused(text, std::string(name) + " stands there twice");
      out.*period.count = count;
    }
    if (!known) return refused(text, "there is no \"" + std::string(name) + "\"");
    total += count;
  }
  if (out.none()) return refused(text, "it keeps nothing");
  if (total > Retention::kMomentsMax) {
    return refused(text, std::to_string(total) + " moments are more than " +
                             std::to_string(Retention::kMomentsMax));
  }
  return out;
}

std::string retention_text(const Retention& retention) {
  std::string text;
  for (const Period& period : kPeriods) {
    const unsigned count = retention.*period.count;
    if (count == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::string(period.name) + "=" + std::to_string(count);
  }
  return text.empty() ? "none" : text;
}

std::vector<RetainedTime> retained_times(const Retention& retention, VersionTime now) {
  std::map<std::uint64_t, const char*> times;
  const Seconds at{std::chrono::seconds(now.ns / 1'000'000'000)};
  for (const Period& period : kPeriods) {
    Seconds end = period.end_before(at);
    for (unsigned i = 0; i < retention.*period.count; ++i) {
      if (end <= Seconds{}) break;
      times[ns_of(end)] = period.name;
      end = period.end_before(end - std::chrono::seconds(1));
    }
  }
  std::vector<RetainedTime> out;
  const auto shortest = std::ranges::find_if(
      kPeriods, [&](const Period& period) { return retention.*period.count > 0; });
  for (const auto& [ns, name] : times) {
    const Seconds time{std::chrono::seconds(ns / 1'000'000'000)};
    const Seconds begin = shortest->end_before(time - std::chrono::seconds(1));
    const VersionTime after{ns_of(std::max(begin, Seconds{}))};
    out.push_back({{ns}, name, out.empty() ? after : std::max(after, out.back().time)});
  }
  return out;
}

}  // namespace mariner
