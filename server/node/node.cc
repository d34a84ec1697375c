#include "server/node/node.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "proto/check.h"
#include "proto/huge_pages.h"
#include "server/node/config_changes.h"
#include "server/node/node_control.h"
#include "server/node/processors.h"
#include "server/node/view_rules.h"
#include "server/node/volume_sanitizer.h"
#include "server/volume/thread_worker.h"

namespace mariner::node {
namespace {

constexpr auto kTick = std::chrono::seconds(1);
constexpr auto kIdlePoll = std::chrono::milliseconds(5);
constexpr std::int64_t kClockStepNs = 500'000'000;

std::int64_t offset_ns(const Executor& executor) {
  return static_cast<std::int64_t>(executor.wall_time().ns) - executor.monotonic_time().count();
}

}  // namespace

Node::Node(Config config, std::string config_path, EventLoop& loop, Log& log)
    : config_(std::move(config)),
      config_path_(std::filesystem::absolute(config_path).string()),
      loop_(loop),
      log_(log),
      rod_tokens_(std::make_shared<scsi::RodTokens>([&loop] { return loop.monotonic_time(); })) {}

Node::~Node() {
  loop_.set_turn_hook(nullptr);
  loop_.no_outlook();
  // What speaks to the outside goes first, the log last.
  front_.reset();
  control_.reset();
  verdicts_.reset();
  enrolment_desk_.reset();
  host_pace_.reset();
  log_space_.reset();
  window_watch_.reset();
  keeper_.reset();
  access_.reset();
  groups_.reset();
  views_.reset();
  volumes_.reset();
  recovered_.reset();
  if (node_log_ != nullptr) node_log_->drop_indexes();
  track_worker_.reset();
  worker_.reset();
  node_log_.reset();
  loop_.stop_waking();
}

Result<void> Node::start() {
  const auto begun = loop_.monotonic_time();
  Result<Accounts> accounts = load_accounts(config_.auth);
  if (!accounts) return accounts.error();
  accounts_ = *std::move(accounts);
  std::error_code error;
  std::filesystem::create_directories(config_.server.state_dir, error);
  if (error) return errno_error(error.value(), config_.server.state_dir + ": create");
  ::chmod(config_.server.state_dir.c_str(), 0700);

  Result<std::unique_ptr<logging::IoRing>> ring = logging::IoRing::create(loop_);
  if (!ring) return ring.error();
  ring_ = std::move(*ring);
  // Before anything that takes time: who cannot listen finds out at once, and initiators that
  // connect meanwhile wait in the backlog. Nothing is accepted before all of it can be served.
  if (Result<void> r = listen(); !r) return r;
  Result<std::unique_ptr<MetaStore>> store = MetaStore::open(config_.server.state_dir + "/store");
  if (!store) return store.error();
  store_ = std::move(*store);
  verdict_shelf_ = std::make_unique<LocalVerdicts>(*store_);
  verdicts_ = std::make_unique<VerdictDesk>(
      loop_, *verdict_shelf_,
      [this](const std::string& name) { return control_->find_checked(name); });
  Result<Epoch> epoch = store_->next_epoch();
  if (!epoch) return epoch.error();
  epoch_ = *epoch;
  worker_ = std::make_unique<volume::ThreadWorker>(loop_);
  track_worker_ = std::make_unique<volume::ThreadWorker>(loop_);
  recovered_ = std::make_unique<RecoveredVolumes>(*store_, log_);

  VolumeSetOptions options;
  options.state_dir = config_.server.state_dir;
  options.iqn_base = config_.server.iqn_base;
  options.storage.pending_memory_max = config_.storage.pending_memory.bytes;
  options.storage.lag_bytes_max = config_.storage.lag_max.bytes;
  options.storage.apply_delay = config_.storage.apply_delay;
  options.restore_max = config_.rollback.rate_max.bytes;
  options.lock_wait = NodeLog::kLockWait;
  for (const VolumeConfig& volume : config_.volumes) {
    if (!volume.faults) continue;
    volume::FaultOptions& faults = options.faults[volume.name];
    faults.read_error_rate = volume.faults->read_errors;
    faults.write_error_rate = volume.faults->write_errors;
    faults.read_delay = volume.faults->read_delay;
    faults.write_delay = volume.faults->write_delay;
  }
  options.target_ports = {1};
  for (const PortalGroupConfig& group : config_.server.portal_groups) {
    options.target_ports.push_back(group.tag);
  }
  options.find_copy_unit = [this](std::uint32_t from, const scsi::CopyTarget& target,
                                  const scsi::InitiatorPort& initiator) {
    return access_->find_copy_unit(from, target, initiator);
  };
  options.rod_tokens = rod_tokens_;
  options.serves_again = [this](const ServedVolume& volume) {
    if (views_ != nullptr) views_->serve_again(volume);
  };
  options.make_sanitizer = [this](std::uint32_t volume) {
    return std::make_shared<VolumeSanitizer>(
        volume, VolumeSanitizer::Parts{volumes_, views_, log_space_, *store_, loop_, log_});
  };
  volumes_ = std::make_unique<VolumeSet>(
      VolumeSetParts{loop_, *ring_, *store_, *worker_, *recovered_, log_}, std::move(options));
  if (Result<void> r = volumes_->load(); !r) return r;
  if (Result<void> r = loop_.wake_on(ring_->fd()); !r) return r;
  loop_.set_turn_hook([this] { ring_->reap(); });

  Result<std::unique_ptr<NodeLog>> log =
      NodeLog::open(config_, {loop_, *ring_, *store_, *worker_, *recovered_, log_},
                    [this](std::uint64_t records) {
                      if (progress_) progress_(records);
                    });
  if (!log) return log.error();
  node_log_ = std::move(*log);
  const logging::Recovered& recovered = node_log_->stack().recovered();
  if (Result<void> r = volumes_->start(node_log_->stack(), epoch_); !r) return r;
  views_ = std::make_unique<ViewSet>(
      *volumes_, *store_, loop_, log_,
      ViewSet::Options{
          config_.server.iqn_base,
          overlay_default(config_.views.overlay_max, node_log_->stack().writer().limit_bytes())});
  if (Result<void> r = views_->start(); !r) return r;
  groups_ = std::make_unique<GroupSet>(GroupSet::Parts{*volumes_, *views_, *store_, loop_, log_});
  if (Result<void> r = groups_->start(); !r) return r;
  access_ = std::make_unique<Access>(
      Access::Parts{config_, config_path_, accounts_, *volumes_, *views_, *store_});
  if (Result<void> r = create_configured_volumes(); !r) return r;
  keeper_ = std::make_unique<LocalKeeper>(
      *volumes_, *views_, *store_,
      [this](const std::string& name) { unexpose(name, [](const Result<void>&) {}); });
  log_space_ = std::make_unique<LogSpace>(
      LogSpace::Parts{node_log_->stack(), *keeper_, *store_, *track_worker_, loop_, log_},
      config_.log.on_full);
  node_log_->stack().set_less_room([this] {
    if (log_space_ != nullptr) log_space_->check();
  });
  window_watch_ = std::make_unique<WindowWatch>(loop_, log_);
  host_pace_ = std::make_unique<HostPace>(
      HostPace::Parts{node_log_->stack(), *log_space_, *volumes_, loop_, log_},
      config_.log.on_full);

  if (Result<void> r = loop_.set_outlook(
          [this](std::chrono::nanoseconds now) { return node_log_->stack().outlook(now); });
      !r) {
    return r;
  }
  node_log_->stack().start();
  log_packing_ = std::make_unique<LogPacking>(node_log_->stack(), config_.log.compact, log_);
  scrub_report_ = std::make_unique<ScrubReport>(*volumes_, log_);
  node_log_->stack().array().start_scrubbing(
      scrub_rate(config_.log.scrub_rate, node_log_->stack().writer().limit_bytes()),
      [this](std::uint8_t disk, const logging::TrackDamage& damage) {
        scrub_report_->damaged(node_log_->stack().path_of(disk), damage);
      });
  keep_huge(config_.storage.pending_memory.bytes);
  loop_.set_busy_poll(BusyPoll(config_.server.busy_poll, usable_processors()));
  started_ = loop_.wall_time();
  clock_offset_ns_ = offset_ns(loop_);
  loop_.after(kTick, [this] { tick(); });
  ready_ = true;
  front_->start();
  log_.info("serving", {{"volumes", volumes_->all().size()},
                        {"views", views_->all().size()},
                        {"records", recovered.records},
                        {"tail_records_cut", recovered.tail_records_cut},
                        {"epoch", epoch_.value},
                        {"startup_ms", static_cast<std::uint64_t>(
                                           (loop_.monotonic_time() - begun).count() / 1'000'000)}});
  return {};
}

Result<void> Node::create_configured_volumes() {
  for (const VolumeConfig& wanted : config_.volumes) {
    ServedVolume* existing = volumes_->find(wanted.name);
    if (existing != nullptr) {
      existing->meta.set_window_s(static_cast<std::uint64_t>(wanted.window.count()));
      existing->meta.set_retain(retention_text(wanted.retain));
      existing->meta.set_sanitize(wanted.sanitize);
      existing->meta.set_removable(wanted.removable);
      if (Result<void> r = access_->declare(*existing, wanted); !r) return r;
      resize_as_configured(*existing, wanted);
      continue;
    }
    NewVolume request;
    request.name = wanted.name;
    request.size_bytes = wanted.size.bytes;
    request.block_size = wanted.block_size;
    request.window_s = static_cast<std::uint64_t>(wanted.window.count());
    request.retain = wanted.retain;
    request.sanitize = wanted.sanitize;
    request.removable = wanted.removable;
    Result<ServedVolume*> created = volumes_->create(request);
    if (!created) return created.error();
    if (Result<void> r = access_->declare(**created, wanted); !r) return r;
    log_.info("created a volume from the configuration",
              {{"volume", wanted.name}, {"target", (*created)->iqn}});
  }
  return {};
}

// Grows it. A smaller size is refused: a volume never shrinks.
void Node::resize_as_configured(const ServedVolume& volume, const VolumeConfig& wanted) {
  const std::uint64_t was = volume.meta.size_bytes();
  if (wanted.size.bytes == was) return;
  volumes_->resize(wanted.name, wanted.size.bytes,
                   [this, name = wanted.name, was](Result<ServedVolume*> resized) {
                     if (!resized) {
                       log_.error("a volume keeps its size, which is not as configured",
                                  {{"volume", name}, {"error", to_string(resized.error())}});
                       return;
                     }
                     log_.info("resized a volume", {{"volume", name},
                                                    {"from_bytes", was},
                                                    {"to_bytes", (*resized)->meta.size_bytes()}});
                   });
}

Result<void> Node::listen() {
  enrolment_desk_ =
      std::make_unique<EnrolmentDesk>(loop_, log_, config_.cluster.pki, config_.cluster.enrol);
  control_ = std::make_unique<NodeControl>(*this);
  Result<std::unique_ptr<Front>> front =
      Front::open(config_.server, 0, true, {loop_, log_, *this, *control_, *this});
  if (!front) return front.error();
  front_ = std::move(*front);
  return {};
}

Result<void> Node::reload(const Config& config) {
  Result<void> taken;
  take_changes(config_, config);
  views_->set_overlay_default(
      overlay_default(config_.views.overlay_max, node_log_->stack().writer().limit_bytes()));
  loop_.set_busy_poll(BusyPoll(config_.server.busy_poll, usable_processors()));
  log_packing_->set(config_.log.compact);
  volumes_->set_restore_max(config_.rollback.rate_max.bytes);
  log_space_->set_on_full(config_.log.on_full);
  host_pace_->set_on_full(config_.log.on_full);
  node_log_->change_disks(config_.log.disks);
  node_log_->set_polling(config_.log.polling);
  if (Result<Accounts> accounts = load_accounts(config.auth); accounts) {
    accounts_ = *std::move(accounts);
    config_.auth = config.auth;
    config_.server.discovery_auth = config.server.discovery_auth;
  } else {
    log_.error("the new accounts were not taken", {{"error", to_string(accounts.error())}});
    taken = accounts.error();
  }
  config_.volumes = config.volumes;
  if (Result<void> r = create_configured_volumes(); !r) {
    log_.error("not all volumes are as configured", {{"error", to_string(r.error())}});
    taken = r.error();
  }
  enforce_access();
  return taken;
}

void Node::tick() {
  watch_clock();
  trim_huge();
  rod_tokens_->expire();
  log_space_->check();
  watch_windows();
  enrolment_desk_->tick();
  node_log_->retire_disks();
  for (const std::string& name : views_->expired(loop_.wall_time())) {
    log_.info("a view's time to live is over", {{"view", name}});
    unexpose(name, [this, name](const Result<void>& result) {
      if (!result) {
        log_.warning("a view could not be unexposed",
                     {{"view", name}, {"error", to_string(result.error())}});
      }
    });
  }
  if (!stopping_) loop_.after(kTick, [this] { tick(); });
}

void Node::watch_windows() {
  std::vector<WindowWatch::Volume> volumes;
  for (const auto& [name, served] : volumes_->all()) {
    if (served.volume == nullptr) continue;
    volumes.push_back({VolumeId{served.meta.id()}, name,
                       std::chrono::seconds(served.meta.window_s()), oldest_moment(served).time});
  }
  window_watch_->look(WindowWatch::space_of(node_log_->stack()), volumes);
  host_pace_->look(window_watch_->forecast());
}

// Order is by sequence number whatever the clock does; a step is recorded and shown.
void Node::watch_clock() {
  const std::int64_t offset = offset_ns(loop_);
  const std::int64_t step = offset - clock_offset_ns_;
  clock_offset_ns_ = offset;
  if (step > -kClockStepNs && step < kClockStepNs) return;
  ++clock_steps_;
  log_.warning("the clock was stepped", {{"step_ms", step / 1'000'000}});
  meta::ClockStep record;
  record.set_at_ns(loop_.wall_time().ns);
  record.set_step_ns(step);
  if (Result<void> r = store_->add_clock_step(record); !r) {
    log_.warning("cannot record it", {{"error", to_string(r.error())}});
  }
}

void Node::unexpose(const std::string& name, UniqueFunction<void(Result<void>)> done) {
  for (const std::string& each : views_->together(name)) {
    front_->portal().sessions().close_target(views_->find(each)->iqn);
  }
  done(views_->unexpose(name));
}

void Node::stop(UniqueFunction<void()> done) {
  CHECK(!stopping_);
  stopping_ = true;
  ready_ = false;
  log_.info("stopping");
  if (enrolment_desk_ != nullptr) enrolment_desk_->close();
  if (control_ != nullptr) control_->files().stop();
  auto then = [this, done = std::move(done)]() mutable {
    host_pace_->stop();
    log_space_->stop();
    groups_->stop();
    volumes_->close(Error{ErrorCode::kUnavailable, "the server is stopping"});
    node_log_->stack().stop();
    node_log_->indexes().stop_repairs();
    wait_until_idle([this, done = std::move(done)]() mutable {
      volumes_->save_progress();
      stop_index([this, done = std::move(done)]() mutable {
        log_.info("stopped");
        done();
      });
    });
  };
  if (front_ == nullptr) return then();
  front_->stop(std::move(then));
}

void Node::wait_until_idle(UniqueFunction<void()> done) {
  if (log_space_->idle() && volumes_->idle() && node_log_->stack().idle()) return done();
  loop_.after(kIdlePoll,
              [this, done = std::move(done)]() mutable { wait_until_idle(std::move(done)); });
}

void Node::stop_index(UniqueFunction<void()> done) {
  node_log_->indexes().stop();
  // (The log once more: time has passed.)
  if (node_log_->indexes().idle() && node_log_->stack().idle() && ring_->in_flight() == 0) {
    return done();
  }
  loop_.after(kIdlePoll, [this, done = std::move(done)]() mutable { stop_index(std::move(done)); });
}

std::vector<std::string> Node::discoverable(std::string_view initiator,
                                            std::string_view account) const {
  return access_->discoverable(initiator, account);
}

Result<std::shared_ptr<scsi::TargetDevice>> Node::open(std::string_view target,
                                                       std::string_view initiator) {
  if (stopping_) return Error{ErrorCode::kUnavailable, "the server is stopping"};
  return access_->open(target, initiator);
}

std::optional<iscsi::Redirection> Node::redirection(std::string_view target,
                                                    std::string_view /*portal*/) const {
  return access_->redirection(target);
}

Result<std::vector<iscsi::ChapAccount>> Node::accounts(std::string_view target,
                                                       std::string_view) const {
  return access_->accounts(target);
}

void Node::enforce_access() {
  const auto forbidden = [this](const iscsi::Session& session) {
    const iscsi::LoginIdentity& identity = session.identity();
    return !identity.discovery && access_->forbids(identity.target, identity.initiator);
  };
  const auto elsewhere = [this](const iscsi::Session& session) {
    const auto to = access_->redirection(session.identity().target);
    return to && to->address != session.info().endpoints.portal;
  };
  iscsi::SessionRegistry& sessions = front_->portal().sessions();
  if (const auto asked = sessions.ask_to_leave(forbidden, iscsi::EndReason::kForbidden);
      asked > 0) {
    log_.info("sessions that have no access any more are asked to leave", {{"sessions", asked}});
  }
  if (const auto asked = sessions.ask_to_leave(elsewhere, iscsi::EndReason::kRedirected);
      asked > 0) {
    log_.info("sessions are asked to leave: their targets are elsewhere now",
              {{"sessions", asked}});
  }
}

web::NodeMetrics Node::metrics() {
  web::NodeMetrics out;
  for (const auto& [name, served] : volumes_->all()) {
    if (served.volume == nullptr) continue;
    web::VolumeMetrics volume;
    volume.volume = name;
    volume.serves = served.serves();
    if (served.metered != nullptr) volume.scsi = &served.metered->metrics();
    volume.oldest_recoverable = oldest_moment(served).time;
    volume.window = std::chrono::seconds(served.meta.window_s());
    if (const auto outlook = window_watch_->outlook(VolumeId{served.meta.id()})) {
      volume.window_lasting = outlook->lasting;
      volume.window_short_in = outlook->short_in;
    }
    volume.write_pace = host_pace_->pace_of(VolumeId{served.meta.id()});
    volume.views_exposed = views_->count_of(served.meta.id());
    volume.checks = verdicts_->durations(VolumeId{served.meta.id()});
    volume.index_lookup = &served.volume->index().lookups();
    volume.index_pending_updates = served.volume->index().pending_updates();
    const volume::Storage& storage = *served.volume->storage();
    if (const auto oldest = storage.oldest_unapplied()) {
      const VersionTime now = loop_.wall_time();
      if (*oldest < now) volume.commit_lag = std::chrono::nanoseconds(now.ns - oldest->ns);
    }
    if (storage.restoring()) volume.rollback_progress = storage.restore_progress().ratio();
    out.volumes.push_back(std::move(volume));
  }
  out.log_commit = &node_log_->stack().commit_durations();
  out.log_batch = &node_log_->stack().batch_bytes();
  for (const LogMember& member : node_log_->stack().members()) {
    const logging::DurableChoice& durable = member.durability;
    web::LogDiskMetrics& disk = out.log_disks.emplace_back();
    disk.disk = member.path;
    disk.durability = logging::durable_way_name(durable.way);
    if (durable.writes > 0) {
      disk.fua = durable.fua;
      disk.flush = durable.flush;
    }
  }
  out.log_used_bytes = node_log_->stack().writer().used_bytes();
  out.log_limit_bytes = node_log_->stack().writer().limit_bytes();
  out.log_history_bytes = node_log_->stack().writer().history_bytes();
  out.log_payloads = node_log_->stack().payloads();
  for (const auto& member : node_log_->stack().array().members()) {
    if (!member->scrubber) continue;
    const logging::TrackScrubber::Progress scrubbed = member->scrubber->progress();
    out.log_scrubs.push_back({node_log_->stack().path_of(member->superblock.disk), scrubbed.bytes,
                              scrubbed.rounds, scrubbed.last_round, scrubbed.damaged_blocks});
  }
  front_->add_metrics(out);
  out.clock_steps = clock_steps_;
  return out;
}

Result<void> Node::health() {
  if (node_log_->stack().writer().failed()) {
    return Error{ErrorCode::kIo, "every log disk has failed: " + node_log_->stack().paths()};
  }
  return {};
}

Result<void> Node::readiness() {
  if (stopping_) return Error{ErrorCode::kUnavailable, "stopping"};
  if (!ready_) return Error{ErrorCode::kUnavailable, "starting"};
  return health();
}

}  // namespace mariner::node
