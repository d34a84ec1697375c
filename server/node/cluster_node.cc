#include "server/node/cluster_node.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "proto/check.h"
#include "proto/huge_pages.h"
#include "server/manager/alive_node.h"
#include "server/node/cluster_control.h"
#include "server/node/cluster_redirection.h"
#include "server/node/config_changes.h"
#include "server/node/identity.h"
#include "server/node/processors.h"
#include "server/peer/tls_context.h"
#include "server/volume/thread_worker.h"

namespace mariner::node {
namespace {

constexpr auto kTick = std::chrono::seconds(1);
// How long a node that stops waits for the store to take its lease back.
constexpr auto kLeaseReturn = std::chrono::seconds(1);
constexpr auto kIdlePoll = std::chrono::milliseconds(5);

}  // namespace

ClusterNode::ClusterNode(Config config, std::string config_path, EventLoop& loop, Log& log)
    : config_(std::move(config)),
      config_path_(std::filesystem::absolute(config_path).string()),
      loop_(loop),
      log_(log) {}

ClusterNode::~ClusterNode() {
  loop_.set_turn_hook(nullptr);
  loop_.no_outlook();
  front_.reset();
  control_.reset();
  enrolment_desk_.reset();
  past_.reset();
  views_.reset();
  log_space_.reset();
  window_watch_.reset();
  keeper_.reset();
  volumes_.reset();
  bus_.reset();
  caller_.reset();
  participants_.reset();
  recovered_.reset();
  if (node_log_ != nullptr) node_log_->drop_indexes();
  track_worker_.reset();
  worker_.reset();
  node_log_.reset();
  loop_.stop_waking();
}

Result<void> ClusterNode::start() {
  const auto begun = loop_.monotonic_time();
  Result<Accounts> accounts = load_accounts(config_.auth);
  if (!accounts) return accounts.error();
  accounts_ = *std::move(accounts);
  std::error_code error;
  std::filesystem::create_directories(config_.server.state_dir, error);
  if (error) return errno_error(error.value(), config_.server.state_dir + ": create");
  ::chmod(config_.server.state_dir.c_str(), 0700);
  if (Result<void> r = find_self(); !r) return r;
  Result<std::unique_ptr<logging::IoRing>> ring = logging::IoRing::create(loop_);
  if (!ring) return ring.error();
  ring_ = std::move(*ring);
  if (Result<void> r = open_front(); !r) return r;
  Result<std::unique_ptr<MetaStore>> store = MetaStore::open(config_.server.state_dir + "/store");
  if (!store) return store.error();
  store_ = std::move(*store);
  worker_ = std::make_unique<volume::ThreadWorker>(loop_);
  track_worker_ = std::make_unique<volume::ThreadWorker>(loop_);
  promises_ = std::make_unique<NodePromises>(*store_, loop_);
  recovered_ = std::make_unique<RecoveredVolumes>(*store_, log_);
  if (Result<void> r = loop_.wake_on(ring_->fd()); !r) return r;
  loop_.set_turn_hook([this] { ring_->reap(); });
  open_shared_store();
  if (Result<void> r = open_bus(); !r) return r;
  // (Before anything is under way that a node which cannot start would have to wait for. Nobody is
  // answered yet.)
  if (Result<void> r = bus_->listen(config_.cluster.listen); !r) return r;
  if (Result<void> r = open_volumes(); !r) return r;
  open_past();
  if (node_log_ != nullptr) {
    if (Result<void> r = loop_.set_outlook(
            [this](std::chrono::nanoseconds now) { return node_log_->stack().outlook(now); });
        !r) {
      return r;
    }
    node_log_->stack().start();
    if (logs()) {
      log_packing_ = std::make_unique<LogPacking>(node_log_->stack(), config_.log.compact, log_);
    }
  }
  lease_->start();
  keep_huge(config_.storage.pending_memory.bytes);
  loop_.set_busy_poll(BusyPoll(config_.server.busy_poll, usable_processors()));
  started_ = loop_.wall_time();
  loop_.after(kTick, [this] { tick(); });
  ready_ = true;
  front_->start();
  log_.info("a node of the cluster",
            {{"cluster", identity_->name.cluster},
             {"node", identity_->name.node},
             {"number", self_.value},
             {"volumes", volumes_->all().size()},
             {"startup_ms",
              static_cast<std::uint64_t>((loop_.monotonic_time() - begun).count() / 1'000'000)}});
  return {};
}

// Which of the configured nodes this one is, its certificate says.
Result<void> ClusterNode::find_self() {
  const std::string folder =
      config_.cluster.pki.empty() ? config_.server.state_dir + "/pki" : config_.cluster.pki;
  Result<peer::NodeIdentity> identity = peer::PkiFolder(folder).load(
      std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()));
  if (!identity) return identity.error();
  identity_ = *std::move(identity);
  self_ = {number_of(identity_->name.node)};
  if (self_.value != 0) return {};
  return Error{ErrorCode::kInvalidArgument,
               "this node's certificate in " + folder + " says that it is " + identity_->name.node +
                   ", and " + config_path_ + " has no [[cluster.node]] of that name"};
}

