#include "server/node/config_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "server/node/config_keys.h"

namespace mariner {
namespace {

using Effect = ConfigChange::Effect;

// A log that is too small for it is larger at the next start, or the configuration is wrong.
bool needs_restart(const LogConfig& running, const LogConfig& read) {
  return read.on_full == OnFull::kThrottle &&
         running.max_size.bytes / running.track_size.bytes < kTracksThrottledMin;
}

constexpr std::size_t kVolumeKeyBegin = std::string_view("volume.").size();

const VolumeConfig* find(const Config& config, std::string_view volume) {
  const auto found = std::ranges::find(config.volumes, volume, &VolumeConfig::name);
  return found == config.volumes.end() ? nullptr : &*found;
}

class Comparison {
 public:
  Comparison(const Config& running, const Config& read) : running_(running), read_(read) {}

  // A change of the key from one value to the other, with what it leads to.
  [[nodiscard]] ConfigChange change(const ConfigKey& key, std::string from, std::string to) const {
    ConfigChange change{key.key, std::move(from), std::move(to)};
    if (running_.roles != read_.roles) {
      change.effect = Effect::kNextStart;
    } else if (!key.volume.empty()) {
      judge_volume(key, change);
    } else {
      change.effect = at_once(key.key) ? Effect::kAtOnce : Effect::kNextStart;
    }
    return change;
  }

 private:
  [[nodiscard]] bool at_once(std::string_view key) const {
    static constexpr std::array kEverywhere = {std::string_view("server.discovery_auth"),
                                               std::string_view("server.busy_poll"),
                                               std::string_view("log.disks"),
                                               std::string_view("log.polling"),
                                               std::string_view("log.compact"),
                                               std::string_view("log.compact_after"),
                                               std::string_view("log.compact_cpu"),
                                               std::string_view("rollback.rate_max")};
    // Of a node that has none, the next start makes one.
    if (key.starts_with("log.") && running_.has_log() != read_.has_log()) return false;
    if (key.starts_with("auth.") || std::ranges::find(kEverywhere, key) != kEverywhere.end()) {
      return true;
    }
    if (key == "log.on_full") return !needs_restart(running_.log, read_.log);
    return key == (running_.standalone() ? "views.overlay_max" : "cluster.catch_up_max");
  }

  void judge_volume(const ConfigKey& key, ConfigChange& change) const {
    const VolumeConfig* const was = find(running_, key.volume);
    const VolumeConfig* const wanted = find(read_, key.volume);
    // One that is new is made. One that is gone from the file stays; it is only not declared.
    if (was == nullptr || wanted == nullptr) return;
    const std::string_view name =
        std::string_view(key.key).substr(kVolumeKeyBegin + key.volume.size());
    if (!running_.standalone()) {
      change.effect = Effect::kNever;
      change.reason =
          fmt::format("a volume of a cluster stays as it was made: leave {} as it is", key.key);
    } else if (name == ".size" && wanted->size < was->size) {
      change.effect = Effect::kNever;
      change.reason =
          fmt::format("a volume never shrinks: expected at least \"{}\"", exact_size(was->size));
    } else if (name == ".block_size") {
      change.effect = Effect::kNever;
      change.reason = "a volume keeps its block size: make another one, and import this one there";
    } else if (name == ".removable" || name.starts_with(".faults.")) {
      change.effect = Effect::kNextStart;
    }
  }

  const Config& running_;
  const Config& read_;
};

}  // namespace

std::vector<ConfigChange> config_changes(const Config& running, const Config& read) {
  const std::vector<ConfigKey> before = config_keys(running);
  const std::vector<ConfigKey> after = config_keys(read);
  const auto by_key = [](const std::vector<ConfigKey>& keys) {
    std::unordered_map<std::string_view, const ConfigKey*> index;
    for (const ConfigKey& key : keys) index.emplace(key.key, &key);
    return index;
  };
  const auto was_there = by_key(before);
  const auto is_there = by_key(after);
  const Comparison comparison(running, read);
  std::vector<ConfigChange> changes;
  for (const ConfigKey& key : after) {
    const auto was = was_there.find(key.key);
    if (was == was_there.end()) {
      changes.push_back(comparison.change(key, "", key.value));
    } else if (was->second->value != key.value) {
      changes.push_back(comparison.change(key, was->second->value, key.value));
    }
  }
  for (const ConfigKey& key : before) {
    if (!is_there.contains(key.key)) changes.push_back(comparison.change(key, key.value, ""));
  }
  return changes;
}

std::string keys_of(const std::vector<ConfigChange>& changes, Effect effect) {
  std::string keys;
  for (const ConfigChange& change : changes) {
    if (change.effect != effect) continue;
    if (!keys.empty()) keys += ", ";
    keys += change.key;
  }
  return keys;
}

void take_changes(Config& running, const Config& read) {
  running.server.busy_poll = read.server.busy_poll;
  running.rollback.rate_max = read.rollback.rate_max;
  if (running.standalone()) {
    running.views = read.views;
  } else {
    running.cluster.catch_up_max = read.cluster.catch_up_max;
  }
  if (!running.has_log() || !read.has_log()) return;
  running.log.compact = read.log.compact;
  running.log.disks = read.log.disks;
  running.log.polling = read.log.polling;
  if (!needs_restart(running.log, read.log)) running.log.on_full = read.log.on_full;
}

}  // namespace mariner
