
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include "tests/sim/cluster/cluster_machines.h"
#include "tests/sim/cluster/connection_ways.h"

namespace mariner::test {

using namespace std::chrono_literals;
using manager::VolumeRecord;
using replication::NodeId;

namespace {
constexpr auto kRun = 60s;
constexpr auto kHealing = 90s;
// Of each run, at least; it goes on until then.
constexpr std::uint64_t kFaultsMin = 10;
constexpr std::uint64_t kWritesMin = 1000;
}  // namespace

ClusterSim::ClusterSim(std::uint64_t seed, Planted planted)
    : random_(seed),
      planted_(planted),
      nodes_(planted == Planted::kReadFromAnyImage ||
                     (planted == Planted::kNothing && below(2) == 0)
                 ? kAlone
                 : kLogger),
      network_(world_, random_),
      multicast_(world_, random_, network_),
      bus_(bus_of(seed)),
      with_bus_(in_transport(planted) || seed % 2 == 0),
      cluster_(world_),
      trace_(std::getenv("MARINER_TEST_TRACE") != nullptr) {
  for (std::uint32_t node = 1; node <= nodes_; ++node) {
    machines_[node - 1] = std::make_unique<Machine>(world_, NodeId{node});
  }
  for (std::size_t i = 0; i < kVolumes; ++i) {
    auto volume = std::make_unique<Volume>();
    volume->id = {static_cast<std::uint32_t>(i + 1)};
    volume->directory.log = [this, i](NodeId node) -> replication::LoggerHost* {
      Life* life = machine(node.value).life.get();
      return life == nullptr ? nullptr : &life->loggers[i]->host;
    };
    volume->directory.source = [this, i](NodeId node) -> replication::LogSource* {
      return &machine(node.value).life->loggers[i]->log;
    };
    volume->directory.storage = [this, i](NodeId node) -> StoragePart* {
      Life* life = machine(node.value).life.get();
      return life == nullptr ? nullptr : life->storages[i].get();
    };
    volume->directory.node = [this](NodeId node) -> SimNode& { return machine(node.value).node; };
    const VolumeRecord record{volume->id, {}, {}, {kLogger}, {{1}, {2}}};
    manager::Transaction transaction;
    transaction.puts.push_back({manager::volume_key(volume->id), encode(record)});
    CHECK(cluster_.commit(transaction).has_value());
    volumes_.push_back(std::move(volume));
  }
  for (std::uint32_t node = 1; node <= nodes_; ++node) start(node);
  const std::size_t workers = 3 + below(6);
  for (std::size_t i = 0; i < workers; ++i) {
    workers_.push_back({i % kVolumes, any_target(), 0});
  }
}

// What the transport is set to is the seed's.
SimBus::Cluster ClusterSim::bus_of(std::uint64_t seed) {
  trm::SenderHub::Options options;
  constexpr std::uint64_t kWindows[] = {64u << 10, 256u << 10, 8u << 20};
  options.stream.window_bytes = kWindows[seed / 8 % std::size(kWindows)];
  options.stream.body_bytes_max = seed / 2 % 4 == 0 ? 1440 : 8940;
  options.stream.rate.bytes_per_second_max = 20e6;
  options.stream.membership.again_max = 3s;
  options.encrypted = seed / 2 % 2 == 0;
  return {.random = random_,
          .network = network_,
          .multicast = multicast_,
          .bus = [this](NodeId node) -> SimBus* {
            Life* const life = machine(node.value).life.get();
            return life == nullptr ? nullptr : life->bus;
          },
          .directory = [this](VolumeId volume) -> const Directory& {
            return volumes_[volume.value - 1]->directory;
          },
          .violation = [this](const std::string& what) { volumes_[0]->model.violation(what); },
          .say = [this](const std::string& what) { say(what); },
          .options = options,
          .group_for_all = seed / 4 % 2 == 0,
          .planted = planted_};
}

std::uint32_t ClusterSim::next_target(std::uint32_t node) const {
  do {
    node = node % nodes_ + 1;
  } while (!may_serve(node));
  return node;
}

ClusterSim::~ClusterSim() {
  for (auto& machine : machines_) {
    if (machine != nullptr) machine->life.reset();
  }
}

void ClusterSim::say(const std::string& what) {
  if (!trace_) return;
  std::printf("%10.6f %s\n", std::chrono::duration<double>(world_.monotonic_time()).count(),
              what.c_str());
}

void ClusterSim::start(std::uint32_t number) {
  Machine& one = machine(number);
  SimNode& node = one.node;
  node.start();
  one.life = std::make_unique<Life>(node, cluster_);
  Life& life = *one.life;
  if (with_bus_) {
    auto bus = std::make_unique<SimBus>(node, bus_);
    life.bus = bus.get();
    life.ways = std::move(bus);
  } else {
    life.ways = std::make_unique<ConnectionWays>(node, network_, bus_.directory);
  }
  auto faults = life.store.memory().faults();
  faults.partitioned = one.store_cut;
  life.store.memory().set_faults(faults);
  for (auto& volume : volumes_) {
    if (number == kAlone) break;
    // (Node 2's journal alone is careless, where that is planted.)
    const bool careless = planted_ == Planted::kOneJournalCounts && number == 2;
    life.loggers.push_back(std::make_unique<LoggerPart>(
        node, random_, *volume, number == kLogger ? volume->log : volume->journals[number - 1],
        careless ? Planted::kAcknowledgedBeforeFlush : planted_));
  }
  if (number == kLogger) return;
  const auto look = [this, number] {
    for (auto& target : machine(number).life->targets) target->look();
  };
  manager::NodeLease::Options lease{.key = manager::alive_key(node.id()),
                                    .value = std::to_string(number),
                                    .backoff = {.seed = number}};
  if (planted_ == Planted::kLeaseHeldTooLong) lease.margin = -10s;
  life.lease = std::make_unique<manager::NodeLease>(life.store, node, lease,
                                                    manager::NodeLease::Events{look, look});
  life.view = std::make_unique<manager::ClusterView>(
      life.store, node, std::string(manager::kClusterPrefix), BackoffTimes{.seed = number}, look);
  for (std::size_t i = 0; i < kVolumes; ++i) {
    Volume& volume = *volumes_[i];
    if (stores(number)) {
      life.storages.push_back(std::make_unique<StoragePart>(
          node, random_, volume.disks[number - 1], volume.id, planted_,
          [this, number, i](SequenceNumber from, SequenceNumber to,
                            std::function<void(const Blocks*)> answer) {
            ask_history(number, i, from, to, std::move(answer));
          }));
    }
    life.targets.push_back(std::make_unique<TargetHost>(
        node, random_, volume.model, *life.ways, life.store, *life.lease, *life.view, volume.id,
        volume.directory, planted_, stores(number)));
  }
  life.lease->start();
}

void ClusterSim::crash(std::uint32_t number) {
  Machine& one = machine(number);
  if (one.life == nullptr) return;
  one.node.crash();
  for (const auto& target : one.life->targets) reads_elsewhere_ += target->reads_elsewhere();
  one.life.reset();
  network_.crashed(one.node, below(2) == 0);
  for (auto& volume : volumes_) {
    if (number == kAlone) break;
    (number == kLogger ? volume->log : volume->journals[number - 1]).crash(random_);
  }
}

// Null: it does not answer now, or lacks something itself.
const Blocks* ClusterSim::other_image(std::uint32_t number, std::size_t volume,
                                      SequenceNumber base) {
  Machine& other = machine(3 - number);
  if (other.life == nullptr || other.node.paused()) return nullptr;
  const StorageDisk& disk = other.life->storages[volume]->storage.disk();
  return disk.durable >= base ? &disk.image : nullptr;
}

// A request to the logger over a connection of its own, again and again until it is answered.
void ClusterSim::ask_history(std::uint32_t number, std::size_t volume, SequenceNumber from,
                             SequenceNumber to, std::function<void(const Blocks*)> answer) {
  SimNode& node = machine(number).node;
  const Life& life = *machine(number).life;
  // While the logger is away, this node's journal; of what came before, the storage has all.
  if (const auto since = life.storages[volume]->storage.away_since()) {
    const LoggerPart& journal = *life.loggers[volume];
    if (from >= *since && journal.host.role().settled() >= to) {
      Blocks changed = journal.log.changed(from, to);
      std::erase_if(changed, [&](const auto& each) { return each.second.sequence <= *since; });
      node.after(1ms, [answer, changed] { answer(&changed); });
    } else {
      node.after(100ms, [this, number, volume, from, to, answer] {
        ask_history(number, volume, from, to, answer);
      });
    }
    return;
  }
  auto answered = std::make_shared<bool>(false);
  auto done = [answered, answer](const std::optional<Blocks>& changed) {
    if (!std::exchange(*answered, true)) answer(changed ? &*changed : nullptr);
  };
  const SimConnectionPtr connection = network_.connect(node, machine(kLogger).node);
  if (connection != nullptr) {
    connection->send(SimConnection::Side::kDialled, [=, this] {
      const LoggerPart& at = *machine(kLogger).life->loggers[volume];
      if (at.host.role().settled() < to) return;
      const SequenceNumber base = at.log.disk().base();
      const bool outlived = from.value > 0 && from < to && from < base;
      std::optional<Blocks> changed;
      if (!outlived || planted_ == Planted::kNotStartedOver) changed = at.log.changed(from, to);
      if (from.value == 0 && from < to && base.value > 0 && changed) {
        const Blocks* const image = other_image(number, volume, base);
        if (image == nullptr) return;
        if (planted_ != Planted::kBuiltFromLogAlone) changed->insert(image->begin(), image->end());
      }
      connection->send(SimConnection::Side::kAccepted, [done, changed] { done(changed); });
    });
  }
  node.after(500ms, [this, number, volume, from, to, answer, answered] {
    if (*answered) return;
    *answered = true;
    ask_history(number, volume, from, to, answer);
  });
}

// ---- initiators

void ClusterSim::work_later(std::size_t worker) {
  // (With the bus, which takes more than twice the work, there are fewer writes instead.)
  const auto delay = below(20) == 0 ? below(500'000) : below(with_bus_ ? 105'000 : 70'000);
  world_.after(std::chrono::microseconds(delay), [this, worker] {
    if (working_) work(worker);
  });
}

void ClusterSim::work(std::size_t worker) {
  const std::uint64_t first = below(kBlocks);
  switch (below(10)) {
    case 0: return open_moment(worker);
    case 1:
    case 2:
    case 3: return read(worker, first);
    default:
      return write(worker, {Lbn{first}, {1 + below(std::min<std::uint64_t>(6, kBlocks - first))}});
  }
}

// Until some node has answered it. Who hears nothing for a while asks the other node, as a
// multipath initiator does.
void ClusterSim::write(std::size_t number, BlockRange extent) {
  Worker& worker = workers_[number];
  Volume& volume = *volumes_[worker.volume];
  const std::uint64_t operation = ++worker.operation;
  Life* const life = machine(worker.portal).life.get();
  const std::uint64_t attempt = volume.model.begin(extent);
  const bool taken =
      life != nullptr && !machine(worker.portal).node.paused() &&
      life->targets[worker.volume]->write(
          extent, attempt,
          [this, number, operation, attempt, extent](const Result<replication::Stamp>& result) {
            Worker& asked = workers_[number];
            ClusterModel& model = volumes_[asked.volume]->model;
            if (result) {
              model.acknowledged(attempt, *result);
            } else {
              model.failed(attempt);
            }
            if (asked.operation != operation) return;  // it is asked for elsewhere by now
            ++asked.operation;
            if (result) return work_later(number);
            world_.after(10ms, [this, number, extent] { write(number, extent); });
          });
  world_.after(taken ? 1500ms : 20ms, [this, number, operation, extent] {
    Worker& asked = workers_[number];
    if (asked.operation != operation) return;
    asked.portal = next_target(asked.portal);
    write(number, extent);
  });
}

void ClusterSim::read(std::size_t number, std::uint64_t block) {
  Worker& worker = workers_[number];
  Volume& volume = *volumes_[worker.volume];
  const std::uint64_t operation = ++worker.operation;
  Life* const life = machine(worker.portal).life.get();
  const SequenceNumber at_least = volume.model.must_see(block);
  const std::uint32_t portal = worker.portal;
  const bool taken =
      life != nullptr && !machine(portal).node.paused() &&
      life->targets[worker.volume]->read(
          block, [this, number, operation, block, at_least, portal](BlockValue value) {
            Worker& asked = workers_[number];
            volumes_[asked.volume]->model.read(block, at_least, value, portal);
            if (asked.operation != operation) return;
            ++asked.operation;
            work_later(number);
          });
  world_.after(taken ? 1500ms : 20ms, [this, number, operation, block] {
    Worker& asked = workers_[number];
    if (asked.operation != operation) return;
    asked.portal = next_target(asked.portal);
    read(number, block);
  });
}

void ClusterSim::open_moment(std::size_t number) {
  Worker& worker = workers_[number];
  const std::uint64_t operation = ++worker.operation;
  Life* const life = machine(worker.portal).life.get();
  if (life != nullptr && !machine(worker.portal).node.paused()) {
    life->targets[worker.volume]->open_moment(
        [this, index = worker.volume](VersionTime time, SequenceNumber settled) {
          // The logger's index resolves the time.
          Volume& volume = *volumes_[index];
          // What the logger has lost meanwhile nobody can open.
          if (volume.log_is_lost() || time <= volume.log.begun_time) return;
          const LoggedWrites& log = volume.log.writes;
          auto after = log.upper_bound(settled);
          while (after != log.begin() && std::prev(after)->second.stamp.time > time) --after;
          const bool none = after == log.begin();
          volume.model.opened(time, none ? volume.log.begun : std::prev(after)->first);
        });
  }
  if (worker.operation != operation) return;
  ++worker.operation;
  work_later(number);
}

// ---- the run

std::string ClusterSim::restless() {
  for (std::size_t i = 0; i < kVolumes; ++i) {
    const TargetHost* coordinates = nullptr;
    for (std::uint32_t node = 1; node <= nodes_; ++node) {
      if (!may_serve(node)) continue;
      const TargetHost& target = *machine(node).life->targets[i];
      if (target.coordinates()) coordinates = &target;
    }
    if (coordinates == nullptr) return "nobody coordinates";
    if (coordinates->role().away()) return "the logger is away";
    for (std::uint32_t node = 1; node <= 2; ++node) {
      if (!machine(node).life->storages[i]->storage.applied()) return "an image is not written";
    }
    const auto& writes = coordinates->role().writes();
    if (writes.in_flight() > 0 || writes.waiting() > 0) return "writes are under way";
    for (std::uint32_t node = 1; node <= 2; ++node) {
      if (!coordinates->role().caught_up({node}) ||
          machine(node).life->storages[i]->host.role().committed() < writes.settled()) {
        return "node " + std::to_string(node) + " is behind";
      }
    }
    if (writes.frontier() < writes.settled()) return "the frontier is behind";
  }
  return {};
}

std::string ClusterSim::settle_and_check() {
  for (auto left = kHealing; left > 0s && !restless().empty(); left -= 1s) world_.advance(1s);
  const std::string restless_still = restless();
  for (auto& volume : volumes_) {
    if (!restless_still.empty()) {
      volume->model.violation("no rest when all is well again: " + restless_still);
    }
    LoggedWrites history = volume->lost;
    history.insert(volume->log.writes.begin(), volume->log.writes.end());
    volume->model.check_log(history);
    for (std::uint32_t node = 1; node <= 2; ++node) {
      volume->model.check_image(node, volume->disks[node - 1].image, history);
    }
    if (volume->model.violation()) {
      return "volume " + std::to_string(volume->id.value) + ": " + *volume->model.violation();
    }
  }
  return {};
}

std::uint64_t ClusterSim::acknowledged() const {
  std::uint64_t sum = 0;
  for (const auto& volume : volumes_) sum += volume->model.acknowledged_count();
  return sum;
}

void ClusterSim::add_bus(Totals& totals) {
  if (!with_bus_) return;
  ++totals.runs_with_bus;
  totals.bus.shared += bus_.totals.shared;
  totals.bus.referring += bus_.totals.referring;
  totals.bus.carried += bus_.totals.carried;
  totals.bus.repaired += bus_.totals.repaired;
  totals.bus.admitted += bus_.totals.admitted;
  totals.bus.dismissed += bus_.totals.dismissed;
  for (const auto& machine : machines_) {
    if (machine != nullptr && machine->life != nullptr) machine->life.reset();
  }
  totals.bus.strange += bus_.totals.strange;
}

std::string ClusterSim::run(Totals& totals) {
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) work_later(worker);
  fault_later();
  if (with_bus_) multicast_.disturb_later();
  world_.advance(kRun);
  while (faults_ < kFaultsMin || acknowledged() < kWritesMin) world_.advance(1s);
  heal();
  // Some more work, so that whoever was away is spoken to again.
  world_.advance(5s);
  working_ = false;
  std::string violated = settle_and_check();
  ++totals.runs;
  totals.acknowledged += acknowledged();
  for (const auto& volume : volumes_) {
    totals.reads += volume->model.reads();
    totals.moments += volume->model.moments();
    totals.epochs += volume->log.promised.value;
    totals.times_away += volume->model.times_away();
    totals.acknowledged_away += volume->model.acknowledged_away();
    totals.images_let_go += volume->model.images_let_go();
    totals.images_failed += volume->model.images_failed();
  }
  for (const auto& machine : machines_) {
    if (machine == nullptr || machine->life == nullptr) continue;
    for (const auto& target : machine->life->targets) reads_elsewhere_ += target->reads_elsewhere();
  }
  totals.reads_elsewhere += reads_elsewhere_;
  totals.faults += faults_;
  totals.logs_lost += logs_lost_;
  totals.disks_replaced += disks_replaced_;
  totals.journals_replaced += journals_replaced_;
  totals.given_up += given_up_;
  add_bus(totals);
  totals.seconds += static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(world_.monotonic_time()).count());
  return violated;
}

}  // namespace mariner::test
