#include "tests/sim/cluster/target_host.h"

#include <algorithm>
#include <utility>

namespace mariner::test {

using replication::CoordinatorHost;
using replication::CoordinatorRole;
using replication::NodeId;
using Side = SimConnection::Side;

StoragePart::StoragePart(SimNode& node, std::mt19937_64& random, StorageDisk& disk, VolumeId volume,
                         Planted planted_in, SimStorage::AskHistory ask)
    : storage(
          node, random, disk, planted_in, std::move(ask),
          [this](SequenceNumber durable, std::uint64_t granted) {
            host.durable(durable);
            host.granted(granted);
            reads.look();
          },
          [this] { host.outlived(); }),
      host({volume, disk.promised, disk.durable, disk.spill ? disk.spill->kept : SequenceNumber{}},
           node, storage, storage),
      reads(node, storage, host),
      planted(planted_in) {
  host.granted(SimStorage::kLagBytesMax);
}

void StoragePart::received(replication::ConnectionId from, replication::ToStorage message) {
  if (planted == Planted::kEpochNotChecked && host.role().heard() != from) {
    if (auto* write = std::get_if<replication::WriteMessage>(&message)) {
      storage.prepare(*write);
      return;
    }
  }
  if (auto* resume = std::get_if<replication::Resume>(&message);
      resume != nullptr && planted == Planted::kNotStartedOver) {
    resume->start_over = false;
  }
  host.received(from, std::move(message));
  reads.look();
}

TargetHost::TargetHost(SimNode& node, std::mt19937_64& random, ClusterModel& model,
                       SimNetwork& network, manager::ClusterStore& store,
                       const manager::NodeLease& lease, const manager::ClusterView& view,
                       VolumeId volume, const Directory& directory, Planted planted, bool stores)
    : node_(node),
      random_(random),
      model_(model),
      network_(network),
      lease_(lease),
      directory_(directory),
      planted_(planted),
      stores_(stores),
      volume_(volume),
      election_(store, node, lease, view,
                {.volume = volume, .self = node.id(), .backoff = {.seed = node.id().value}},
                {.elected = [this](const manager::VolumeRecord& record) { elected(record); },
                 .deposed = [this] { deposed(); },
                 .failed = [this](const Error& error) { model_.violation(to_string(error)); },
                 .may_follow =
                     [this](NodeId next) {
                       const bool image = std::ranges::count(record_.storages, next) > 0;
                       return image ? role().caught_up(next)
                                    : !role().away() && role().reads_from().has_value();
                     }}) {}

TargetHost::~TargetHost() {
  current_.reset();
  for (auto& [node, way] : ways_) way.down();
}

void TargetHost::elected(const manager::VolumeRecord& record) {
  deposed();
  record_ = record;
  model_.began(record.away);
  CoordinatorRole::Options options;
  options.limits.writes_in_flight_max = 64;
  options.void_margin = planted_ == Planted::kNumbersReused ? 0 : 64;
  options.first_grant_bytes = 100ull * kBlockBytes;
  options.logger_patience = std::chrono::milliseconds(1500);
  options.return_near = 20;
  options.absent_max = std::chrono::seconds(4);
  CoordinatorHost::Transport& transport = *this;
  coordinator_ = std::make_unique<CoordinatorHost>(
      CoordinatorRole::Start{volume_, record.epoch, record.storages,
                             stores_ ? node_.id() : NodeId{}, record.logger, record.away},
      options, node_, transport,
      CoordinatorHost::Events{.ready = nullptr,
                              // Not from within what tells it.
                              .superseded =
                                  [this](Epoch) {
                                    node_.post([this, term = term_] {
                                      if (term == term_) election_.superseded();
                                    });
                                  },
                              .may_answer = [this] { return lease_.held(); },
                              // (Nor this.)
                              .change_logs =
                                  [this](std::optional<replication::LogAway> away) {
                                    node_.post([this, away, term = term_] {
                                      if (term == term_) election_.change_logs(away);
                                    });
                                  },
                              // (Nor this.)
                              .hand_over =
                                  [this](NodeId to) {
                                    node_.post([this, to, term = term_] {
                                      if (term == term_) election_.hand_over(to);
                                    });
                                  }});
  current_ = std::make_unique<cluster::RemoteCurrent>(
      *coordinator_, node_,
      [this](NodeId node) -> cluster::RemoteHistory& { return ways_.at(node); });
  for (const NodeId node : record.storages) ways_.try_emplace(node, volume_);
  connect_log(record.logger);
  if (record.away) {
    for (const NodeId node : record.storages) connect_log(node);
  }
  for (const NodeId node : record.storages) connect_storage(node);
}

void TargetHost::deposed() {
  ++term_;
  current_.reset();
  for (auto& [node, way] : ways_) way.down();
  coordinator_.reset();
  for (auto* links : {&logs_, &storages_}) {
    for (auto& [node, link] : *links) {
      if (link.connection != nullptr) link.connection->close(Side::kDialled);
    }
    links->clear();
  }
}

// `find` gives the other side's host, or null: it is not there now.
template <typename Message, typename Find>
void TargetHost::connect(Links links, NodeId to, Find find, Joined joined, Lost lost) {
  node_.after(std::chrono::milliseconds(1 + random_() % 50), [=, this, term = term_] {
    if (term != term_ || (this->*links).contains(to)) return;
    auto* const host = find(to);
    const bool own = to == node_.id();
    const SimConnectionPtr connection =
        host == nullptr || own ? nullptr : network_.connect(node_, directory_.node(to));
    if (host == nullptr || (connection == nullptr && !own)) {
      return connect<Message>(links, to, find, joined, lost);
    }
    const auto is_open = [=, this, number = ++last_link_] {
      const auto link = (this->*links).find(to);
      return term == term_ && link != (this->*links).end() && link->second.number == number;
    };
    const auto heard = [=, this](const Message& message) {
      if (is_open()) coordinator_->received(to, message);
    };
    Link& link = (this->*links)[to];
    link.number = last_link_;
    link.connection = connection;
    if (own) {
      link.id = host->accept([this, heard](const Message& message) {
        node_.post([heard, message] { heard(message); });
      });
    } else {
      link.id = host->accept([connection, heard](const Message& message) {
        connection->send(Side::kAccepted, [heard, message] { heard(message); });
      });
      connection->on_closed(Side::kAccepted, [find, to, id = link.id] {
        if (auto* there = find(to)) there->closed(id);
      });
      connection->on_closed(Side::kDialled, [=, this] {
        if (is_open()) (this->*lost)(to);
      });
    }
    if (links == &TargetHost::storages_ && !stores_) open_way(to);
    (coordinator_.get()->*joined)(to);
  });
}

void TargetHost::connect_log(NodeId to) {
  connect<replication::FromLogger>(
      &TargetHost::logs_, to,
      [directory = &directory_](NodeId node) { return directory->log(node); },
      &CoordinatorHost::logger_connected, &TargetHost::log_lost);
}

void TargetHost::connect_storage(NodeId to) {
  connect<replication::FromStorage>(
      &TargetHost::storages_, to,
      [directory = &directory_](NodeId node) {
        StoragePart* const part = directory->storage(node);
        return part == nullptr ? nullptr : &part->host;
      },
      &CoordinatorHost::storage_connected, &TargetHost::storage_lost);
}

void TargetHost::log_lost(NodeId node) {
  logs_.erase(node);
  coordinator_->logger_disconnected(node);
  connect_log(node);
}

void TargetHost::storage_lost(NodeId node) {
  storages_.erase(node);
  coordinator_->storage_disconnected(node);
  ways_.at(node).down();
  connect_storage(node);
}

void TargetHost::send_log(NodeId node, const replication::ToLogger& message) {
  const auto* write = std::get_if<replication::WriteMessage>(&message);
  if (write != nullptr && write->write.kind == replication::WriteKind::kRollback) {
    if (planted_ == Planted::kNotTakenBack) {
      const SequenceNumber number = write->stamp.sequence;
      return send_log(node, replication::VoidMessage{volume_, write->stamp.epoch, number, number});
    }
  } else if (write != nullptr && !(record_.away && node == record_.logger)) {
    model_.stamped(*write);
  }
  if (write != nullptr) model_.told_frontier(write->frontier);
  if (const auto* frontier = std::get_if<replication::FrontierMessage>(&message)) {
    model_.told_frontier(frontier->frontier);
  }
  const auto link = logs_.find(node);
  if (link == logs_.end()) return;
  if (node == node_.id()) return directory_.log(node)->received(link->second.id, message);
  link->second.connection->send(Side::kDialled,
                                [directory = &directory_, node, id = link->second.id, message] {
                                  if (replication::LoggerHost* log = directory->log(node))
                                    log->received(id, message);
                                });
}

void TargetHost::fetch(SequenceNumber from, SequenceNumber to,
                       UniqueFunction<void(Result<replication::LogSource::Portion>)> done) {
  directory_.source(node_.id())->fetch(from, to, std::move(done));
}

void TargetHost::send_storage(NodeId node, const replication::ToStorage& message) {
  if (const auto* write = std::get_if<replication::WriteMessage>(&message)) model_.stamped(*write);
  const auto* resume = std::get_if<replication::Resume>(&message);
  if (resume != nullptr && resume->start_over) model_.told_frontier(role().writes().frontier());
  const auto link = storages_.find(node);
  if (link == storages_.end()) return;
  if (node == node_.id()) {
    directory_.storage(node)->received(link->second.id, message);
    return;
  }
  link->second.connection->send(Side::kDialled,
                                [directory = &directory_, node, id = link->second.id, message] {
                                  if (StoragePart* part = directory->storage(node))
                                    part->received(id, message);
                                });
}

void TargetHost::reopen_log(NodeId node, const Error& /*why*/) {
  const auto link = logs_.find(node);
  if (link == logs_.end()) return;
  if (link->second.connection != nullptr) {
    link->second.connection->close(Side::kDialled);
  } else {
    directory_.log(node)->closed(link->second.id);
  }
  logs_.erase(link);
  connect_log(node);
}

void TargetHost::reopen_storage(NodeId node, const Error& /*why*/) {
  const auto link = storages_.find(node);
  if (link == storages_.end()) return;
  if (link->second.connection != nullptr) {
    link->second.connection->close(Side::kDialled);
  } else {
    directory_.storage(node)->host.closed(link->second.id);
  }
  storages_.erase(link);
  ways_.at(node).down();
  connect_storage(node);
}

bool TargetHost::write(BlockRange extent, std::uint64_t attempt,
                       std::function<void(const Result<replication::Stamp>&)> done) {
  if (!serves()) return false;
  coordinator_->submit(sim_write(extent, attempt),
                       [done = std::move(done)](const Result<replication::Stamp>& result) {
                         // Then the initiator hears nothing: its path is gone.
                         if (!result && result.error().code == ErrorCode::kUnavailable) return;
                         done(result);
                       });
  return true;
}

// Questions travel with the conversation.
void TargetHost::open_way(NodeId to) {
  const Link& link = storages_.at(to);
  const auto is_open = [this, to, term = term_, connection = link.connection] {
    const auto now = storages_.find(to);
    return term == term_ && now != storages_.end() && now->second.connection == connection;
  };
  directory_.storage(to)->reads.connected(
      link.id,
      [this, to, is_open, connection = link.connection](const cluster::HistoryFrame& frame) {
        connection->send(Side::kAccepted, [this, to, is_open, frame] {
          if (!is_open()) return;
          auto answer = cluster::decode_answer(frame.header, received_payload(frame.payload));
          CHECK(answer.has_value() && ways_.at(to).received(*std::move(answer)).has_value());
        });
      });
  ways_.at(to).up([directory = &directory_, to, connection = link.connection,
                   id = link.id](const cluster::HistoryFrame& frame) {
    connection->send(Side::kDialled, [directory, to, id, frame] {
      if (StoragePart* part = directory->storage(to)) part->reads.asked(id, frame);
    });
    return true;
  });
}

// As LiveVolume reads.
bool TargetHost::read_elsewhere(std::uint64_t block, std::function<void(BlockValue)> done) {
  if (!serves() || !role().reads_from()) return false;
  const auto answer = [this, done = std::move(done)](const Result<PayloadSlice>& read) {
    // (Otherwise the initiator hears nothing: its path is gone.)
    if (!read) return;
    ++reads_elsewhere_;
    done(value_of(*read));
  };
  if (planted_ == Planted::kReadFromAnyImage) {
    const Payload to = Payload::allocate(kBlockBytes);
    Payload filled = to;
    ways_.at(record_.storages[random_() % 2])
        .read_current({Lbn{block}, {1}}, {}, record_.epoch, filled.bytes(),
                      [answer, to](const Result<void>& read) {
                        if (read) answer(PayloadSlice{to, 0, kBlockBytes});
                      });
    return true;
  }
  const auto ask = [this, term = term_, block, answer] {
    if (term == term_) current_->read({Lbn{block}, {1}}, answer);
  };
  const auto& writes = coordinator_->coordinator();
  if (writes.acknowledged() <= writes.settled()) {
    ask();
  } else {
    coordinator_->settle([ask](SequenceNumber) { ask(); });
  }
  return true;
}

bool TargetHost::read(std::uint64_t block, std::function<void(BlockValue)> done) {
  if (!stores_) return read_elsewhere(block, std::move(done));
  SimStorage& storage = directory_.storage(node_.id())->storage;
  if (planted_ == Planted::kReadFromMirror && !serves()) {
    done(storage.value(block));
    return true;
  }
  if (!serves() || !role().caught_up(node_.id())) return false;
  storage.read(block, coordinator_->coordinator().acknowledged(), std::move(done));
  return true;
}

bool TargetHost::open_moment(std::function<void(VersionTime, SequenceNumber)> done) {
  if (!serves() || role().away()) return false;
  const VersionTime time = node_.wall_time();
  coordinator_->settle_moment(
      time, [this, time, done = std::move(done)](const Result<SequenceNumber>& settled) {
        if (settled && lease_.held()) done(time, *settled);
      });
  return true;
}

}  // namespace mariner::test
