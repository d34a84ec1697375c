#include "server/node/cluster_multicast.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "server/client/quantity.h"

namespace mariner::node {
namespace {

constexpr std::size_t kReportsMax = 256;
constexpr std::uint32_t kLinesMax = 10;  // a minute, of one node and group
constexpr double kBitsPerByte = 8;

std::string text_of(const trm::Group& group) {
  return fmt::format("{}:{}", group.address, group.port);
}

// As labels have it.
constexpr std::array<const char*, trm::kDismissals> kReasons{"deaf", "stuck", "slow",
                                                             "cannot_listen", "disconnected"};

std::string advice_for(const std::optional<trm::Dismissal>& why, const std::string& node,
                       const trm::Group& group) {
  switch (why.value_or(trm::Dismissal::kDeaf)) {
    case trm::Dismissal::kCannotListen:
      return fmt::format(
          "look at node {}: whether the interface by which it is to listen is there and up "
          "([replication] interface, otherwise the address in [cluster] listen)",
          node);
    case trm::Dismissal::kSlow:
      return fmt::format(
          "look at node {}, its cable and its port: speed, errors, load; or set [replication] "
          "rate_limit to what it takes",
          node);
    case trm::Dismissal::kStuck:
      return fmt::format("look at node {} and its connection: load, errors, loss", node);
    default: break;
  }
  return fmt::format(
      "writes go over its connection meanwhile; look whether the switch that filters multicast has "
      "an IGMP querier in this VLAN, whether the interface of node {} is in the same VLAN as this "
      "node's ([replication] interface), and whether a packet filter drops IGMP, or UDP to {} port "
      "{}",
      node, group.address, group.port);
}

}  // namespace

cluster::MulticastOptions ClusterMulticast::options_of(const ReplicationConfig& config) {
  cluster::MulticastOptions options;
  options.interface = config.interface;
  options.encrypted = config.encrypt;
  if (config.rate_limit_bits > 0) {
    options.bytes_per_second_max = static_cast<double>(config.rate_limit_bits) / kBitsPerByte;
  }
  // There the other nodes are on this machine.
  options.to_own_machine = config.interface.starts_with("127.");
  return options;
}

void ClusterMulticast::begin(cluster::PeerBus& bus) {
  bus_ = &bus;
  bus.use_multicast(options_of(config_),
                    [this](const std::string& node, const trm::SenderHub::Change& change) {
                      changed(node, change);
                    });
}

std::optional<trm::Group> ClusterMulticast::group_of(
    std::string_view volume, const std::vector<VolumeConfig>& volumes) const {
  if (!config_.multicast) return std::nullopt;
  const auto found = std::ranges::find(volumes, volume, &VolumeConfig::name);
  return found != volumes.end() && found->group ? *found->group : config_.group;
}

// That a connection has ended is told elsewhere. (Both directions have one limit, so that the last
// line of a node that does not change all the time is true.)
void ClusterMulticast::changed(const std::string& node, const trm::SenderHub::Change& change) {
  if (!change.admitted && change.why == trm::Dismissal::kDisconnected) return;
  const std::string group = text_of(change.group);
  if (reports_.size() >= kReportsMax) reports_.clear();
  LogLimiter& limiter =
      reports_.try_emplace(node + " " + group, LogLimiter::Options{.lines_max = kLinesMax})
          .first->second;
  const auto [write, untold] = limiter.admit(executor_.monotonic_time());
  if (!write) return;
  if (change.admitted) {
    log_.info("writes to a node go by multicast",
              {{"node", node}, {"group", group}, {"before", untold}});
  } else {
    log_.warning("writes to a node go over its connection, not by multicast",
                 {{"node", node}, {"group", group}, {"reason", change.reason}, {"before", untold}});
  }
}

std::string ClusterMulticast::way_to(VolumeId volume, replication::NodeId node) const {
  if (!config_.multicast) return "";
  const auto standing = bus_->standing(volume, node);
  if (!standing || !standing->connected) return "";
  return standing->admitted && !standing->alone ? "multicast" : "connection";
}

std::vector<ClusterMulticast::Trouble> ClusterMulticast::troubles(
    VolumeId volume, const trm::Group& group, const std::vector<Receiver>& others) const {
  std::vector<Trouble> all;
  if (!config_.multicast || others.size() < 2) return all;
  const auto now = executor_.monotonic_time();
  for (const Receiver& each : others) {
    const auto standing = bus_->standing(volume, each.node);
    if (!standing) {
      all.push_back({fmt::format("group {} cannot be used: writes go over the connections of nodes",
                                 text_of(group)),
                     fmt::format("look in the log for the reason, and whether an interface has the "
                                 "address {} ([replication] interface)",
                                 config_.interface)});
      return all;
    }
    if (!standing->out_since || now - *standing->out_since <= kPatience) continue;
    const auto time = std::chrono::floor<std::chrono::seconds>(now - *standing->out_since);
    all.push_back(
        {fmt::format("node {} has had no multicast of group {} for {}: {}", each.name,
                     text_of(group), format_duration(time),
                     standing->why ? standing->reason : "nothing that was sent there reaches it"),
         advice_for(standing->why, each.name, group)});
  }
  return all;
}

std::optional<ClusterMulticast::Trouble> ClusterMulticast::trouble_of_hearing() const {
  const std::uint64_t overflows = bus_->multicast()->overflowed();
  if (overflows == 0) return std::nullopt;
  return Trouble{fmt::format("the kernel had no room for {} datagrams since the start", overflows),
                 "they were sent again; where the number grows under usual load, let sockets have "
                 "larger buffers (sysctl net.core.rmem_max=8388608, then restart marinerd), and "
                 "look whether this node's processors are busy"};
}

web::MulticastMetrics ClusterMulticast::metrics(const std::vector<Receiver>& others) const {
  web::MulticastMetrics out;
  const cluster::Multicast& multicast = *bus_->multicast();
  const trm::SenderHub::Counters& sent = multicast.sender().counters();
  out.multicast_bytes = sent.multicast_bytes;
  out.connection_bytes = sent.carried_bytes;
  const trm::ReceiverHub::Strange& strange = multicast.receiver().strange();
  out.malformed = strange.malformed;
  out.unknown = strange.unknown;
  out.forged = strange.unsealed;
  out.overflows = multicast.overflowed();
  if (!config_.multicast) return out;
  for (const Receiver& each : others) {
    const auto found = sent.peers.find({each.node.value});
    const auto counted = found == sent.peers.end() ? trm::SenderHub::PeerCounters{} : found->second;
    web::MulticastReplicaMetrics& replica = out.replicas.emplace_back();
    replica.replica = each.name;
    replica.repairs = counted.repairs;
    replica.repaired_bytes = counted.repaired_bytes;
    for (std::size_t i = 0; i < trm::kDismissals; ++i) {
      replica.dismissals.emplace_back(kReasons[i], counted.dismissals[i]);
    }
  }
  return out;
}

std::vector<web::MulticastReceiverMetrics> ClusterMulticast::metrics_of(
    VolumeId volume, const std::vector<Receiver>& others) const {
  std::vector<web::MulticastReceiverMetrics> out;
  for (const Receiver& each : others) {
    const auto standing = bus_->standing(volume, each.node);
    if (standing) out.push_back({each.name, standing->admitted});
  }
  return out;
}

}  // namespace mariner::node