std::uint32_t ClusterNode::number_of(const std::string& node) const {
  const auto& nodes = config_.cluster.nodes;
  const auto found = std::ranges::find(nodes, node, &ClusterNodeConfig::name);
  return found == nodes.end() ? 0 : found->id;
}

Result<void> ClusterNode::open_front() {
  enrolment_desk_ =
      std::make_unique<EnrolmentDesk>(loop_, log_, config_.cluster.pki, config_.cluster.enrol);
  control_ = std::make_unique<ClusterControl>(*this);
  Result<std::unique_ptr<Front>> front =
      Front::open(config_.server, self_.value, config_.has(Role::kTarget),
                  {loop_, log_, *this, *control_, *this});
  if (!front) return front.error();
  front_ = std::move(*front);
  return {};
}

void ClusterNode::open_shared_store() {
  manager::EtcdStoreOptions options;
  options.endpoints = config_.cluster.etcd;
  shared_ = std::make_unique<manager::EtcdStore>(loop_.context(), loop_, std::move(options));
  const BackoffTimes backoff{.seed = self_.value};
  view_ = std::make_unique<manager::ClusterView>(
      *shared_, loop_, std::string(manager::kClusterPrefix), backoff, [this] { changed(); });
  manager::NodeLease::Options lease;
  lease.key = manager::alive_key(self_);
  lease.value = published();
  const std::chrono::nanoseconds ttl = config_.cluster.lease;
  lease.ttl = config_.cluster.lease;
  lease.renew_every = ttl / 6;
  lease.margin = ttl / 6;
  lease.backoff = backoff;
  lease_ = std::make_unique<manager::NodeLease>(
      *shared_, loop_, lease,
      manager::NodeLease::Events{.gained =
                                     [this] {
                                       log_.info("the cluster knows that this node is alive");
                                       changed();
                                     },
                                 .lost =
                                     [this] {
                                       if (!stopping_) {
                                         log_.warning(
                                             "this node's lease has ended: it coordinates nothing "
                                             "until the cluster's store answers again");
                                       }
                                       changed();
                                     }});
  directory_ = std::make_unique<manager::VolumeDirectory>(*shared_, *view_);
  moments_ = std::make_unique<manager::MomentDirectory>(*shared_, *view_);
  reservations_ = std::make_unique<ClusterReservations>(*shared_, loop_, *lease_, self_);
}

// What others are to know of this node while it is alive.
std::string ClusterNode::published() const {
  manager::AliveNode self;
  self.name = identity_->name.node;
  self.target = config_.has(Role::kTarget);
  const auto& nodes = config_.cluster.nodes;
  const auto own = std::ranges::find(nodes, self_.value, &ClusterNodeConfig::id);
  if (front_->has_portal()) {
    self.portals = reachable_portals(front_->portal().addresses(), own->addresses);
  }
  return manager::encode(self);
}

