#include "server/node/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

#include "server/node/config_cluster.h"
#include "server/node/config_server.h"
#include "server/node/config_table.h"
#include "server/node/names.h"

namespace mariner {
namespace {

using config::absolute_path;
using config::read_auth_names;
using config::size_between;

Result<OnFull> parse_on_full(std::string_view text) {
  if (text == "stop-writes") return OnFull::kStopWrites;
  if (text == "shorten-window") return OnFull::kShortenWindow;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("expected \"shorten-window\" or \"stop-writes\", found \"{}\"", text)};
}

Result<bool> parse_polling(std::string_view text) {
  if (text == "auto") return true;
  if (text == "off") return false;
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("expected \"auto\" or \"off\", found \"{}\"", text)};
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

Result<std::chrono::nanoseconds> parse_t_wait(std::string_view text) {
  constexpr auto kLongest = std::chrono::milliseconds(100);
  auto t_wait = parse_duration(text);
  if (t_wait && *t_wait > kLongest) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("expected at most {}, found {}", format_duration(kLongest),
                             format_duration(*t_wait))};
  }
  return t_wait;
}

Result<std::chrono::nanoseconds> parse_apply_delay(std::string_view text) {
  constexpr std::chrono::nanoseconds kLongest = std::chrono::hours(24);
  auto delay = parse_duration(text);
  if (delay && *delay > kLongest) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("expected at most {}; found {}", format_duration(kLongest),
                             format_duration(*delay))};
  }
  return delay;
}

Result<std::chrono::seconds> parse_window(std::string_view text) {
  const auto duration = parse_duration(text);
  if (!duration) return duration.error();
  const auto window = std::chrono::floor<std::chrono::seconds>(*duration);
  if (window != *duration || window < kWindowMin || window > kWindowMax) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("expected whole seconds, from {} to {}, found {}", format_duration(kWindowMin),
                    format_duration(kWindowMax), format_duration(*duration))};
  }
  return window;
}

void read_roles(ConfigTable& root) {
  if (!root.has("roles")) root.error("roles", "missing; write roles = [\"standalone\"]");
  const auto roles = root.strings("roles");
  if (!roles) return;
  static constexpr std::string_view kLater[] = {"target", "logger", "storage", "manager", "remote"};
  for (const auto& role : *roles) {
    if (role == "standalone") continue;
    const bool later = std::find(std::begin(kLater), std::end(kLater), role) != std::end(kLater);
    root.error(
        "roles",
        later ? fmt::format("the role \"{}\" is not available in this version: only \"standalone\" "
                            "is, which is target, logger and storage in one process",
                            role)
              : fmt::format("there is no role \"{}\"; expected \"standalone\"", role));
  }
  if (roles->empty()) root.error("roles", "empty; write roles = [\"standalone\"]");
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
  table.parsed("t_wait", log.t_wait, parse_t_wait);
  table.parsed("durability", log.durability, parse_durability);
  table.parsed("polling", log.polling, parse_polling);
  table.parsed("scrub_rate", log.scrub_rate, parse_scrub_rate);
  table.finish();
}

