#include "server/client/time_spec.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <chrono>
#include <limits>

#include "server/client/quantity.h"
#include "server/client/time_text.h"

namespace mariner {
namespace {

using std::chrono::nanoseconds;

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kDay_s = 86400;

constexpr std::string_view kForms =
    "expected a time such as \"2026-11-20 14:32:05\", 2026-11-20T14:32:05Z, 14:32:05, -10m, "
    "\"10 minutes ago\", yesterday, now, mark:NAME or #SEQUENCE";

Error wrong(std::string_view text, std::string_view why) {
  return Error{ErrorCode::kInvalidArgument, fmt::format("\"{}\": {}", text, why)};
}

// Reads a text from left to right; every take_ moves on only if it succeeds.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  [[nodiscard]] bool done() const { return rest_.empty(); }
  [[nodiscard]] std::string_view rest() const { return rest_; }

  bool take(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Exactly `digits` decimal digits.
  bool take_number(std::size_t digits, int& number) {
    if (rest_.size() < digits) return false;
    int value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      if (rest_[i] < '0' || rest_[i] > '9') return false;
      value = value * 10 + (rest_[i] - '0');
    }
    number = value;
    rest_.remove_prefix(digits);
    return true;
  }

  // One to nine digits after a decimal point, as nanoseconds.
  bool take_fraction_ns(std::int64_t& ns) {
    std::int64_t value = 0;
    std::size_t digits = 0;
    while (digits < rest_.size() && rest_[digits] >= '0' && rest_[digits] <= '9') {
      if (digits == 9) return false;
      value = value * 10 + (rest_[digits++] - '0');
    }
    if (digits == 0) return false;
    rest_.remove_prefix(digits);
    for (; digits < 9; ++digits) value *= 10;
    ns = value;
    return true;
  }

 private:
  std::string_view rest_;
};

struct TimeOfDay {
  std::int64_t seconds = 0;
  std::int64_t ns = 0;
};

// HH:MM[:SS[.fraction]]
bool take_time_of_day(Scanner& scanner, TimeOfDay& time) {
  int hours = 0;
  int minutes = 0;
  int seconds = 0;
  if (!scanner.take_number(2, hours) || !scanner.take(':') || !scanner.take_number(2, minutes))
    return false;
  if (scanner.take(':')) {
    if (!scanner.take_number(2, seconds)) return false;
    if (scanner.take('.') && !scanner.take_fraction_ns(time.ns)) return false;
  }
  time.seconds = hours * 3600 + minutes * 60 + seconds;
  // A leap second (60) has no place on the clock that stamps writes.
  return hours < 24 && minutes < 60 && seconds < 60;
}

// YYYY-MM-DD, as days since the epoch.
bool take_date(Scanner& scanner, std::int64_t& days) {
  int year = 0;
  int month = 0;
  int day = 0;
  if (!scanner.take_number(4, year) || !scanner.take('-') || !scanner.take_number(2, month) ||
      !scanner.take('-') || !scanner.take_number(2, day)) {
    return false;
  }
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok()) return false;
  days = std::chrono::sys_days(date).time_since_epoch().count();
  return true;
}

// Z, or +HH:MM, or -HH:MM, to the end.
bool take_offset(Scanner& scanner, std::int64_t& offset_s) {
  offset_s = 0;
  if (scanner.take('Z') || scanner.take('z')) return scanner.done();
  const bool negative = scanner.take('-');
  if (!negative && !scanner.take('+')) return false;
  int hours = 0;
  int minutes = 0;
  if (!scanner.take_number(2, hours) || !scanner.take(':') || !scanner.take_number(2, minutes))
    return false;
  offset_s = (hours * 3600 + minutes * 60) * (negative ? -1 : 1);
  return hours < 24 && minutes < 60 && scanner.done();
}

Result<TimeSpec> moment(std::string_view text, std::int64_t utc_s, std::int64_t ns) {
  if (utc_s < 0) return wrong(text, "this is before 1970");
  std::uint64_t total = 0;
  if (__builtin_mul_overflow(static_cast<std::uint64_t>(utc_s),
                             static_cast<std::uint64_t>(kSecondNs), &total) ||
      __builtin_add_overflow(total, static_cast<std::uint64_t>(ns), &total)) {
    return wrong(text, "this is after 2554");
  }
  return TimeSpec(VersionTime{total});
}

