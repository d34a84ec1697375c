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

#include "server/iscsi/observer.h"
#include "server/iscsi/portal.h"
#include "server/node/access.h"
#include "server/node/accounts.h"
#include "server/node/config.h"
#include "server/node/enrolment_desk.h"
#include "server/node/event_loop.h"
#include "server/node/index_stack.h"
#include "server/node/log.h"
#include "server/node/log_limiter.h"
#include "server/node/log_space.h"
#include "server/node/meta_store.h"
#include "server/node/node_log.h"
#include "server/node/scrub_report.h"
#include "server/node/view_set.h"
#include "server/node/volume_set.h"
#include "server/scsi/rod_tokens.h"
#include "server/web/web_server.h"

namespace mariner::node {

class NodeControl;

class Node final : public iscsi::TargetDirectory, public iscsi::Observer, public web::WebSource {
 public:
  Node(Config config, std::string config_path, EventLoop& loop, Log& log);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Listens, opens the store, recovers the log, starts the volumes and views, and begins to accept
  // connections.
  Result<void> start();
  // Called by start() every few seconds with the number of records that were recovered.
  void on_progress(UniqueFunction<void(std::uint64_t)> progress) {
    progress_ = std::move(progress);
  }
  // Refuses new work, asks initiators to log out, completes what is stamped; `done` when nothing
  // is in flight any more. Once.
  void stop(UniqueFunction<void()> done);
  // Applies what changed in the configuration and can change at run time: new volumes, access
  // lists. Logs what needs a restart.
  void reload(const Config& config);

  // iscsi::TargetDirectory
  [[nodiscard]] std::vector<std::string> discoverable(std::string_view initiator,
                                                      std::string_view account) const override;
  [[nodiscard]] std::optional<iscsi::Redirection> redirection(
      std::string_view target) const override;
  [[nodiscard]] Result<std::shared_ptr<scsi::TargetDevice>> open(
      std::string_view target, std::string_view initiator) override;
  [[nodiscard]] Result<std::vector<iscsi::ChapAccount>> accounts(
      std::string_view target, std::string_view initiator) const override;
  // iscsi::Observer
  void session_opened(const iscsi::SessionInfo& session) override;
  void connection_joined(const iscsi::SessionInfo& session,
                         const iscsi::Endpoints& endpoints) override;
  void connection_ended(const iscsi::ConnectionEnd& end) override;
  void portal_failed(std::string_view portal, std::string_view what) override;
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
  void watch_clock();
  // Asks those to log out who use what they may not use any more, or not here.
  void enforce_access();
  void unexpose(const std::string& name, UniqueFunction<void(Result<void>)> done);
  void wait_until_idle(UniqueFunction<void()> done);

  Config config_;
  Accounts accounts_;
  LogLimiter login_failures_{{.lines_max = 60}};  // who guesses is not to fill the log
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
  std::unique_ptr<RecoveredVolumes> recovered_;
  std::unique_ptr<NodeLog> node_log_;
  std::unique_ptr<VolumeSet> volumes_;
  std::unique_ptr<ViewSet> views_;
  std::unique_ptr<Access> access_;
  std::unique_ptr<LogSpace> log_space_;
  std::unique_ptr<ScrubReport> scrub_report_;
  std::unique_ptr<iscsi::Portal> portal_;
  std::unique_ptr<EnrolmentDesk> enrolment_desk_;
  std::unique_ptr<NodeControl> control_;
  std::unique_ptr<web::HttpServer> admin_;
  std::unique_ptr<web::HttpServer> web_;
  // The offset between the wall clock and the monotonic one: it moves when the clock is stepped.
  std::int64_t clock_offset_ns_ = 0;
  std::uint64_t clock_steps_ = 0;
};

}  // namespace mariner::node
