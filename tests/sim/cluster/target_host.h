// A node that may coordinate, in the simulated cluster: election and coordinator of the production
// code, conversations with the participants, and what a target asks before it serves.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "replication/coordinator_host.h"
#include "server/cluster/remote_current.h"
#include "server/manager/election.h"
#include "tests/sim/cluster/cluster_model.h"
#include "tests/sim/cluster/planted.h"
#include "tests/sim/cluster/sim_ways.h"
#include "tests/sim/cluster/storage_part.h"

namespace mariner::test {

class TargetHost final : private replication::CoordinatorHost::Transport {
 public:
  TargetHost(SimNode& node, std::mt19937_64& random, ClusterModel& model, SimWays& ways,
             manager::ClusterStore& store, const manager::NodeLease& lease,
             const manager::ClusterView& view, VolumeId volume, const Directory& directory,
             Planted planted, bool stores);
  ~TargetHost();

  // The lease, or the view, has changed.
  void look() { election_.look(); }

  // Whether it was taken; then `done` runs when it is answered, if ever.
  bool write(BlockRange extent, std::uint64_t attempt,
             std::function<void(const Result<replication::Stamp>&)> done);
  bool read(std::uint64_t block, std::function<void(BlockValue)> done);
  // Reads that were answered by other nodes.
  [[nodiscard]] std::uint64_t reads_elsewhere() const { return reads_elsewhere_; }
  // Opens the moment of now.
  bool open_moment(std::function<void(VersionTime, SequenceNumber)> done);

  [[nodiscard]] bool coordinates() const {
    return coordinator_ != nullptr && coordinator_->ready();
  }
  // Only when it coordinates.
  [[nodiscard]] const replication::CoordinatorRole& role() const { return coordinator_->role(); }

 private:
  struct Link {
    std::uint64_t number = 0;
    std::unique_ptr<SimConversation> conversation;  // null: it is this node's own
    replication::ConnectionId own;
  };
  using Links = std::map<replication::NodeId, Link>;
  [[nodiscard]] bool serves() const { return coordinates() && lease_.held(); }
  void elected(const manager::VolumeRecord& record);
  void deposed();
  [[nodiscard]] Links& links(bool logger) { return logger ? logs_ : storages_; }
  [[nodiscard]] bool is_open(bool logger, replication::NodeId to, std::uint64_t number);
  void connect(replication::NodeId to, bool logger);
  [[nodiscard]] SimWays::Heard heard(replication::NodeId from, bool logger, std::uint64_t number);
  void received(replication::NodeId from, bool logger, replication::ToCoordinator message);
  void lost(replication::NodeId node, bool logger);
  void end(replication::NodeId node, bool logger);
  bool read_elsewhere(std::uint64_t block, std::function<void(BlockValue)> done);
  void open_way(replication::NodeId to);

  // replication::CoordinatorHost::Transport
  void send_log(replication::NodeId node, const replication::ToLogger& message) override;
  void send_storage(replication::NodeId node, const replication::ToStorage& message) override;
  void reopen_log(replication::NodeId node, const Error& why) override;
  void reopen_storage(replication::NodeId node, const Error& why) override;
  void fetch(SequenceNumber from, SequenceNumber to,
             UniqueFunction<void(Result<replication::LogSource::Portion>)> done) override;

  SimNode& node_;
  std::mt19937_64& random_;
  ClusterModel& model_;
  SimWays& ways_;
  const manager::NodeLease& lease_;
  const Directory& directory_;
  const Planted planted_;
  const bool stores_;  // the volume; otherwise others are asked
  const VolumeId volume_;
  manager::Election election_;
  manager::VolumeRecord record_;
  std::unique_ptr<replication::CoordinatorHost> coordinator_;
  std::map<replication::NodeId, cluster::RemoteHistory> images_;  // of those who store it
  std::unique_ptr<cluster::RemoteCurrent> current_;               // of the term
  std::uint64_t reads_elsewhere_ = 0;
  std::uint64_t term_ = 0;  // what belongs to an earlier coordinator is not heard
  std::uint64_t last_link_ = 0;
  Links logs_;
  Links storages_;
};

}  // namespace mariner::test