// What both readings of a local time are, for the refusal of an ambiguous one.
std::string readings(const std::vector<std::int64_t>& moments, std::int64_t ns, const Zone& zone) {
  std::string text;
  for (const auto utc_s : moments) {
    if (!text.empty()) text += " or ";
    text += format_local(VersionTime{static_cast<std::uint64_t>(utc_s * kSecondNs + ns)}, zone);
  }
  return text;
}

Result<TimeSpec> local_moment(std::string_view text, std::int64_t local_s, std::int64_t ns,
                              const Zone& zone) {
  if (local_s < kDay_s) return wrong(text, "this is before 1970-01-02, too early for a local time");
  if (local_s > std::numeric_limits<std::int64_t>::max() / kSecondNs)
    return wrong(text, "this is after 2262");
  const auto moments = zone.moments_of(local_s);
  if (moments.empty()) {
    return wrong(text,
                 "this local time does not exist: the clocks skip it at their change; "
                 "give a time before or after the change, or one with an offset");
  }
  if (moments.size() > 1) {
    return wrong(text,
                 fmt::format("this local time is ambiguous: the clocks show it twice at their "
                             "change; write {}",
                             readings(moments, ns, zone)));
  }
  return moment(text, moments.front(), ns);
}

Result<TimeSpec> parse_date_and_time(std::string_view text, const TimeContext& context) {
  Scanner scanner(text);
  std::int64_t days = 0;
  TimeOfDay time;
  if (!take_date(scanner, days)) return wrong(text, "there is no such date (expected YYYY-MM-DD)");
  if (scanner.done()) return wrong(text, "a date needs a time of day: YYYY-MM-DD HH:MM:SS");
  if (!scanner.take('T') && !scanner.take('t') && !scanner.take(' ')) return wrong(text, kForms);
  if (!take_time_of_day(scanner, time)) {
    return wrong(text,
                 "there is no such time of day (expected HH:MM:SS with at most nine decimals)");
  }
  const auto clock_s = days * kDay_s + time.seconds;
  if (scanner.done()) return local_moment(text, clock_s, time.ns, context.zone);
  std::int64_t offset_s = 0;
  if (!take_offset(scanner, offset_s)) {
    return wrong(text,
                 "what follows the time is no offset from UTC (expected Z, +HH:MM or -HH:MM)");
  }
  return moment(text, clock_s - offset_s, time.ns);
}

std::int64_t now_s(const TimeContext& context) {
  return static_cast<std::int64_t>(context.now.ns / static_cast<std::uint64_t>(kSecondNs));
}

// The beginning of the local day that `utc_s` is in.
std::int64_t local_day(std::int64_t utc_s, const Zone& zone) {
  const auto local_s = utc_s + zone.offset_s(utc_s);
  return (local_s >= 0 ? local_s : local_s - (kDay_s - 1)) / kDay_s * kDay_s;
}

// HH:MM[:SS[.f]]: the last such moment. A day on which the clocks skip it has none.
Result<TimeSpec> parse_time_of_day(std::string_view text, const TimeContext& context) {
  Scanner scanner(text);
  TimeOfDay time;
  if (!take_time_of_day(scanner, time) || !scanner.done()) {
    return wrong(text,
                 "there is no such time of day (expected HH:MM:SS with at most nine decimals)");
  }
  const auto today = local_day(now_s(context), context.zone);
  // From tomorrow, because the clock may have been put back over midnight.
  for (auto day = today + kDay_s; day >= today - 3 * kDay_s; day -= kDay_s) {
    const auto moments = context.zone.moments_of(day + time.seconds);
    for (auto at = moments.rbegin(); at != moments.rend(); ++at) {
      const bool past =
          *at < now_s(context) ||
          (*at == now_s(context) && static_cast<std::uint64_t>(time.ns) <=
                                        context.now.ns % static_cast<std::uint64_t>(kSecondNs));
      if (past) return moment(text, *at, time.ns);
    }
  }
  return wrong(text, "the clocks have not shown this in the last three days; give a date");
}

Result<TimeSpec> before_now(std::string_view text, nanoseconds distance,
                            const TimeContext& context) {
  const auto ns = static_cast<std::uint64_t>(distance.count());
  if (ns > context.now.ns) return wrong(text, "this is before 1970");
  return TimeSpec(VersionTime{context.now.ns - ns});
}

