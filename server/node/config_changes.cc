#include "server/node/config_changes.h"

#include <algorithm>

namespace mariner::node {
namespace {

class Changes {
 public:
  template <typename Value>
  void look(const char* key, const Value& running, const Value& read) {
    if (!(running == read)) keys_.emplace_back(key);
  }
  void look(const char* key, ByteSize running, ByteSize read) {
    look(key, running.bytes, read.bytes);
  }
  void add(std::string key) { keys_.push_back(std::move(key)); }
  [[nodiscard]] std::vector<std::string> take() { return std::move(keys_); }

 private:
  std::vector<std::string> keys_;
};

std::optional<std::uint64_t> bytes_of(const std::optional<ByteSize>& size) {
  return size ? std::optional(size->bytes) : std::nullopt;
}

// Whether hosts are slowed for windows is decided at a start.
bool needs_restart(OnFull running, OnFull read) {
  return (running == OnFull::kThrottle) != (read == OnFull::kThrottle);
}

void look_at_log(Changes& changes, const LogConfig& running, const LogConfig& read) {
  changes.look("[log] lost", running.lost, read.lost);
  changes.look("[log] max_size", running.max_size, read.max_size);
  changes.look("[log] track_size", running.track_size, read.track_size);
  if (needs_restart(running.on_full, read.on_full)) changes.add("[log] on_full");
  changes.look("[log] t_wait", running.t_wait, read.t_wait);
  changes.look("[log] polling", running.polling, read.polling);
  changes.look("[log] durability", running.durability, read.durability);
  changes.look("[log] scrub_rate", bytes_of(running.scrub_rate), bytes_of(read.scrub_rate));
}

}  // namespace

void take_changes(Config& running, const Config& read) {
  running.views = read.views;
  running.server.busy_poll = read.server.busy_poll;
  running.log.compact = read.log.compact;
  running.log.disks = read.log.disks;
  if (!needs_restart(running.log.on_full, read.log.on_full)) running.log.on_full = read.log.on_full;
  running.rollback.rate_max = read.rollback.rate_max;
}

std::vector<std::string> changes_for_next_start(const Config& running, const Config& read) {
  Changes changes;
  changes.look("roles", running.roles, read.roles);
  changes.look("[server] iqn_base", running.server.iqn_base, read.server.iqn_base);
  changes.look("[server] portals", running.server.portals, read.server.portals);
  changes.look("[[server.portal_group]]", running.server.portal_groups, read.server.portal_groups);
  changes.look("[server] admin", running.server.admin_socket, read.server.admin_socket);
  changes.look("[server] http", running.server.http, read.server.http);
  changes.look("[server] state_dir", running.server.state_dir, read.server.state_dir);
  changes.look("[server] sessions_max", running.server.sessions_max, read.server.sessions_max);
  changes.look("[server] sessions_per_initiator_max", running.server.sessions_per_initiator_max,
               read.server.sessions_per_initiator_max);
  changes.look("[server] initiator_memory", running.server.initiator_memory,
               read.server.initiator_memory);
  look_at_log(changes, running.log, read.log);
  changes.look("[storage] pending_memory", running.storage.pending_memory,
               read.storage.pending_memory);
  changes.look("[storage] lag_max", running.storage.lag_max, read.storage.lag_max);
  changes.look("[storage] apply_delay", running.storage.apply_delay, read.storage.apply_delay);
  changes.look("[index] file", running.index.file, read.index.file);
  changes.look("[index] memory", running.index.memory, read.index.memory);
  changes.look("[index] replay_max", running.index.replay_max, read.index.replay_max);
  changes.look("[cluster] pki", running.cluster.pki, read.cluster.pki);
  changes.look("[cluster] enrol", running.cluster.enrol, read.cluster.enrol);
  for (const VolumeConfig& volume : read.volumes) {
    const auto was = std::ranges::find(running.volumes, volume.name, &VolumeConfig::name);
    if (was != running.volumes.end() && was->removable != volume.removable) {
      changes.add("[[volume]] " + volume.name + " removable");
    }
  }
  return changes.take();
}

}  // namespace mariner::node