Result<void> ClusterNode::open_bus() {
  Result<std::shared_ptr<const peer::TlsContext>> tls = peer::TlsContext::for_peers(*identity_);
  if (!tls) return tls.error();
  std::vector<cluster::PeerAddress> others;
  for (const ClusterNodeConfig& node : config_.cluster.nodes) {
    if (node.id != self_.value) others.push_back({{node.id}, node.name, node.addresses});
  }
  participants_ = std::make_unique<cluster::ParticipantService>();
  caller_ = std::make_unique<cluster::CallerService>(loop_, self_);
  bus_ = std::make_unique<cluster::PeerBus>(
      peer::Connection::Environment{loop_.context(), loop_, *tls, {}}, std::move(others), *caller_,
      *participants_, [this](const Error& error) { report(error); });
  multicast_ = std::make_unique<ClusterMulticast>(config_.replication, loop_, log_);
  multicast_->begin(*bus_);
  participants_->attach(*bus_);
  caller_->attach(*bus_);
  return {};
}

// What is said again and again, as that a node does not answer, is told once a minute.
void ClusterNode::report(const Error& error) {
  constexpr std::size_t kTextsMax = 256;
  if (bus_reports_.size() >= kTextsMax) bus_reports_.clear();
  const std::string text = to_string(error);
  LogLimiter& limiter =
      bus_reports_.try_emplace(text, LogLimiter::Options{.lines_max = 1}).first->second;
  const auto [write, untold] = limiter.admit(loop_.monotonic_time());
  if (write) log_.warning("between nodes", {{"error", text}, {"before", untold}});
}

Result<void> ClusterNode::open_volumes() {
  ClusterVolumes::Options options;
  options.self = self_;
  options.logs = config_.has(Role::kLogger);
  options.stores = config_.has(Role::kStorage);
  options.serves = config_.has(Role::kTarget);
  options.journals = config_.has_log();
  options.state_dir = config_.server.state_dir;
  options.iqn_base = config_.server.iqn_base;
  options.storage.pending_memory_max = config_.storage.pending_memory.bytes;
  options.storage.lag_bytes_max = config_.storage.lag_max.bytes;
  options.storage.apply_delay = config_.storage.apply_delay;
  options.lease = config_.cluster.lease;
  options.logger_patience = config_.cluster.logger_patience;
  options.absent_max = config_.cluster.absent_max;
  options.catch_up_max = config_.cluster.catch_up_max.bytes;
  options.restore_max = config_.rollback.rate_max.bytes;
  options.lock_wait = NodeLog::kLockWait;
  options.group_of = [this](const std::string& name) {
    return multicast_->group_of(name, config_.volumes);
  };
  volumes_ = std::make_unique<ClusterVolumes>(
      ClusterVolumes::Parts{loop_, *ring_, *store_, *worker_, *recovered_, *promises_, log_,
                            *shared_, *view_, *lease_, *directory_, *caller_, *participants_,
                            *reservations_},
      std::move(options));
  if (Result<void> r = volumes_->load(); !r) return r;
  if (Result<void> r = open_log(); !r) return r;
  return volumes_->start(node_log_ == nullptr ? nullptr : &node_log_->stack());
}

Result<void> ClusterNode::open_log() {
  if (!config_.has_log()) {
    if (config_.has(Role::kStorage)) {
      log_.info(
          "this storage node keeps no journal ([log] disks): writes wait while a volume's "
          "logger is away");
    }
    return {};
  }
  Result<std::unique_ptr<NodeLog>> log =
      NodeLog::open(config_, {loop_, *ring_, *store_, *worker_, *recovered_, log_},
                    [this](std::uint64_t records) {
                      if (progress_) progress_(records);
                    });
  if (!log) return log.error();
  node_log_ = std::move(*log);
  return {};
}

