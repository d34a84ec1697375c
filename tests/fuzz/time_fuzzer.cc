// The parsers of what people type: times, sizes, durations, addresses. The first byte chooses the
// moment that is now.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "proto/check.h"
#include "proto/endpoint.h"
#include "server/client/quantity.h"
#include "server/client/time_spec.h"
#include "server/client/time_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const bool zone_set = setenv("TZ", "Europe/Berlin", 1) == 0;
  CHECK(zone_set);
  if (size == 0) return 0;
  const mariner::SystemZone zone;
  const mariner::TimeContext context{{std::uint64_t{data[0]} << 56}, zone};
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto spec = mariner::parse_time(text, context);
  if (spec && std::holds_alternative<mariner::VersionTime>(*spec)) {
    // What has been understood is understood again from its own text.
    const auto again =
        mariner::parse_time(format_utc(std::get<mariner::VersionTime>(*spec)), context);
    CHECK(again.has_value() && *again == *spec);
  }
  if (const auto duration = mariner::parse_duration(text)) {
    const auto again = mariner::parse_duration(mariner::format_duration(*duration));
    CHECK(again.has_value() && *again == *duration);
  }
  if (const auto endpoint = mariner::parse_endpoint(text)) {
    const auto again = mariner::parse_endpoint(to_string(*endpoint));
    CHECK(again.has_value() && *again == *endpoint);
  }
  (void)mariner::parse_size(text);
  return 0;
}
