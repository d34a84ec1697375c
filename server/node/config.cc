#include "server/node/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "server/node/config_cluster.h"
#include "server/node/config_replication.h"
#include "server/node/config_roles.h"
#include "server/node/config_server.h"
#include "server/node/config_table.h"
#include "server/node/config_values.h"
#include "server/node/config_volume.h"

namespace mariner {
namespace {

using config::absolute_path;
using config::size_between;

// Fewer hold hardly more than what is kept free.

Result<OnFull> parse_on_full(std::string_view text) {
  if (text == "stop-writes") return OnFull::kStopWrites;
  if (text == "shorten-window") return OnFull::kShortenWindow;
  if (text == "throttle") return OnFull::kThrottle;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("expected \"shorten-window\", \"stop-writes\" or \"throttle\", found \"{}\"",
                  text)};
}

Result<bool> parse_polling(std::string_view text) {
  if (text == "auto") return true;
  if (text == "off") return false;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("expected \"auto\" or \"off\", found \"{}\"", text)};
}

Result<bool> parse_compact(std::string_view text) {
  if (text == "on") return true;
  if (text == "off") return false;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("expected \"on\" or \"off\", found \"{}\"", text)};
}

Result<LogDurability> parse_durability(std::string_view text) {
  if (text == "auto") return LogDurability::kAuto;
  if (text == "fua") return LogDurability::kFua;
  if (text == "flush") return LogDurability::kFlush;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("expected \"auto\", \"fua\" or \"flush\", found \"{}\"", text)};
}

Result<std::optional<ByteSize>> parse_scrub_rate(std::string_view text) {
  constexpr ByteSize kFastest{1ull << 40};
  if (text == "auto") return std::optional<ByteSize>{};
  const auto rate = parse_size(text);
  if (!rate) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("expected \"auto\" or bytes per second, such as \"4M\" (\"0\" "
                             "turns it off): {}",
                             rate.error().message)};
  }
  if (*rate > kFastest) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("expected at most {}, found {}", format_size(kFastest.bytes),
                             format_size(rate->bytes))};
  }
  return std::optional<ByteSize>{*rate};
}

void read_log(ConfigTable table, LogConfig& log) {
  constexpr ByteSize kLogMax{1ull << 60};
  if (const auto disks = table.strings("disks")) {
    log.disks.clear();
    for (const auto& disk : *disks) {
      auto path = absolute_path(disk);
      if (path) {
        log.disks.push_back(*std::move(path));
      } else {
        table.error("disks", path.error().message);
      }
    }
    if (disks->empty()) table.error("disks", "empty; name the file or block device of the log");
    if (disks->size() > kLogDisksMax) {
      table.error("disks", fmt::format("expected at most {} log disks, found {}", kLogDisksMax,
                                       disks->size()));
    }
    for (std::size_t i = 0; i < log.disks.size(); ++i) {
      if (std::ranges::count(log.disks, log.disks[i]) > 1) {
        table.error("disks", fmt::format("{} stands there twice", log.disks[i]));
        break;
      }
    }
  }
  for (const auto& lost : table.strings("lost").value_or(std::vector<std::string>{})) {
    auto path = absolute_path(lost);
    if (!path) {
      table.error("lost", path.error().message);
    } else if (std::ranges::find(log.disks, *path) != log.disks.end()) {
      table.error("lost", fmt::format("{} is among the disks too", *path));
    } else {
      log.lost.push_back(*std::move(path));
    }
  }
  table.parsed("track_size", log.track_size, size_between(kTrackSizeMin, kTrackSizeMax));
  if (log.track_size.bytes % 4096 != 0)
    table.error("track_size", "expected a multiple of 4096 bytes");
  table.parsed("max_size", log.max_size,
               size_between(ByteSize{kTracksMin * kTrackSizeMin.bytes}, kLogMax));
  const std::size_t disk_count = std::max<std::size_t>(1, log.disks.size());
  if (log.max_size.bytes / disk_count / kTracksMin < log.track_size.bytes) {
    table.error(
        "max_size",
        fmt::format("each disk must hold at least {} tracks of log.track_size ({}); found {}",
                    kTracksMin, format_size(log.track_size.bytes),
                    format_size(log.max_size.bytes)));
  }
  table.parsed("on_full", log.on_full, parse_on_full);
  if (log.on_full == OnFull::kThrottle &&
      log.max_size.bytes / log.track_size.bytes < kTracksThrottledMin) {
    table.error("on_full", fmt::format("\"throttle\" needs a log of at least {} tracks: expected "
                                       "log.max_size of {} or more, or a smaller log.track_size",
                                       kTracksThrottledMin,
                                       format_size(kTracksThrottledMin * log.track_size.bytes)));
  }
  table.parsed("t_wait", log.t_wait, config::duration_up_to(std::chrono::milliseconds(100)));
  table.parsed("durability", log.durability, parse_durability);
  table.parsed("polling", log.polling, parse_polling);
  table.parsed("scrub_rate", log.scrub_rate, parse_scrub_rate);
  table.parsed("compact", log.compact.enabled, parse_compact);
  table.parsed("compact_after", log.compact.after, parse_duration);
  table.parsed("compact_cpu", log.compact.cpu_share, config::share_from(0.01));
  table.finish();
}

