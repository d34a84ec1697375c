// What a node of a cluster has to do with multicast: where the writes of the volumes that it
// coordinates go, and what it tells of that: in the log, as metrics, and to who asks. What happens
// is the bus's (server/cluster/multicast.h). Loop's thread.
#pragma once

#include <chrono>
#include <compare>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/executor.h"
#include "replication/cluster_messages.h"
#include "server/cluster/peer_bus.h"
#include "server/node/config.h"
#include "server/node/log.h"
#include "server/node/log_limiter.h"
#include "server/web/metrics.h"

namespace mariner::node {

class ClusterMulticast {
 public:
  // A node that a volume's coordinator sends writes to.
  struct Receiver {
    replication::NodeId node;
    std::string name;
  };
  // What is not as it should be, and what to do about it.
  struct Trouble {
    std::string found;
    std::string advice;
    friend auto operator<=>(const Trouble&, const Trouble&) = default;
  };
  // Who has not been admitted for so long is told of.
  static constexpr std::chrono::seconds kPatience{5};

  // All outlive it.
  ClusterMulticast(const ReplicationConfig& config, Executor& executor, Log& log)
      : config_(config), executor_(executor), log_(log) {}

  [[nodiscard]] static cluster::MulticastOptions options_of(const ReplicationConfig& config);
  // From now on the bus uses it. The bus ends before this.
  void begin(cluster::PeerBus& bus);

  // Where writes of the volume go. Nothing: to each node alone.
  [[nodiscard]] std::optional<trm::Group> group_of(std::string_view volume,
                                                   const std::vector<VolumeConfig>& volumes) const;

  // "multicast" or "connection": how the node gets writes of a volume that is coordinated here.
  // Empty: that is no question, or nobody knows.
  [[nodiscard]] std::string way_to(VolumeId volume, replication::NodeId node) const;
  // `others`: those on other nodes that get writes of a volume that is coordinated here.
  [[nodiscard]] std::vector<Trouble> troubles(VolumeId volume, const trm::Group& group,
                                              const std::vector<Receiver>& others) const;

  // Of what this node hears.
  [[nodiscard]] std::optional<Trouble> trouble_of_hearing() const;

  // `others`: all nodes but this one.
  [[nodiscard]] web::MulticastMetrics metrics(const std::vector<Receiver>& others) const;
  [[nodiscard]] std::vector<web::MulticastReceiverMetrics> metrics_of(
      VolumeId volume, const std::vector<Receiver>& others) const;

 private:
  void changed(const std::string& node, const trm::SenderHub::Change& change);

  const ReplicationConfig& config_;
  Executor& executor_;
  Log& log_;
  const cluster::PeerBus* bus_ = nullptr;
  std::map<std::string, LogLimiter> reports_;  // by node and group
};

}  // namespace mariner::node
