#include "server/node/config_keys.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

namespace mariner {
namespace {

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

std::string quoted(const Endpoint& endpoint) { return quoted(to_string(endpoint)); }

template <typename T>
std::string array_of(const std::vector<T>& elements) {
  std::string out = "[";
  for (const T& element : elements) {
    if (out.size() > 1) out += ", ";
    out += quoted(element);
  }
  return out + "]";
}

std::string duration(std::chrono::nanoseconds time) { return quoted(format_duration(time)); }
std::string size(ByteSize bytes) { return quoted(exact_size(bytes)); }
std::string boolean(bool value) { return value ? "true" : "false"; }
std::string share(double value) { return quoted(fmt::format("{:g}%", value * 100)); }

std::string role(Role role) {
  switch (role) {
    case Role::kStandalone: return "standalone";
    case Role::kTarget: return "target";
    case Role::kLogger: return "logger";
    case Role::kStorage: return "storage";
    case Role::kManager: return "manager";
  }
  return "";
}

std::string on_full(OnFull policy) {
  switch (policy) {
    case OnFull::kStopWrites: return "stop-writes";
    case OnFull::kShortenWindow: return "shorten-window";
    case OnFull::kThrottle: return "throttle";
  }
  return "";
}

std::string durability(LogDurability way) {
  switch (way) {
    case LogDurability::kAuto: return "auto";
    case LogDurability::kFua: return "fua";
    case LogDurability::kFlush: return "flush";
  }
  return "";
}

class Keys {
 public:
  void section(std::string name) {
    section_ = std::move(name);
    volume_.clear();
  }
  void volume(const std::string& name) {
    section_ = "volume." + name;
    volume_ = name;
  }
  void add(std::string_view key, std::string value) {
    keys_.push_back({section_.empty() ? std::string(key) : fmt::format("{}.{}", section_, key),
                     std::move(value), volume_});
  }
  [[nodiscard]] std::vector<ConfigKey> take() { return std::move(keys_); }

