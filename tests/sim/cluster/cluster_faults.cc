// What goes wrong in the simulated cluster, and how all is well again.
#include <algorithm>

#include "tests/sim/cluster/cluster_machines.h"

namespace mariner::test {

using namespace std::chrono_literals;
using manager::VolumeRecord;
using replication::NodeId;

void ClusterSim::fault_later() {
  world_.after(std::chrono::milliseconds(200 + below(4500)), [this] {
    if (!faulty_) return;
    fault();
    fault_later();
  });
}

void ClusterSim::fault() {
  ++faults_;
  const std::uint32_t node = 1 + static_cast<std::uint32_t>(below(nodes_));
  const std::uint32_t other =
      1 + (node - 1 + 1 + static_cast<std::uint32_t>(below(nodes_ - 1))) % nodes_;
  Machine& one = machine(node);
  const auto lasts = std::chrono::milliseconds(
      below(3) == 0 ? below(300) : (below(2) == 0 ? 300 + below(2500) : 3000 + below(9000)));
  const std::string at = " node " + std::to_string(node);
  switch (below(16)) {
    case 0:
    case 1:
    case 2:
      say("crash of" + at);
      crash(node);
      if (node == kLogger) lose_logs();
      if (stores(node) && below(3) == 0) replace_disks(node);
      world_.after(lasts, [this, node] {
        if (machine(node).life == nullptr) {
          say("start of node " + std::to_string(node));
          start(node);
        }
      });
      return;
    case 3:
    case 4:
      say("partition of" + at + " from " + std::to_string(other));
      network_.partition(one.node, machine(other).node);
      world_.after(lasts,
                   [this, node, other] { network_.heal(machine(node).node, machine(other).node); });
      return;
    case 5:
      say("isolation of" + at);
      for (std::uint32_t peer = 1; peer <= nodes_; ++peer) {
        if (peer == node) continue;
        network_.partition(one.node, machine(peer).node);
        world_.after(lasts,
                     [this, node, peer] { network_.heal(machine(node).node, machine(peer).node); });
      }
      [[fallthrough]];
    case 6: {
      say("store cut off from" + at);
      const auto cut = [this, node](bool yes) {
        Machine& cut_one = machine(node);
        cut_one.store_cut = yes;
        if (cut_one.life == nullptr) return;
        auto faults = cut_one.life->store.memory().faults();
        faults.partitioned = yes;
        cut_one.life->store.memory().set_faults(faults);
      };
      cut(true);
      world_.after(lasts, [cut] { cut(false); });
      return;
    }
    case 7:
      if (one.life == nullptr || one.node.paused()) return;
      say("pause of" + at);
      one.node.pause();
      world_.after(lasts, [this, node] { machine(node).node.resume(random_); });
      return;
    case 8:
      say("resets between" + at + " and " + std::to_string(other));
      network_.reset(one.node, machine(other).node);
      return;
    case 9: {
      const std::uint32_t where = below(3) == 0 && node != kAlone ? node : kLogger;
      Life* logger = machine(where).life.get();
      if (logger == nullptr) return;
      say("log trouble at node " + std::to_string(where));
      SimLog& log = logger->loggers[below(kVolumes)]->log;
      if (below(2) == 0) {
        log.set_faults({.fail_writes = 1 + static_cast<unsigned>(below(3)), .hangs = false});
      } else {
        log.set_faults({.fail_writes = 0, .hangs = true});
        machine(where).node.after(lasts, [&log] { log.set_faults({}); });
      }
      return;
    }
    case 10: {
      if (one.life == nullptr || one.life->lease == nullptr || one.node.paused()) return;
      say("node " + std::to_string(node) + " gives its lease back");
      if (below(2) == 0) {
        // What it has sent may arrive when others coordinate.
        network_.partition(one.node, machine(other).node);
        world_.after(std::chrono::milliseconds(below(2000)), [this, node, other] {
          network_.heal(machine(node).node, machine(other).node);
        });
      }
      one.life->lease->stop([] {});
      one.node.after(lasts, [&lease = *one.life->lease] { lease.start(); });
      return;
    }
    case 11: {
      Life* life = machine(1 + static_cast<std::uint32_t>(below(2))).life.get();
      if (life == nullptr) return;
      say("a slow image");
      SimStorage& storage = life->storages[below(kVolumes)]->storage;
      storage.set_slow(true);
      machine(life == machine(1).life.get() ? 1 : 2).node.after(lasts, [&storage] {
        storage.set_slow(false);
      });
      return;
    }
    case 12: {
      const VolumeId volume = volumes_[below(kVolumes)]->id;
      const NodeId wanted{any_target()};
      say("node " + std::to_string(wanted.value) + " is wanted");
      const std::string key = manager::volume_key(volume);
      VolumeRecord record = *manager::decode_volume_record(volume, cluster_.get(key).entry->value);
      record.wanted = wanted;
      manager::Transaction transaction{.puts = {{key, encode(record)}}};
      CHECK(cluster_.commit(transaction).has_value());
      return;
    }
    case 13: {
      Volume& volume = *volumes_[below(kVolumes)];
      volume.log.give_up();
      say("the log of volume " + std::to_string(volume.id.value) +
          " gives up what is at or below #" + std::to_string(volume.log.given_up.value));
      ++given_up_;
      return;
    }
    case 14: {
      const std::uint32_t where = 1 + static_cast<std::uint32_t>(below(2));
      Life* life = machine(where).life.get();
      if (life == nullptr) return;
      say("the disk of an image fails at node " + std::to_string(where));
      SimStorage& storage = life->storages[below(kVolumes)]->storage;
      storage.set_failing(true);
      machine(where).node.after(lasts, [&storage] { storage.set_failing(false); });
      return;
    }
    default: {
      say("clock of" + at);
      one.node.set_wall_skew(std::chrono::milliseconds(below(20'000)));
      if (one.life == nullptr) return;
      auto faults = one.life->store.memory().faults();
      (below(2) == 0 ? faults.lose_answers : faults.lose_requests) =
          1 + static_cast<unsigned>(below(2));
      one.life->store.memory().set_faults(faults);
    }
  }
}

// Of volumes that went on without it, and as long as it has heard nothing of that: nobody may rely
// on what it has.
void ClusterSim::lose_logs() {
  for (auto& volume : volumes_) {
    const auto entry = cluster_.get(manager::volume_key(volume->id)).entry;
    if (!entry || below(2) == 0) continue;
    const VolumeRecord record = *manager::decode_volume_record(volume->id, entry->value);
    if (!record.away || volume->log.last() > record.away->used) continue;
    const SequenceNumber since = record.away->since;
    const bool kept = (volume->disks[0].has() >= since &&
                       volume->model.all_acknowledged_in(volume->journals[0].writes, since)) ||
                      (volume->disks[1].has() >= since &&
                       volume->model.all_acknowledged_in(volume->journals[1].writes, since));
    if (!kept) continue;
    say("the log of volume " + std::to_string(volume->id.value) + " is lost");
    for (const auto& [sequence, write] : volume->log.writes) {
      if (sequence <= since) volume->lost[sequence] = write;
    }
    volume->log = LoggerDisk{};
    ++logs_lost_;
  }
}

// Of volumes whose every acknowledged write is elsewhere: the node's images and journals are blank.
void ClusterSim::replace_disks(std::uint32_t node) {
  for (std::size_t i = 0; i < kVolumes; ++i) {
    Volume& volume = *volumes_[i];
    if (below(2) == 0 || !may_lose(volume, i, node)) continue;
    say("the disks of node " + std::to_string(node) + " for volume " +
        std::to_string(volume.id.value) + " are replaced");
    const auto entry = cluster_.get(manager::volume_key(volume.id)).entry;
    const VolumeRecord record = *manager::decode_volume_record(volume.id, entry->value);
    volume.disks[node - 1] = StorageDisk{};
    LoggerDisk& journal = volume.journals[node - 1];
    journal = LoggerDisk{};
    ++disks_replaced_;
    if (!record.away) continue;
    if (!volume.model.all_acknowledged_in(journal.writes, record.away->since)) ++journals_replaced_;
    if (planted_ != Planted::kEmptyJournalCounts) continue;
    for (SequenceNumber s{1}; s <= record.away->since.next(); s = s.next()) journal.voids.insert(s);
  }
}

bool ClusterSim::may_lose(const Volume& volume, std::size_t index, std::uint32_t node) {
  const StorageDisk& image = volume.disks[2 - node];
  const LoggerDisk& journal = volume.journals[2 - node];
  // What the log may have given up soon, the other image is to have.
  SequenceNumber base = std::max(volume.log.base(), volume.model.frontier());
  for (std::uint32_t other = 1; other <= nodes_; ++other) {
    const Life* const life = machine(other).life.get();
    if (!may_serve(other) || life == nullptr || !life->targets[index]->coordinates()) continue;
    const replication::CoordinatorRole& role = life->targets[index]->role();
    base = std::max(base, role.writes().frontier());
    // Of one that was given up counts what was heard last, whatever it has by now: it is built anew
    // when it is back, and this one is what from.
    if (role.durable_at({3 - node}) < role.writes().frontier()) return false;
    // The other one may be given up, if it is away, before anybody knows that this one is lost.
    if (!role.caught_up({3 - node})) base = std::max(base, role.durable_at({node}));
  }
  if (image.durable < base) return false;
  const auto entry = cluster_.get(manager::volume_key(volume.id)).entry;
  const VolumeRecord record = *manager::decode_volume_record(volume.id, entry->value);
  if (!record.away) return true;
  const SequenceNumber since = record.away->since;
  if (volume.log_is_lost() && image.has() < since) return false;
  return volume.model.all_acknowledged_in(journal.writes, since);
}

void ClusterSim::heal() {
  say("heal");
  faulty_ = false;
  multicast_.heal();
  for (std::uint32_t a = 1; a <= nodes_; ++a) {
    for (std::uint32_t b = a + 1; b <= nodes_; ++b) network_.heal(machine(a).node, machine(b).node);
    Machine& one = machine(a);
    one.store_cut = false;
    if (could_not_keep(a)) crash(a);
    if (one.life == nullptr) start(a);
    if (one.node.paused()) one.node.resume(random_);
    one.life->store.memory().set_faults({});
    for (auto& logger : one.life->loggers) logger->log.set_faults({});
    for (auto& part : one.life->storages) {
      part->storage.set_slow(false);
      part->storage.set_failing(false);
    }
  }
  // Writes that were under way may have failed since.
  world_.after(1s, [this] {
    for (std::uint32_t a = 1; a <= nodes_; ++a) {
      if (!could_not_keep(a)) continue;
      crash(a);
      start(a);
    }
  });
}

// A log that could not keep what it was sent is used again after a restart.
bool ClusterSim::could_not_keep(std::uint32_t number) {
  const Life* const life = machine(number).life.get();
  return life != nullptr && std::ranges::any_of(life->loggers, [](const auto& logger) {
           return logger->host.role().failed();
         });
}

}  // namespace mariner::test
