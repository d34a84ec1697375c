// A node of a cluster: the parts of the roles that it has, put together. It contains no logic of
// its own beyond starting, stopping, and passing on what the parts ask of each other.
//
// start() blocks (it recovers the log) and happens before the event loop runs; everything else on
// the loop's thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/cluster/caller_service.h"
#include "server/cluster/participant_service.h"
#include "server/cluster/peer_bus.h"
#include "server/manager/cluster_view.h"
#include "server/manager/etcd_store.h"
#include "server/manager/moment_directory.h"
#include "server/manager/node_lease.h"
#include "server/manager/volume_directory.h"
#include "server/node/accounts.h"
#include "server/node/cluster_keeper.h"
#include "server/node/cluster_multicast.h"
#include "server/node/cluster_past.h"
#include "server/node/cluster_views.h"
#include "server/node/cluster_volumes.h"
#include "server/node/config.h"
#include "server/node/daemon.h"
#include "server/node/enrolment_desk.h"
#include "server/node/event_loop.h"
#include "server/node/front.h"
#include "server/node/handover.h"
#include "server/node/log.h"
#include "server/node/log_limiter.h"
#include "server/node/log_packing.h"
#include "server/node/log_space.h"
#include "server/node/meta_store.h"
#include "server/node/node_log.h"
#include "server/node/node_promises.h"
#include "server/node/window_watch.h"
#include "server/peer/pki_folder.h"

namespace mariner::node {

class ClusterControl;

class ClusterNode final : public Daemon, public iscsi::TargetDirectory, public web::WebSource {
 public:
  ClusterNode(Config config, std::string config_path, EventLoop& loop, Log& log);
  ~ClusterNode() override;
  ClusterNode(const ClusterNode&) = delete;
  ClusterNode& operator=(const ClusterNode&) = delete;

  // Daemon
  Result<void> start() override;
  void on_progress(UniqueFunction<void(std::uint64_t)> progress) override {
    progress_ = std::move(progress);
  }
  void stop(UniqueFunction<void()> done) override;
  Result<void> reload(const Config& config) override;
  [[nodiscard]] const Config& config() const override { return config_; }

  // iscsi::TargetDirectory
  [[nodiscard]] std::vector<std::string> discoverable(std::string_view initiator,
                                                      std::string_view account) const override;
  [[nodiscard]] std::optional<iscsi::Redirection> redirection(
      std::string_view target, std::string_view portal) const override;
  [[nodiscard]] Result<std::shared_ptr<scsi::TargetDevice>> open(
      std::string_view target, std::string_view initiator) override;
  [[nodiscard]] Result<std::vector<iscsi::ChapAccount>> accounts(
      std::string_view target, std::string_view initiator) const override;
  // web::WebSource
  [[nodiscard]] web::NodeMetrics metrics() override;
  [[nodiscard]] Result<void> health() override;
  [[nodiscard]] Result<void> readiness() override;

 private:
  friend class ClusterControl;

  Result<void> find_self();
  Result<void> open_front();
  void open_shared_store();
  Result<void> open_bus();
  Result<void> open_volumes();
  Result<void> open_log();
  void open_past();
  void report(const Error& error);
  void create_configured_volumes();
  void create(const VolumeConfig& wanted);
  [[nodiscard]] std::uint32_t number_of(const std::string& node) const;
  // The volume of a target, or of a view's; null: there is no such target.
  [[nodiscard]] const ClusterVolume* find_target(std::string_view iqn) const;
  [[nodiscard]] std::vector<web::ReplicaMetrics> replicas_of(const ClusterVolume& volume) const;
  [[nodiscard]] std::vector<ClusterMulticast::Receiver> other_nodes() const;
  // Of them those that get the writes of the volume, if it is coordinated here.
  [[nodiscard]] std::vector<ClusterMulticast::Receiver> receivers_of(
      const ClusterVolume& volume) const;
  void changed();
  void tick();
  void watch_windows();
  // Its log is the log of volumes: there may be journals beside.
  [[nodiscard]] bool logs() const { return node_log_ != nullptr && config_.has(Role::kLogger); }
  [[nodiscard]] std::string published() const;
  void send_away();
  void hand_over(UniqueFunction<void()> done);
  void stop_parts(UniqueFunction<void()> done);
  void wait_until_idle(UniqueFunction<void()> done);
  void stop_index(UniqueFunction<void()> done);

  Config config_;
  Accounts accounts_;
  const std::string config_path_;
  EventLoop& loop_;
  Log& log_;
  std::optional<peer::NodeIdentity> identity_;
  replication::NodeId self_;
  VersionTime started_;
  bool ready_ = false;
  bool stopping_ = false;
  bool lease_returned_ = false;
  std::chrono::nanoseconds lease_return_end_{0};
  bool creating_ = false;  // the configured volumes, once the cluster is known
  UniqueFunction<void(std::uint64_t)> progress_;
  std::map<std::string, LogLimiter> bus_reports_;  // by what is said
  std::unique_ptr<logging::IoRing> ring_;
  std::unique_ptr<MetaStore> store_;
  std::unique_ptr<volume::Worker> worker_;
  // Of what gives up tracks: images do not wait while it reads them.
  std::unique_ptr<volume::Worker> track_worker_;
  std::unique_ptr<NodePromises> promises_;
  std::unique_ptr<cluster::ParticipantService> participants_;
  std::unique_ptr<cluster::CallerService> caller_;
  std::unique_ptr<ClusterMulticast> multicast_;
  std::unique_ptr<cluster::PeerBus> bus_;
  std::unique_ptr<manager::EtcdStore> shared_;
  std::unique_ptr<manager::ClusterView> view_;
  std::unique_ptr<manager::NodeLease> lease_;
  std::unique_ptr<manager::VolumeDirectory> directory_;
  std::unique_ptr<manager::MomentDirectory> moments_;
  std::unique_ptr<ClusterReservations> reservations_;
  std::unique_ptr<RecoveredVolumes> recovered_;
  std::unique_ptr<NodeLog> node_log_;        // null: this node logs nothing, and keeps no journals
  std::unique_ptr<LogPacking> log_packing_;  // null where it is no logger
  std::unique_ptr<ClusterVolumes> volumes_;
  std::unique_ptr<ClusterKeeper> keeper_;
  std::unique_ptr<LogSpace> log_space_;        // with node_log_
  std::unique_ptr<WindowWatch> window_watch_;  // null: this node is no logger
  std::unique_ptr<ClusterViews> views_;
  std::unique_ptr<ClusterPast> past_;
  std::unique_ptr<EnrolmentDesk> enrolment_desk_;
  std::unique_ptr<Handover> handover_;  // while it stops
  std::unique_ptr<ClusterControl> control_;
  std::unique_ptr<Front> front_;
};

}  // namespace mariner::node
