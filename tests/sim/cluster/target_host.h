// A node that may coordinate, in the simulated cluster: election and coordinator of the production
// code, connections to the participants, and what a target asks before it serves.
#pragma once

#include <functional>
#include <map>
#include <memory>

#include "replication/coordinator_host.h"
#include "replication/logger_host.h"
#include "replication/storage_host.h"
#include "server/cluster/remote_current.h"
#include "server/manager/election.h"
#include "tests/sim/cluster/cluster_model.h"
#include "tests/sim/cluster/planted.h"
#include "tests/sim/cluster/sim_network.h"
#include "tests/sim/cluster/sim_reads.h"
#include "tests/sim/cluster/sim_storage.h"

namespace mariner::test {

// A storage node's part of a volume, with what is planted there.
struct StoragePart {
  StoragePart(SimNode& node, std::mt19937_64& random, StorageDisk& disk, VolumeId volume,
              Planted planted_in, SimStorage::AskHistory ask);

  void received(replication::ConnectionId from, replication::ToStorage message);

  SimStorage storage;
  replication::StorageHost host;
  SimReads reads;
  const Planted planted;
};

// How a target reaches the others of its volume. Null: they do not answer now. Outlives all nodes.
struct Directory {
  std::function<replication::LoggerHost*(replication::NodeId)> log;  // of the logger, or a journal
  std::function<replication::LogSource*(replication::NodeId)> source;
  std::function<StoragePart*(replication::NodeId)> storage;
  std::function<SimNode&(replication::NodeId)> node;
};

class TargetHost final : private replication::CoordinatorHost::Transport {
 public:
  TargetHost(SimNode& node, std::mt19937_64& random, ClusterModel& model, SimNetwork& network,
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
    SimConnectionPtr connection;  // null: it is this node's own
    replication::ConnectionId id;
  };
  [[nodiscard]] bool serves() const { return coordinates() && lease_.held(); }
  void elected(const manager::VolumeRecord& record);
  void deposed();
  using Links = std::map<replication::NodeId, Link> TargetHost::*;
  using Joined = void (replication::CoordinatorHost::*)(replication::NodeId);
  using Lost = void (TargetHost::*)(replication::NodeId);
  template <typename Message, typename Find>
  void connect(Links links, replication::NodeId to, Find find, Joined joined, Lost lost);
  bool read_elsewhere(std::uint64_t block, std::function<void(BlockValue)> done);
  void open_way(replication::NodeId to);
  void connect_log(replication::NodeId node);
  void connect_storage(replication::NodeId node);
  void log_lost(replication::NodeId node);
  void storage_lost(replication::NodeId node);

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
  SimNetwork& network_;
  const manager::NodeLease& lease_;
  const Directory& directory_;
  const Planted planted_;
  const bool stores_;  // the volume; otherwise others are asked
  const VolumeId volume_;
  manager::Election election_;
  manager::VolumeRecord record_;
  std::unique_ptr<replication::CoordinatorHost> coordinator_;
  std::map<replication::NodeId, cluster::RemoteHistory> ways_;  // to those who store it
  std::unique_ptr<cluster::RemoteCurrent> current_;             // of the term
  std::uint64_t reads_elsewhere_ = 0;
  std::uint64_t term_ = 0;  // what belongs to an earlier coordinator is not heard
  std::uint64_t last_link_ = 0;
  std::map<replication::NodeId, Link> logs_;
  std::map<replication::NodeId, Link> storages_;
};

}  // namespace mariner::test