void read_storage(ConfigTable table, StorageConfig& storage) {
  table.parsed("pending_memory", storage.pending_memory,
               size_between(ByteSize{16ull << 20}, ByteSize{1ull << 40}));
  table.parsed("lag_max", storage.lag_max,
               size_between(ByteSize{16ull << 20}, ByteSize{1ull << 50}));
  table.parsed("apply_delay", storage.apply_delay, parse_apply_delay);
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

void read_block_size(ConfigTable& table, VolumeConfig& volume) {
  const auto block_size = table.integer("block_size");
  if (!block_size) return;
  if (*block_size != 512 && *block_size != 4096) {
    table.error("block_size", fmt::format("expected 512 or 4096, found {}", *block_size));
  } else {
    volume.block_size = static_cast<std::uint32_t>(*block_size);
  }
}

// "1%", "0.5%", "100%".
Result<double> parse_share(std::string_view text) {
  const Error wrong{
      ErrorCode::kInvalidArgument,
      fmt::format("expected a share from 0% to 100%, such as \"0.5%\"; found \"{}\"", text)};
  if (text.empty() || text.back() != '%') return wrong;
  const std::string_view number = text.substr(0, text.size() - 1);
  double percent = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (error != std::errc() || end != number.data() + number.size()) return wrong;
  if (!(percent >= 0 && percent <= 100)) return wrong;
  return percent / 100;
}

Result<std::chrono::nanoseconds> parse_fault_delay(std::string_view text) {
  auto delay = parse_duration(text);
  if (delay && *delay > std::chrono::minutes(1)) {
    return Error{ErrorCode::kInvalidArgument, "a delay is at most 1m"};
  }
  return delay;
}

FaultConfig read_faults(ConfigTable table) {
  FaultConfig faults;
  table.parsed("read_errors", faults.read_errors, parse_share);
  table.parsed("write_errors", faults.write_errors, parse_share);
  table.parsed("read_delay", faults.read_delay, parse_fault_delay);
  table.parsed("write_delay", faults.write_delay, parse_fault_delay);
  table.finish();
  return faults;
}

VolumeConfig read_volume(ConfigTable table, const std::vector<AuthConfig>& accounts,
                         ConfigProblems& problems) {
  VolumeConfig volume;
  if (!table.has("name")) table.error("name", "missing: a volume needs a name");
  if (!table.has("size")) table.error("size", "missing: a volume needs a size, such as \"100G\"");
  if (auto name = table.string("name")) {
    const auto valid = check_volume_name(*name);
    if (!valid) table.error("name", valid.error().message);
    volume.name = *std::move(name);
  }
  table.parsed("size", volume.size, size_between(kVolumeSizeMin, kVolumeSizeMax));
  if (volume.size.bytes % 4096 != 0) table.error("size", "expected a multiple of 4096 bytes");
  table.parsed("window", volume.window, parse_window);
  read_block_size(table, volume);
  if (auto acl = table.strings("acl")) {
    for (const auto& initiator : *acl) {
      const auto valid = check_initiator_name(initiator);
      if (!valid) table.error("acl", valid.error().message);
    }
    volume.acl = *std::move(acl);
  }
  volume.auth = read_auth_names(table, "auth", accounts);
  table.parsed("redirect", volume.redirect, [](std::string_view text) -> Result<std::string> {
    const auto address = parse_target_address(text);
    if (!address) return address.error();
    return to_string(*address);
  });
  volume.redirect_permanent = table.boolean("redirect_permanent").value_or(false);
  if (volume.redirect_permanent && volume.redirect.empty()) {
    table.error("redirect_permanent", "without redirect: where to?");
  }
  volume.sanitize = table.boolean("sanitize").value_or(false);
  volume.removable = table.boolean("removable").value_or(false);
  if (const auto* faults = table.table("faults")) {
    volume.faults = read_faults(ConfigTable(*faults, "volume.faults", problems));
  }
  table.finish();
  return volume;
}

void read_volumes(ConfigTable& root, ConfigProblems& problems, Config& config) {
  const auto tables = root.tables("volume");
  if (tables.size() > kVolumesMax) {
    root.error("volume", fmt::format("more than {} volumes", kVolumesMax));
    return;
  }
  for (const auto* table : tables) {
    auto volume = read_volume(ConfigTable(*table, "volume", problems), config.auth, problems);
    const bool twice =
        std::any_of(config.volumes.begin(), config.volumes.end(),
                    [&volume](const auto& other) { return other.name == volume.name; });
    if (twice && !volume.name.empty()) {
      problems.error(table->source(), "volume.name",
                     fmt::format("there are two volumes \"{}\"", volume.name));
    }
    config.volumes.push_back(std::move(volume));
  }
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
  read_roles(root);
  if (const auto* auth = root.table("auth")) config.auth = config::read_auth(*auth, problems);
  if (const auto* server = root.table("server"))
    config::read_server(ConfigTable(*server, "server", problems), config.auth, problems,
                        config.server);
  const toml::table none;
  const auto* log = root.table("log");
  read_log(ConfigTable(log != nullptr ? *log : none, "log", problems), config.log);
  if (const auto* storage = root.table("storage")) {
    read_storage(ConfigTable(*storage, "storage", problems), config.storage);
  }
  if (const auto* index = root.table("index")) {
    read_index(ConfigTable(*index, "index", problems), config.index);
  }
  if (const auto* cluster = root.table("cluster")) {
    config::read_cluster(ConfigTable(*cluster, "cluster", problems), config.cluster);
  }
  if (root.table("replication") != nullptr) {
    root.error("replication", "replication is not available in this version: remove the section");
  }
  read_volumes(root, problems, config);
  root.finish();
  if (config.log.disks.empty()) config.log.disks = {config.server.state_dir + "/log0"};
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

ConfigReading load_config(const std::string& file) {
  const auto failed = [&file](std::string message) {
    return ConfigReading{std::nullopt,
                         {{ConfigProblem::Level::kError, file, 0, "", std::move(message)}}};
  };
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream(std::fopen(file.c_str(), "re"),
                                                               &std::fclose);
  if (!stream) return failed(errno_error(errno, "cannot be opened").message);
  std::string text(kConfigBytesMax + 1, '\0');
  errno = 0;
  text.resize(std::fread(text.data(), 1, text.size(), stream.get()));
  if (std::ferror(stream.get()) != 0) return failed(errno_error(errno, "cannot be read").message);
  if (text.size() > kConfigBytesMax) {
    return failed(
        fmt::format("longer than {}: this is no configuration", format_size(kConfigBytesMax)));
  }
  return parse_config(text, file);
}

}  // namespace mariner
