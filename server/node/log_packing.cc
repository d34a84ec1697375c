#include "server/node/log_packing.h"

#include <algorithm>

namespace mariner::node {

logging::PackingOptions packing_options(const CompactConfig& config) {
  logging::PackingOptions options;
  options.enabled = config.enabled;
  options.cold_after = config.after;
  options.cpu_share = config.cpu_share;
  return options;
}

LogPacking::LogPacking(LogStack& stack, const CompactConfig& config, Log& log)
    : stack_(stack), log_(log) {
  stack_.array().start_packing(
      packing_options(config),
      [this](std::uint8_t disk, const logging::PackingReport& told) { report(disk, told); });
}

void LogPacking::set(const CompactConfig& config) {
  stack_.array().set_packing(packing_options(config));
}

Result<void> LogPacking::compact_now() {
  const auto& members = stack_.array().members();
  if (std::ranges::none_of(members, [](const auto& member) { return member->packer != nullptr; })) {
    return Error{ErrorCode::kUnavailable,
                 stack_.paths() +
                     ": was made by a version that could not compact it; add a new log disk "
                     "([log] disks) and take this one out to have it compacted"};
  }
  ++compacting_;
  trouble_.clear();
  stack_.array().pack_now([this](const Result<void>& done) {
    --compacting_;
    if (!done) trouble_ = done.error().message;
  });
  return {};
}

void LogPacking::report(std::uint8_t disk, const logging::PackingReport& report) {
  if (!report.trouble.empty()) {
    log_.warning(
        "tracks of the log could not be compacted; they stay as they are",
        {{"log", stack_.path_of(disk)}, {"tracks", report.tracks}, {"error", report.trouble}});
    return;
  }
  stack_.count_packed(report.packed_bytes);
  log_.debug("tracks of the log were compacted", {{"log", stack_.path_of(disk)},
                                                  {"tracks", report.tracks},
                                                  {"bytes", report.used_bytes},
                                                  {"compacted_bytes", report.packed_bytes}});
}

}  // namespace mariner::node
