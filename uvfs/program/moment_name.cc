#include "uvfs/program/moment_name.h"

namespace mariner::uvfs {

std::string as_time(std::string_view name) {
  constexpr std::string_view kSample = "GMT-2026.11.20-14.32.05";
  if (name.size() != kSample.size() || !name.starts_with("GMT-")) return std::string(name);
  std::string time(name.substr(4));
  time[4] = time[7] = '-';
  time[10] = 'T';
  time[13] = time[16] = ':';
  return time + "Z";
}

}  // namespace mariner::uvfs
