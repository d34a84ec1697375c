#include "server/client/restoring_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "server/client/quantity.h"

namespace mariner::client {

std::string restoring_text(const api::Restoring& restore) {
  const std::uint64_t total = std::max<std::uint64_t>(restore.total_bytes(), 1);
  const std::uint64_t done = total - std::min(restore.left_bytes(), total);
  std::string text = fmt::format("restoring: {} of {} ({} %)", format_size(done),
                                 format_size(restore.total_bytes()), done * 100 / total);
  if (restore.seconds_left() == 0) return text;
  return text + fmt::format(", {}/s, about {} left", format_size(restore.bytes_per_second()),
                            format_duration(std::chrono::seconds(restore.seconds_left())));
}

}  // namespace mariner::client