void ClusterNode::open_past() {
  views_ = std::make_unique<ClusterViews>(*volumes_, *moments_, loop_, config_.server.iqn_base,
                                          [this](const std::string& iqn) {
                                            if (front_->has_portal())
                                              front_->portal().sessions().close_target(iqn);
                                          });
  ClusterPast::Hosts hosts;
  hosts.sessions = [this](const std::string& iqn) {
    return front_->has_portal() ? front_->portal().sessions().list_of(iqn)
                                : std::vector<iscsi::SessionInfo>{};
  };
  hosts.to_api = [this](const iscsi::SessionInfo& session) { return control_->to_api(session); };
  hosts.name_of = [this](std::uint32_t node) { return control_->name_of(node); };
  past_ = std::make_unique<ClusterPast>(
      ClusterPast::Parts{loop_, *volumes_, *views_, *moments_, *directory_, log_}, std::move(hosts),
      time_to_hear(config_.cluster.lease, manager::EtcdStoreOptions{}.watch_silence),
      config_.server.state_dir);
  if (node_log_ == nullptr) return;
  keeper_ = std::make_unique<ClusterKeeper>(*volumes_, *moments_, *lease_);
  log_space_ = std::make_unique<LogSpace>(
      LogSpace::Parts{node_log_->stack(), *keeper_, *store_, *track_worker_, loop_, log_},
      config_.log.on_full);
  node_log_->stack().set_less_room([this] {
    if (log_space_ != nullptr) log_space_->check();
  });
  if (logs()) window_watch_ = std::make_unique<WindowWatch>(loop_, log_);
}

// The shared store, or the lease.
void ClusterNode::changed() {
  if (volumes_ == nullptr) return;
  volumes_->look();
  if (views_ != nullptr && view_->known() && !stopping_) views_->look();
  send_away();
  if (!stopping_ && view_->known()) create_configured_volumes();
}

void ClusterNode::create_configured_volumes() {
  if (std::exchange(creating_, true)) return;
  for (const VolumeConfig& wanted : config_.volumes) create(wanted);
}

void ClusterNode::create(const VolumeConfig& wanted) {
  if (view_->find(manager::name_key(wanted.name)) != nullptr) return;
  meta::Volume meta;
  meta.set_name(wanted.name);
  meta.set_size_bytes(wanted.size.bytes);
  meta.set_block_size(wanted.block_size);
  meta.set_window_s(static_cast<std::uint64_t>(wanted.window.count()));
  if (!wanted.retain.none()) meta.set_retain(retention_text(wanted.retain));
  meta.set_created_ns(loop_.wall_time().ns);
  meta.set_uuid(new_uuid());
  meta.set_sanitize(wanted.sanitize);
  meta.set_removable(wanted.removable);
  for (const std::string& initiator : wanted.acl) meta.add_acl(initiator);
  for (const std::string& account : wanted.auth) meta.add_auth(account);
  meta::Cluster& nodes = *meta.mutable_cluster();
  nodes.set_logger(number_of(wanted.logger));
  for (const std::string& node : wanted.storage) nodes.add_storages(number_of(node));
  for (const std::string& node : wanted.targets) nodes.add_targets(number_of(node));
  nodes.set_promote_by_hand(!wanted.promote);
  nodes.set_redirect(wanted.redirect_to_server);
  directory_->create(std::move(meta), [this, name = wanted.name](const Result<meta::Volume>& made) {
    if (made) {
      log_.info("created a volume of the cluster from the configuration", {{"volume", name}});
    } else if (made.error().code != ErrorCode::kAlreadyExists) {
      log_.error("a configured volume could not be created; it is tried again",
                 {{"volume", name}, {"error", to_string(made.error())}});
      creating_ = false;
    }
  });
}

void ClusterNode::tick() {
  if (stopping_) return;
  trim_huge();
  enrolment_desk_->tick();
  if (node_log_ != nullptr) {
    log_space_->check();
    watch_windows();
    node_log_->retire_disks();
  }
  changed();
  past_->tick();
  loop_.after(kTick, [this] { tick(); });
}

void ClusterNode::watch_windows() {
  if (window_watch_ == nullptr) return;
  std::vector<WindowWatch::Volume> volumes;
  for (const auto& [id, volume] : volumes_->all()) {
    if (volume.logger == nullptr) continue;
    const VersionTime oldest = volume.logger->logged().index().oldest().time;
    volumes.push_back({VolumeId{id}, volume.meta.name(),
                       std::chrono::seconds(volume.meta.window_s()),
                       std::max(VersionTime{volume.meta.created_ns()}, oldest)});
  }
  window_watch_->look(WindowWatch::space_of(node_log_->stack()), volumes);
}