 private:
  std::string section_;
  std::string volume_;
  std::vector<ConfigKey> keys_;
};

void add_server(Keys& keys, const ServerConfig& server) {
  keys.section("server");
  keys.add("iqn_base", quoted(server.iqn_base));
  keys.add("portals", array_of(server.portals));
  keys.add("admin", quoted(server.admin_socket));
  keys.add("http", server.http ? quoted(*server.http) : quoted(""));
  keys.add("state_dir", quoted(server.state_dir));
  keys.add("discovery_auth", array_of(server.discovery_auth));
  keys.add("sessions_max", std::to_string(server.sessions_max));
  keys.add("sessions_per_initiator_max", std::to_string(server.sessions_per_initiator_max));
  keys.add("initiator_memory", size(server.initiator_memory));
  keys.add("busy_poll", server.busy_poll ? duration(*server.busy_poll) : quoted("auto"));
  keys.add("socket_threads",
           server.socket_threads ? quoted(std::to_string(*server.socket_threads)) : quoted("auto"));
  keys.add("socket_threads_load", share(server.socket_threads_load));
  for (const PortalGroupConfig& group : server.portal_groups) {
    keys.section(fmt::format("server.portal_group.{}", group.tag));
    keys.add("portals", array_of(group.portals));
  }
}

void add_accounts(Keys& keys, const std::vector<AuthConfig>& accounts) {
  for (const AuthConfig& account : accounts) {
    keys.section("auth." + account.name);
    keys.add("user", quoted(account.user));
    keys.add("secret_file", quoted(account.secret_file));
    if (account.mutual_user.empty()) continue;
    keys.add("mutual_user", quoted(account.mutual_user));
    keys.add("mutual_secret_file", quoted(account.mutual_secret_file));
  }
}

void add_log(Keys& keys, const LogConfig& log) {
  keys.section("log");
  keys.add("disks", array_of(log.disks));
  keys.add("lost", array_of(log.lost));
  keys.add("max_size", size(log.max_size));
  keys.add("track_size", size(log.track_size));
  keys.add("on_full", quoted(on_full(log.on_full)));
  keys.add("t_wait", duration(log.t_wait));
  keys.add("polling", quoted(log.polling ? "auto" : "off"));
  keys.add("durability", quoted(durability(log.durability)));
  keys.add("compact", quoted(log.compact.enabled ? "on" : "off"));
  keys.add("compact_after", duration(log.compact.after));
  keys.add("compact_cpu", share(log.compact.cpu_share));
  keys.add("scrub_rate", log.scrub_rate ? size(*log.scrub_rate) : quoted("auto"));
}

void add_storage(Keys& keys, const Config& config) {
  keys.section("storage");
  keys.add("pending_memory", size(config.storage.pending_memory));
  keys.add("lag_max", size(config.storage.lag_max));
  keys.add("apply_delay", duration(config.storage.apply_delay));
  keys.section("views");
  if (config.views.overlay_max) keys.add("overlay_max", size(*config.views.overlay_max));
  keys.section("rollback");
  keys.add("rate_max", size(config.rollback.rate_max));
  keys.section("index");
  if (!config.index.file.empty()) keys.add("file", quoted(config.index.file));
  keys.add("memory", size(config.index.memory));
  keys.add("replay_max", std::to_string(config.index.replay_max));
}

void add_cluster(Keys& keys, const Config& config) {
  const ClusterConfig& cluster = config.cluster;
  keys.section("cluster");
  if (!cluster.pki.empty()) keys.add("pki", quoted(cluster.pki));
  if (cluster.enrol) keys.add("enrol", quoted(*cluster.enrol));
  if (config.standalone()) return;
  keys.add("listen", array_of(cluster.listen));
  keys.add("etcd", array_of(cluster.etcd));
  keys.add("lease", duration(cluster.lease));
  keys.add("logger_patience", duration(cluster.logger_patience));
  keys.add("absent_max", duration(cluster.absent_max));
  keys.add("catch_up_max", size(cluster.catch_up_max));
  for (const ClusterNodeConfig& node : cluster.nodes) {
    keys.section("cluster.node." + node.name);
    keys.add("id", std::to_string(node.id));
    keys.add("addresses", array_of(node.addresses));
  }
}

std::string group_text(const trm::Group& group) {
  return quoted(fmt::format("{}:{}", group.address, group.port));
}

void add_replication(Keys& keys, const ReplicationConfig& replication) {
  keys.section("replication");
  keys.add("mode", quoted(replication.multicast ? "multicast" : "unicast"));
  if (replication.group.port != 0) keys.add("group", group_text(replication.group));
  if (replication.rate_limit_bits != 0) {
    keys.add("rate_limit", quoted(fmt::format("{}bit", replication.rate_limit_bits)));
  }
  if (!replication.interface.empty()) keys.add("interface", quoted(replication.interface));
  keys.add("encrypt", boolean(replication.encrypt));
}

void add_faults(Keys& keys, const FaultConfig& faults) {
  keys.add("faults.read_errors", share(faults.read_errors));
  keys.add("faults.write_errors", share(faults.write_errors));
  keys.add("faults.read_delay", duration(faults.read_delay));
  keys.add("faults.write_delay", duration(faults.write_delay));
}

void add_volume(Keys& keys, const VolumeConfig& volume, bool standalone) {
  keys.volume(volume.name);
  keys.add("size", size(volume.size));
  keys.add("window", duration(volume.window));
  if (!volume.retain.none()) keys.add("retain", quoted(retention_text(volume.retain)));
  keys.add("block_size", std::to_string(volume.block_size));
  keys.add("acl", array_of(volume.acl));
  keys.add("auth", array_of(volume.auth));
  if (standalone && !volume.redirect.empty()) {
    keys.add("redirect", quoted(volume.redirect));
    keys.add("redirect_permanent", boolean(volume.redirect_permanent));
  }
  keys.add("sanitize", boolean(volume.sanitize));
  keys.add("removable", boolean(volume.removable));
  if (!standalone) {
    keys.add("logger", quoted(volume.logger));
    keys.add("storage", array_of(volume.storage));
    if (!volume.targets.empty()) keys.add("targets", array_of(volume.targets));
    keys.add("promote", quoted(volume.promote ? "auto" : "manual"));
    keys.add("redirect", boolean(volume.redirect_to_server));
    if (volume.group) keys.add("group", group_text(*volume.group));
  }
  if (volume.faults) add_faults(keys, *volume.faults);
}

}  // namespace

std::string exact_size(ByteSize size) {
  static constexpr std::string_view kUnits = "KMGTP";
  std::uint64_t count = size.bytes;
  std::size_t unit = 0;
  while (count != 0 && count % 1024 == 0 && unit < kUnits.size()) {
    count /= 1024;
    ++unit;
  }
  std::string text = std::to_string(count);
  if (unit > 0) text += kUnits[unit - 1];
  return text;
}

std::vector<ConfigKey> config_keys(const Config& config) {
  Keys keys;
  std::vector<std::string> roles;
  for (const Role each : config.roles) roles.push_back(role(each));
  keys.add("roles", array_of(roles));
  add_server(keys, config.server);
  add_accounts(keys, config.auth);
  if (config.has_log()) add_log(keys, config.log);
  add_storage(keys, config);
  add_cluster(keys, config);
  if (!config.standalone()) add_replication(keys, config.replication);
  for (const VolumeConfig& volume : config.volumes) {
    add_volume(keys, volume, config.standalone());
  }
  return keys.take();
}

}  // namespace mariner
