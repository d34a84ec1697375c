// A node that may coordinate, in the simulated cluster: lease, election and CoordinatorRole of the
// production code, and what a target asks before it serves.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include "replication/coordinator_role.h"
#include "server/manager/election.h"
#include "tests/sim/cluster/cluster_model.h"
#include "tests/sim/cluster/logger_host.h"
#include "tests/sim/cluster/planted.h"
#include "tests/sim/cluster/storage_host.h"

namespace mariner::test {

// How a target reaches the others of its volume. Null: they do not answer now. Outlives all nodes.
struct Directory {
  std::function<LoggerHost*()> logger;
  std::function<StorageHost*(replication::NodeId)> storage;
  std::function<SimNode&(replication::NodeId)> node;
};

class TargetHost {
 public:
  TargetHost(SimNode& node, std::mt19937_64& random, ClusterModel& model, SimNetwork& network,
             manager::ClusterStore& store, const manager::NodeLease& lease,
             const manager::ClusterView& view, VolumeId volume, const Directory& directory,
             Planted planted);

  // The lease, or the view, has changed.
  void look() { election_.look(); }

  // Whether it was taken; then `done` runs when it is answered, if ever.
  bool write(BlockRange extent, std::uint64_t attempt,
             std::function<void(const Result<replication::Stamp>&)> done);
  bool read(std::uint64_t block, std::function<void(BlockValue)> done);
  // Opens the moment of now.
  bool open_moment(std::function<void(VersionTime, SequenceNumber)> done);

  [[nodiscard]] bool coordinates() const { return role_ != nullptr && role_->ready(); }
  [[nodiscard]] const replication::CoordinatorRole* role() const { return role_.get(); }

 private:
  struct StorageLink {
    SimConnectionPtr connection;
    replication::ConnectionId id;
  };
  [[nodiscard]] bool serves() const;
  void elected(const manager::VolumeRecord& record);
  void deposed();
  void connect_logger();
  void connect_storage(replication::NodeId node);
  void logger_lost();
  void storage_lost(replication::NodeId node);
  void run(replication::CoordinatorRole::Actions& actions);
  void carry_out(replication::CoordinatorRole::Action& action);
  void flush_later();
  void tick();

  SimNode& node_;
  std::mt19937_64& random_;
  ClusterModel& model_;
  SimNetwork& network_;
  const manager::NodeLease& lease_;
  const Directory& directory_;
  const Planted planted_;
  const VolumeId volume_;
  manager::Election election_;
  manager::VolumeRecord record_;
  std::unique_ptr<replication::CoordinatorRole> role_;
  std::uint64_t term_ = 0;  // what belongs to an earlier role is not heard
  SimConnectionPtr logger_;
  replication::ConnectionId logger_id_;
  std::map<replication::NodeId, StorageLink> storages_;
  std::map<std::uint64_t, std::function<void(const Result<replication::Stamp>&)>> writes_;
  std::map<std::uint64_t, std::pair<VersionTime, std::function<void(VersionTime, SequenceNumber)>>>
      moments_;
  std::uint64_t tokens_ = 0;
  bool flushing_ = false;
  bool running_ = false;
  std::deque<replication::CoordinatorRole::Action> queue_;
};

}  // namespace mariner::test