void read_storage(ConfigTable table, StorageConfig& storage) {
  table.parsed("pending_memory", storage.pending_memory,
               size_between(ByteSize{16ull << 20}, ByteSize{1ull << 40}));
  table.parsed("lag_max", storage.lag_max,
               size_between(ByteSize{16ull << 20}, ByteSize{1ull << 50}));
  table.parsed("apply_delay", storage.apply_delay, config::duration_up_to(std::chrono::hours(24)));
  table.finish();
}

void read_views(ConfigTable table, ViewsConfig& views) {
  table.parsed("overlay_max", views.overlay_max, size_between(kOverlayMin, kVolumeSizeMax));
  table.finish();
}

void read_rollback(ConfigTable table, RollbackConfig& rollback) {
  table.parsed("rate_max", rollback.rate_max, config::fetch_rate);
  table.finish();
}

void read_index(ConfigTable table, IndexConfig& index) {
  table.parsed("file", index.file, absolute_path);
  table.parsed("memory", index.memory, size_between(kIndexMemoryMin, ByteSize{1ull << 40}));
  if (const auto records = table.integer("replay_max")) {
    if (*records >= kReplayMaxMin) {
      index.replay_max = *records;
    } else {
      table.error("replay_max",
                  fmt::format("expected at least {} records, found {}", kReplayMaxMin, *records));
    }
  }
  table.finish();
}

void set_defaults(Config& config) {
  config.server.portals = {Endpoint{"0.0.0.0", 3260, false}, Endpoint{"::", 3260, true}};
  config.server.http = Endpoint{"127.0.0.1", 9860, false};
}

void read_root(const toml::table& file, ConfigProblems& problems, Config& config) {
  ConfigTable root(file, "", problems);
  const auto version = root.integer("version");
  if (!root.has("version")) {
    root.error("version", "missing; write version = 1 at the top");
  } else if (version && *version != 1) {
    root.error("version",
               fmt::format("expected 1, found {}: this file is for another version of marinerd",
                           *version));
  }
  config.roles = config::read_roles(root);
  if (const auto* auth = root.table("auth")) config.auth = config::read_auth(*auth, problems);
  if (const auto* server = root.table("server"))
    config::read_server(ConfigTable(*server, "server", problems), config.auth, problems,
                        config.server);
  if (config.has(Role::kStorage) && !config.has(Role::kLogger)) {
    config.log.max_size = kJournalSize;
    config.index.memory = kJournalIndexMemory;
  }
  const toml::table none;
  const auto* log = root.table("log");
  read_log(ConfigTable(log != nullptr ? *log : none, "log", problems), config.log);
  if (const auto* storage = root.table("storage")) {
    read_storage(ConfigTable(*storage, "storage", problems), config.storage);
  }
  if (const auto* views = root.table("views")) {
    read_views(ConfigTable(*views, "views", problems), config.views);
  }
  if (const auto* rollback = root.table("rollback")) {
    read_rollback(ConfigTable(*rollback, "rollback", problems), config.rollback);
  }
  if (const auto* index = root.table("index")) {
    read_index(ConfigTable(*index, "index", problems), config.index);
  }
  const auto* cluster = root.table("cluster");
  config::read_cluster(ConfigTable(cluster != nullptr ? *cluster : none, "cluster", problems),
                       problems, config);
  config::read_replication(root, problems, config);
  config::read_volumes(root, problems, config);
  config::check_sections(root, config);
  root.finish();
  if (config.log.disks.empty() && (config.standalone() || config.has(Role::kLogger))) {
    config.log.disks = {config.server.state_dir + "/log0"};
  }
  if (config.cluster.pki.empty()) config.cluster.pki = config.server.state_dir + "/pki";
}

}  // namespace

std::string to_string(const ConfigProblem& problem) {
  std::string text = problem.file;
  if (problem.line > 0) text += fmt::format(":{}", problem.line);
  text += problem.level == ConfigProblem::Level::kWarning ? ": warning: " : ": ";
  if (!problem.key.empty()) text += problem.key + ": ";
  return text + problem.message;
}

ConfigReading parse_config(std::string_view text, const std::string& file) {
  ConfigReading reading;
  ConfigProblems problems(file);
  Config config;
  set_defaults(config);
  try {
    const auto table = toml::parse(text, file);
    read_root(table, problems, config);
  } catch (const toml::parse_error& error) {
    problems.error(error.source(), "", std::string(error.description()));
  }
  if (!problems.any_error()) reading.config = std::move(config);
  reading.problems = problems.take();
  return reading;
}

Result<std::string> read_config_text(const std::string& file) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(file.c_str(), "re"),
                                                               &std::fclose);
  if (!stream) return errno_error(errno, "cannot be opened");
  std::string text(kConfigBytesMax + 1, '\0');
  errno = 0;
  text.resize(std::fread(text.data(), 1, text.size(), stream.get()));
  if (std::ferror(stream.get()) != 0) return errno_error(errno, "cannot be read");
  if (text.size() > kConfigBytesMax) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("longer than {}: this is no configuration", format_size(kConfigBytesMax))};
  }
  return text;
}

ConfigReading load_config(const std::string& file) {
  const Result<std::string> text = read_config_text(file);
  if (text) return parse_config(*text, file);
  return {std::nullopt, {{ConfigProblem::Level::kError, file, 0, "", text.error().message}}};
}

}  // namespace mariner