Result<void> ClusterNode::reload(const Config& config) {
  Result<void> taken;
  if (Result<Accounts> accounts = load_accounts(config.auth); accounts) {
    accounts_ = *std::move(accounts);
    config_.auth = config.auth;
    config_.server.discovery_auth = config.server.discovery_auth;
  } else {
    log_.error("the new accounts were not taken", {{"error", to_string(accounts.error())}});
    taken = accounts.error();
  }
  take_changes(config_, config);
  loop_.set_busy_poll(BusyPoll(config_.server.busy_poll, usable_processors()));
  volumes_->set_catch_up_max(config_.cluster.catch_up_max.bytes);
  volumes_->set_restore_max(config_.rollback.rate_max.bytes);
  if (node_log_ != nullptr) {
    node_log_->change_disks(config_.log.disks);
    node_log_->set_polling(config_.log.polling);
  }
  if (log_packing_) log_packing_->set(config_.log.compact);
  if (log_space_) log_space_->set_on_full(config_.log.on_full);
  config_.volumes = config.volumes;
  creating_ = false;
  changed();
  return taken;
}

void ClusterNode::stop(UniqueFunction<void()> done) {
  CHECK(!stopping_);
  stopping_ = true;
  ready_ = false;
  log_.info("stopping");
  enrolment_desk_->close();
  control_->stop();
  hand_over([this, done = std::move(done)]() mutable {
    front_->stop([this, done = std::move(done)]() mutable { stop_parts(std::move(done)); });
  });
}

// Before hosts are logged out, so that they go where others serve by then.
void ClusterNode::hand_over(UniqueFunction<void()> done) {
  std::vector<Handover::Volume> coordinated;
  for (const auto& [id, volume] : volumes_->all()) {
    if (volume.target == nullptr || volume.target->coordinator() == nullptr) continue;
    Handover::Volume& each = coordinated.emplace_back(VolumeId{id}, volume.iqn);
    each.redirect = volume.meta.cluster().redirect();
    if (volume.meta.cluster().promote_by_hand()) continue;
    for (const std::uint32_t node : manager::targets_of(volume.meta)) {
      if (node != self_.value) each.successors.push_back({node});
    }
  }
  volumes_->resign();
  lease_->stop([this] { lease_returned_ = true; });
  lease_return_end_ = loop_.monotonic_time() + kLeaseReturn;
  handover_ = std::make_unique<Handover>(
      Handover::Parts{loop_, *view_, self_, [this](const std::string& iqn) -> std::size_t {
                        return front_->has_portal() ? front_->portal().sessions().count_of(iqn) : 0;
                      }});
  handover_->begin(std::move(coordinated), std::move(done));
}

void ClusterNode::stop_parts(UniqueFunction<void()> done) {
  views_->close();
  // (In this order: what finds the log full then has failed for nobody.)
  volumes_->close(Error{ErrorCode::kUnavailable, "the node is stopping"});
  if (log_space_ != nullptr) log_space_->stop();
  if (node_log_ != nullptr) {
    node_log_->stack().stop();
    node_log_->indexes().stop_repairs();
  }
  wait_until_idle([this, done = std::move(done)]() mutable {
    volumes_->save_progress();
    stop_index([this, done = std::move(done)]() mutable {
      log_.info("stopped");
      done();
    });
  });
}

void ClusterNode::wait_until_idle(UniqueFunction<void()> done) {
  const bool left = lease_returned_ || loop_.monotonic_time() >= lease_return_end_;
  const bool space = log_space_ == nullptr || log_space_->idle();
  if (left && space && past_->idle() && volumes_->idle() &&
      (node_log_ == nullptr || node_log_->stack().idle())) {
    return done();
  }
  loop_.after(kIdlePoll,
              [this, done = std::move(done)]() mutable { wait_until_idle(std::move(done)); });
}

void ClusterNode::stop_index(UniqueFunction<void()> done) {
  if (node_log_ != nullptr) node_log_->indexes().stop();
  // (The log once more: time has passed.)
  const bool idle =
      node_log_ == nullptr || (node_log_->indexes().idle() && node_log_->stack().idle());
  if (idle && ring_->in_flight() == 0) return done();
  loop_.after(kIdlePoll, [this, done = std::move(done)]() mutable { stop_index(std::move(done)); });
}

}  // namespace mariner::node