struct UnitWord {
  std::string_view word;
  nanoseconds unit;
};
constexpr std::array kUnitWords{
    UnitWord{"nanosecond", nanoseconds(1)},
    UnitWord{"microsecond", std::chrono::microseconds(1)},
    UnitWord{"millisecond", std::chrono::milliseconds(1)},
    UnitWord{"second", std::chrono::seconds(1)},
    UnitWord{"sec", std::chrono::seconds(1)},
    UnitWord{"minute", std::chrono::minutes(1)},
    UnitWord{"min", std::chrono::minutes(1)},
    UnitWord{"hour", std::chrono::hours(1)},
    UnitWord{"day", std::chrono::hours(24)},
    UnitWord{"week", std::chrono::hours(24 * 7)},
};

// "10 minutes ago", "an hour ago", "10m ago".
Result<TimeSpec> parse_ago(std::string_view text, const TimeContext& context) {
  auto words = text.substr(0, text.size() - std::string_view(" ago").size());
  if (const auto duration = parse_duration(words)) return before_now(text, *duration, context);
  std::uint64_t number = 1;
  const auto space = words.find(' ');
  const auto count = words.substr(0, space);
  auto word = space == std::string_view::npos ? std::string_view{} : words.substr(space + 1);
  if (count != "a" && count != "an") {
    const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), number);
    if (error != std::errc{} || end != count.data() + count.size()) return wrong(text, kForms);
  }
  if (word.size() > 1 && word.back() == 's') word.remove_suffix(1);
  for (const auto& [name, unit] : kUnitWords) {
    if (name != word) continue;
    std::int64_t ns = 0;
    if (number > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()) ||
        __builtin_mul_overflow(static_cast<std::int64_t>(number), unit.count(), &ns)) {
      return wrong(text, "this is before 1970");
    }
    return before_now(text, nanoseconds(ns), context);
  }
  return wrong(text, "unknown unit; expected seconds, minutes, hours, days or weeks");
}

Result<TimeSpec> parse_sequence(std::string_view text) {
  const auto digits = text.substr(1);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    return wrong(text, "expected a sequence number after the #, as in #4711");
  }
  return TimeSpec(SequenceNumber{number});
}

Result<TimeSpec> yesterday(const TimeContext& context) {
  const auto midnight = local_day(now_s(context), context.zone) - kDay_s;
  // Some zones change their clocks at midnight: then the day begins a little later.
  for (auto local_s = midnight; local_s < midnight + 3 * 3600; local_s += 60) {
    const auto moments = context.zone.moments_of(local_s);
    if (!moments.empty()) return moment("yesterday", moments.front(), 0);
  }
  return wrong("yesterday", "the clocks skip that day; give a date");
}

bool is_digit(std::string_view text, std::size_t at) {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

}  // namespace

Result<TimeSpec> parse_time(std::string_view text, const TimeContext& context) {
  constexpr std::string_view kMark = "mark:";
  if (text.empty()) return wrong(text, kForms);
  if (text == "now") return TimeSpec(Now{});
  if (text == "yesterday") return yesterday(context);
  if (text[0] == '#') return parse_sequence(text);
  if (text.starts_with(kMark)) {
    if (text.size() == kMark.size()) return wrong(text, "expected a mark's name after mark:");
    return TimeSpec(MarkName{std::string(text.substr(kMark.size()))});
  }
  if (text[0] == '-') {
    const auto distance = parse_duration(text.substr(1));
    if (!distance) return wrong(text, kForms);
    return before_now(text, *distance, context);
  }
  if (text.ends_with(" ago")) return parse_ago(text, context);
  if (is_digit(text, 0) && text.size() > 2 && text[2] == ':')
    return parse_time_of_day(text, context);
  if (is_digit(text, 0) && text.size() > 4 && text[4] == '-')
    return parse_date_and_time(text, context);
  return wrong(text, kForms);
}

ObjectAtTime split_object(std::string_view text) {
  const auto at = text.find('@');
  if (at == std::string_view::npos) return {std::string(text), std::nullopt};
  return {std::string(text.substr(0, at)), std::string(text.substr(at + 1))};
}

}  // namespace mariner
