#include "server/client/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>

namespace mariner {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t scale;
};

constexpr std::uint64_t kMicrosecond = 1000;
constexpr std::uint64_t kSecond = 1'000'000'000;

// From the largest to the smallest: the order in which they may follow each other.
constexpr std::array kDurationUnits{
    Unit{"w", 7 * 86400 * kSecond},
    Unit{"d", 86400 * kSecond},
    Unit{"h", 3600 * kSecond},
    Unit{"m", 60 * kSecond},
    Unit{"s", kSecond},
    Unit{"ms", 1000 * kMicrosecond},
    Unit{"us", kMicrosecond},
    Unit{"ns", 1},
};

constexpr std::string_view kSizePrefixes = "KMGTP";

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

// Takes a whole number off the front of `text`. False: there is none, or it is too large.
bool take_number(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::string_view take_letters(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && upper(text[length]) >= 'A' && upper(text[length]) <= 'Z') ++length;
  const auto letters = text.substr(0, length);
  text.remove_prefix(length);
  return letters;
}

// The factor that a size's suffix stands for; 0 for an unknown one.
std::uint64_t size_scale(std::string_view suffix) {
  if (suffix.empty() || suffix == "B" || suffix == "b") return 1;
  const auto power = kSizePrefixes.find(upper(suffix[0]));
  if (power == std::string_view::npos) return 0;
  const auto rest = suffix.substr(1);
  const bool decimal = rest.size() == 1 && upper(rest[0]) == 'B';
  const bool binary =
      rest.empty() || (rest.size() == 2 && upper(rest[0]) == 'I' && upper(rest[1]) == 'B');
  if (!decimal && !binary) return 0;
  std::uint64_t scale = 1;
  for (std::size_t i = 0; i <= power; ++i) scale *= decimal ? 1000 : 1024;
  return scale;
}

}  // namespace

Result<ByteSize> parse_size(std::string_view text) {
  auto rest = text;
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;
  if (!take_number(rest, number)) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("\"{}\" is not a size: expected a whole number with B, K, M, G, T or P, "
                    "as in \"500G\" or \"1GiB\"",
                    text)};
  }
  const auto scale = size_scale(rest);
  if (scale == 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("\"{}\" is not a size: unknown unit \"{}\"; expected B, K, M, G, T or P, "
                    "as in \"500G\" or \"1GiB\"",
                    text, rest)};
  }
  if (__builtin_mul_overflow(number, scale, &bytes)) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("the size \"{}\" is too large", text)};
  }
  return ByteSize{bytes};
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  const auto wrong = [text](std::string_view why) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("\"{}\" is not a duration: {}; expected a whole number with us, ms, s, "
                    "m, h, d or w, as in \"200us\", \"3d\" or \"1h30m\"",
                    text, why)};
  };
  auto rest = text;
  std::uint64_t total = 0;
  std::size_t next_unit = 0;
  if (rest.empty()) return wrong("it is empty");
  while (!rest.empty()) {
    std::uint64_t number = 0;
    if (!take_number(rest, number)) return wrong("there is no number where one must stand");
    const auto name = take_letters(rest);
    std::size_t unit = 0;
    while (unit < kDurationUnits.size() && kDurationUnits[unit].name != name) ++unit;
    if (unit == kDurationUnits.size()) {
      return wrong(name.empty() ? std::string("it has no unit")
                                : fmt::format("unknown unit \"{}\"", name));
    }
    if (unit < next_unit) return wrong("its units are not in falling order");
    next_unit = unit + 1;
    std::uint64_t part = 0;
    if (__builtin_mul_overflow(number, kDurationUnits[unit].scale, &part) ||
        __builtin_add_overflow(total, part, &total) ||
        total > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return wrong("it is longer than 290 years");
    }
  }
  return std::chrono::nanoseconds(static_cast<std::int64_t>(total));
}

std::string format_size(std::uint64_t bytes) {
  std::size_t power = 0;
  auto value = static_cast<double>(bytes);
  while (value >= 1024 && power < kSizePrefixes.size()) {
    value /= 1024;
    ++power;
  }
  if (power == 0) return fmt::format("{} B", bytes);
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  auto number = fmt::format("{:.{}f}", value, decimals);
  if (decimals > 0) {
    number.erase(number.find_last_not_of('0') + 1);
    if (number.back() == '.') number.pop_back();
  }
  return fmt::format("{} {}iB", number, kSizePrefixes[power - 1]);
}

std::string format_duration(std::chrono::nanoseconds duration) {
  if (duration.count() < 0) {
    // Negation in unsigned arithmetic, because the smallest value has no positive twin.
    const auto magnitude = std::uint64_t{0} - static_cast<std::uint64_t>(duration.count());
    if (magnitude > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return "-15250w";
    return "-" + format_duration(std::chrono::nanoseconds(static_cast<std::int64_t>(magnitude)));
  }
  auto rest = static_cast<std::uint64_t>(duration.count());
  if (rest == 0) return "0s";
  std::string text;
  for (const auto& unit : kDurationUnits) {
    // Weeks are read but not written: "14d" is easier to compare with "3d" than "2w".
    if (unit.name == "w") continue;
    if (rest >= unit.scale) text += fmt::format("{}{}", rest / unit.scale, unit.name);
    rest %= unit.scale;
  }
  return text;
}

}  // namespace mariner
