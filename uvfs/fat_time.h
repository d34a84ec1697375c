// A time of exFAT: of a clock that says how far it is from UTC.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "uvfs/object_state.h"

namespace mariner::uvfs {

struct ExfatTime {
  std::uint32_t stamp = 0;      // date and time, by two seconds
  std::uint8_t hundredths = 0;  // of these
  std::uint8_t offset = 0;      // quarters of an hour, and whether they are known
};

// Nothing: it is none, or of a clock that does not say where it is.
[[nodiscard]] inline std::optional<FileTime> time_of(const ExfatTime& from) {
  constexpr std::uint8_t kKnown = 0x80;
  if ((from.offset & kKnown) == 0) return {};
  const auto bits = [&](unsigned shift, unsigned count) {
    return from.stamp >> shift & ((1u << count) - 1);
  };
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(1980 + bits(25, 7))),
                                         std::chrono::month(bits(21, 4)),
                                         std::chrono::day(bits(16, 5)));
  if (!date.ok() || bits(11, 5) > 23 || bits(5, 6) > 59 || bits(0, 5) > 29 ||
      from.hundredths > 199) {
    return {};
  }
  const std::chrono::sys_seconds midnight = std::chrono::sys_days(date);
  // (Seven bits, with a sign.)
  const int quarters = (from.offset & 0x7F) - ((from.offset & 0x40) != 0 ? 128 : 0);
  const std::int64_t seconds = midnight.time_since_epoch().count() + bits(11, 5) * 3600 +
                               bits(5, 6) * 60 + bits(0, 5) * 2 + from.hundredths / 100 -
                               std::int64_t{quarters} * 900;
  return FileTime{seconds, static_cast<std::uint32_t>(from.hundredths % 100) * 10'000'000};
}

}  // namespace mariner::uvfs
