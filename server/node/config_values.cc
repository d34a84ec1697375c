#include "server/node/config_values.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "server/node/config.h"

namespace mariner::config {
namespace {

struct BitUnit {
  std::string_view name;
  std::uint64_t bits;
};
constexpr std::array<BitUnit, 3> kBitUnits{
    {{"kbit", 1'000}, {"mbit", 1'000'000}, {"gbit", 1'000'000'000}}};

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

// Nothing: it is none.
std::optional<double> parse_bit_rate(const std::string& text) {
  for (const BitUnit& unit : kBitUnits) {
    if (!text.ends_with(unit.name)) continue;
    const char* const end = text.data() + text.size() - unit.name.size();
    double number = 0;
    const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
    if (error != std::errc() || stop != end || !(number >= 0)) return std::nullopt;
    return number * static_cast<double>(unit.bits);
  }
  return std::nullopt;
}

std::string format_bit_rate(std::uint64_t bits) {
  const auto unit = std::ranges::find_if(kBitUnits.rbegin(), kBitUnits.rend(),
                                         [bits](const BitUnit& each) { return bits >= each.bits; });
  return fmt::format("{}{}", bits / unit->bits, unit->name);
}

}  // namespace

Result<std::string> absolute_path(std::string_view text) {
  if (!text.starts_with('/') || text.find('\0') != std::string_view::npos) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("\"{}\" is not an absolute path", text)};
  }
  return std::string(text);
}

Result<Endpoint> reachable_endpoint(std::string_view text, std::string_view example) {
  auto endpoint = parse_endpoint(text);
  if (!endpoint) return endpoint;
  if (endpoint->port == 0 || endpoint->address == (endpoint->v6 ? "::" : "0.0.0.0")) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" is not where other nodes can connect to: expected one address "
                             "and a port, as in \"{}\"",
                             text, example)};
  }
  return endpoint;
}

Result<ByteSize> size_from_to(std::string_view text, ByteSize min, ByteSize max) {
  auto size = parse_size(text);
  if (size && (*size < min || *size > max)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("expected {} to {}, found {}", format_size(min.bytes),
                             format_size(max.bytes), format_size(size->bytes))};
  }
  return size;
}

Result<std::chrono::seconds> seconds_from_to(std::string_view text, std::chrono::seconds min,
                                             std::chrono::seconds max) {
  const auto duration = parse_duration(text);
  if (!duration) return duration.error();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(*duration);
  if (seconds != *duration || seconds < min || seconds > max) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("expected whole seconds, from {} to {}, found {}", format_duration(min),
                    format_duration(max), format_duration(*duration))};
  }
  return seconds;
}

Result<std::chrono::nanoseconds> duration_to(std::string_view text, std::chrono::nanoseconds max) {
  auto duration = parse_duration(text);
  if (duration && *duration > max) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("expected at most {}, found {}", format_duration(max),
                             format_duration(*duration))};
  }
  return duration;
}

Result<std::uint64_t> bit_rate_from_to(std::string_view text, std::uint64_t min,
                                       std::uint64_t max) {
  const auto rate = parse_bit_rate(lower_case(text));
  if (!rate || *rate < static_cast<double>(min) || *rate > static_cast<double>(max)) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("expected {} to {} (bits a second), such as \"800Mbit\"; found \"{}\"",
                             format_bit_rate(min), format_bit_rate(max), text)};
  }
  return static_cast<std::uint64_t>(*rate);
}

Result<std::string> interface_address(std::string_view text) {
  constexpr std::uint32_t kMulticastFirst = 224;
  in_addr address{};
  const bool parses = text.find('\0') == std::string_view::npos &&
                      inet_pton(AF_INET, std::string(text).c_str(), &address) == 1;
  const std::uint32_t first = ntohl(address.s_addr) >> 24;
  if (!parses || first == 0 || first >= kMulticastFirst) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("\"{}\" is no IPv4 address that an interface of this node may have: "
                             "expected one as in \"192.0.2.1\"",
                             text)};
  }
  return std::string(text);
}

Result<ByteSize> fetch_rate(std::string_view text) {
  if (text == "0") return ByteSize{0};
  return size_from_to(text, kFetchRateMin, kFetchRateMax);
}

Result<double> share_from_to_all(std::string_view text, double min) {
  const Error wrong{ErrorCode::kInvalidArgument,
                    fmt::format("expected a share from {}% to 100%, such as \"2.5%\"; found "
                                "\"{}\"",
                                min * 100, text)};
  if (text.empty() || text.back() != '%') return wrong;
  const std::string_view number = text.substr(0, text.size() - 1);
  double percent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (error != std::errc() || end != number.data() + number.size()) return wrong;
  if (!(percent >= min * 100 && percent <= 100)) return wrong;
  return percent / 100;
}

}  // namespace mariner::config
