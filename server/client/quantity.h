// Sizes and durations as people write them, in the configuration and on the command line.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "proto/error.h"

namespace mariner {

// A number of bytes.
struct ByteSize {
  std::uint64_t bytes = 0;
  friend constexpr auto operator<=>(const ByteSize&, const ByteSize&) = default;
};

// "4096", "4096B", "512K", "500G", "1GiB" (powers of 1024), "500GB" (powers of 1000); K M G T P,
// in either case. kInvalidArgument: anything else, or 2^64 bytes and more.
[[nodiscard]] Result<ByteSize> parse_size(std::string_view text);

// "200us", "90s", "3d", "1h30m": whole numbers with ns us ms s m h d w, from the largest unit to
// the smallest. A day is 24 hours. kInvalidArgument: anything else, or more than 290 years.
[[nodiscard]] Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// "1.5 GiB", "100 GiB", "512 B": three significant digits at most where it is not exact.
[[nodiscard]] std::string format_size(std::uint64_t bytes);

// What parse_duration() reads back: "3d", "1h30m", "200us", "0s".
[[nodiscard]] std::string format_duration(std::chrono::nanoseconds duration);

}  // namespace mariner
