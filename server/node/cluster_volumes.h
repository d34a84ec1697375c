// The volumes of a cluster that this node has a part in: those that its store remembers, and those
// that the cluster creates while it runs.
//
// What a volume is, the shared store says (manager/volume_directory.h); the node's own store keeps
// a copy, so that logger and storage begin without the shared one. Loop's thread; opening blocks,
// and happens before the loop runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "logging/io_ring.h"
#include "server/manager/volume_directory.h"
#include "server/node/cluster_reservations.h"
#include "server/node/cluster_volume.h"
#include "server/node/config.h"
#include "server/node/log.h"
#include "server/node/log_stack.h"
#include "server/node/meta_store.h"
#include "server/node/recovered_volumes.h"

namespace mariner::node {

class ClusterVolumes {
 public:
  struct Parts {  // all outlive it
    Executor& executor;
    logging::IoRing& ring;
    MetaStore& store;
    volume::Worker& worker;
    RecoveredVolumes& recovered;
    replication::PromiseStore& promises;
    Log& log;
    manager::ClusterStore& shared;
    const manager::ClusterView& view;
    const manager::NodeLease& lease;
    manager::VolumeDirectory& directory;
    cluster::CallerService& caller;
    cluster::ParticipantService& participants;
    ClusterReservations& reservations;
  };
  struct Options {
    replication::NodeId self;
    bool logs = false;  // the roles that the configuration gives this node
    bool stores = false;
    bool serves = false;
    bool journals = false;  // it has a log: of a volume that it stores and does not log, a journal
    std::string state_dir;
    std::string iqn_base;
    volume::Storage::Options storage;
    std::chrono::seconds lease{0};            // of a node
    std::chrono::seconds logger_patience{0};  // before a logger is gone without; 0: never
    std::chrono::seconds absent_max{0};       // as CoordinatorRole::Options
    std::uint64_t catch_up_max = 0;           // bytes a second that are fetched; 0: no limit
    std::uint64_t restore_max = 0;            // ... of what rollbacks changed
    std::chrono::milliseconds lock_wait{0};   // for what a killed process has left under way
    // Where writes of the volume of this name are multicast; none: of no volume.
    std::function<std::optional<trm::Group>(const std::string&)> group_of{};
  };

  ClusterVolumes(const Parts& parts, Options options);
  ~ClusterVolumes();  // idle() must hold
  ClusterVolumes(const ClusterVolumes&) = delete;
  ClusterVolumes& operator=(const ClusterVolumes&) = delete;

  // Before recovery: reads which volumes there are, and has those expected that are logged here, or
  // have a journal here.
  Result<void> load();
  // Begins them. `log`: of a node that logs or keeps journals; outlives this.
  Result<void> start(LogStack* log);
  // The shared store, or the lease, has changed: what is new begins. What makes no sense is told
  // once, and left alone.
  void look();

  [[nodiscard]] const std::map<std::uint32_t, ClusterVolume>& all() const { return volumes_; }
  // Null: this node has no part in it.
  [[nodiscard]] ClusterVolume* find(std::string_view name);
  [[nodiscard]] ClusterVolume* find_target(std::string_view iqn);

  // Coordinates nothing any more; hosts are told so, as long as look() is called.
  void resign();
  void close(const Error& error);
  [[nodiscard]] bool idle() const;
  // How far the images are, durable: saves work at the next start.
  void save_progress();
  // From now on; as the options.
  void set_catch_up_max(std::uint64_t bytes_per_second) { catch_up_.set(bytes_per_second); }
  void set_restore_max(std::uint64_t bytes_per_second) { restore_.set(bytes_per_second); }

 private:
  [[nodiscard]] bool logs(const meta::Volume& meta) const;
  [[nodiscard]] bool stores(const meta::Volume& meta) const;
  [[nodiscard]] bool journals(const meta::Volume& meta) const;
  [[nodiscard]] bool serves(const meta::Volume& meta) const;
  [[nodiscard]] std::string image_path(const meta::Volume& meta) const;
  Result<void> begin(const meta::Volume& meta);
  Result<void> begin_logger(ClusterVolume& volume, Epoch promised, VersionTime floor);
  Result<void> begin_journal(ClusterVolume& volume, Epoch promised, VersionTime floor);
  Result<std::unique_ptr<cluster::LoggerPart>> make_log(VolumeId id, Epoch promised,
                                                        VersionTime floor, bool journal);
  cluster::LoggerPart::KeepBeginning keep_beginning();
  Result<void> begin_storage(ClusterVolume& volume, Epoch promised, volume::History& history);
  void begin_target(ClusterVolume& volume, volume::History& history);
  void make_device(ClusterVolume& volume);
  void take_reservations(VolumeId volume, UniqueFunction<void()> done);
  void target_changed(VolumeId volume, cluster::TargetPart::State state);
  [[nodiscard]] Result<void> check(const meta::Volume& meta) const;
  void tell(const std::vector<Error>& left_out);
  void join(const meta::Volume& meta);
  void look_for_new();

  const Parts parts_;
  const Options options_;
  volume::Throttle catch_up_{options_.catch_up_max};
  volume::Throttle restore_{options_.restore_max};
  LogStack* log_ = nullptr;
  bool started_ = false;
  bool resigned_ = false;
  bool closed_ = false;
  std::map<std::uint32_t, ClusterVolume> volumes_;
  std::map<std::uint32_t, meta::Volume> known_;  // of the node's store
  std::set<std::uint32_t> failed_;               // to begin: told once
  std::set<std::string> told_;  // what makes no sense of what the shared store has now
};

}  // namespace mariner::node
