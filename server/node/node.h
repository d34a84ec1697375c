// A node: the parts of a standalone server, put together. It contains no logic of its own beyond
// starting, stopping, and passing on what the parts ask of each other.
//
// start() blocks (it recovers the log) and happens before the event loop runs; everything else on
// the loop's thread.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "server/node/access.h"
#include "server/node/accounts.h"
#include "server/node/config.h"
#include "server/node/daemon.h"
#include "server/node/enrolment_desk.h"
#include "server/node/event_loop.h"
#include "server/node/front.h"
#include "server/node/group_set.h"
#include "server/node/host_pace.h"
#include "server/node/index_stack.h"
#include "server/node/local_keeper.h"
#include "server/node/log.h"
#include "server/node/log_packing.h"
#include "server/node/log_space.h"
#include "server/node/meta_store.h"
#include "server/node/node_log.h"
#include "server/node/scrub_report.h"
#include "server/node/verdict_desk.h"
#include "server/node/verdict_shelf.h"
#include "server/node/view_set.h"
#include "server/node/volume_set.h"
#include "server/node/window_watch.h"
#include "server/scsi/rod_tokens.h"
#include "server/web/web_server.h"

namespace mariner::node {

class NodeControl;

class Node final : public Daemon, public iscsi::TargetDirectory, public web::WebSource {
 public:
  Node(Config config, std::string config_path, EventLoop& loop, Log& log);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Daemon
  Result<void> start() override;
  void on_progress(UniqueFunction<void(std::uint64_t)> progress) override {
    progress_ = std::move(progress);
  }
  void stop(UniqueFunction<void()> done) override;
  // Also takes new volumes and access lists.
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
  friend class NodeControl;

  Result<void> listen();
  Result<void> create_configured_volumes();
  void resize_as_configured(const ServedVolume& volume, const VolumeConfig& wanted);
  void stop_index(UniqueFunction<void()> done);
  void tick();
  void watch_windows();
  void watch_clock();
  // Asks those to log out who use what they may not use any more, or not here.
  void enforce_access();
  void unexpose(const std::string& name, UniqueFunction<void(Result<void>)> done);
  void wait_until_idle(UniqueFunction<void()> done);

  Config config_;
  Accounts accounts_;
  const std::string config_path_;
  EventLoop& loop_;
  Log& log_;
  const std::shared_ptr<scsi::RodTokens> rod_tokens_;
  VersionTime started_;
  Epoch epoch_;
  bool ready_ = false;
  bool stopping_ = false;
  UniqueFunction<void(std::uint64_t)> progress_;
  std::unique_ptr<logging::IoRing> ring_;
  std::unique_ptr<MetaStore> store_;
  std::unique_ptr<volume::Worker> worker_;
  // Of what gives up tracks: images do not wait while it reads them.
  std::unique_ptr<volume::Worker> track_worker_;
  std::unique_ptr<RecoveredVolumes> recovered_;
  std::unique_ptr<NodeLog> node_log_;
  std::unique_ptr<LogPacking> log_packing_;
  std::unique_ptr<VolumeSet> volumes_;
  std::unique_ptr<ViewSet> views_;
  std::unique_ptr<GroupSet> groups_;
  std::unique_ptr<Access> access_;
  std::unique_ptr<LocalKeeper> keeper_;
  std::unique_ptr<LogSpace> log_space_;
  std::unique_ptr<WindowWatch> window_watch_;
  std::unique_ptr<HostPace> host_pace_;
  std::unique_ptr<ScrubReport> scrub_report_;
  std::unique_ptr<LocalVerdicts> verdict_shelf_;
  std::unique_ptr<VerdictDesk> verdicts_;
  std::unique_ptr<EnrolmentDesk> enrolment_desk_;
  std::unique_ptr<NodeControl> control_;
  std::unique_ptr<Front> front_;
  // The offset between the wall clock and the monotonic one: it moves when the clock is stepped.
  std::int64_t clock_offset_ns_ = 0;
  std::uint64_t clock_steps_ = 0;
};

}  // namespace mariner::node
