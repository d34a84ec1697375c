#include "server/node/config_values.h"

#include <fmt/format.h>

namespace mariner::config {

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

}  // namespace mariner::config
