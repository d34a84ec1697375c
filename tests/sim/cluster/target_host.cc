#include "tests/sim/cluster/target_host.h"

#include <utility>

namespace mariner::test {

using replication::CoordinatorHost;
using replication::CoordinatorRole;
using replication::NodeId;
using Side = SimConnection::Side;

StoragePart::StoragePart(SimNode& node, std::mt19937_64& random, StorageDisk& disk, VolumeId volume,
                         Planted planted_in, SimStorage::AskHistory ask)
    : storage(node, random, disk, planted_in, std::move(ask),
              [this](SequenceNumber durable, std::uint64_t granted) {
                host.durable(durable);
                host.granted(granted);
              }),
      host({volume, disk.promised, disk.durable}, node, storage, storage),
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
  host.received(from, std::move(message));
}

TargetHost::TargetHost(SimNode& node, std::mt19937_64& random, ClusterModel& model,
                       SimNetwork& network, manager::ClusterStore& store,
                       const manager::NodeLease& lease, const manager::ClusterView& view,
                       VolumeId volume, const Directory& directory, Planted planted)
    : node_(node),
      random_(random),
      model_(model),
      network_(network),
      lease_(lease),
      directory_(directory),
      planted_(planted),
      volume_(volume),
      election_(store, node, lease, view,
                {.volume = volume, .self = node.id(), .backoff = {.seed = node.id().value}},
                {.elected = [this](const manager::VolumeRecord& record) { elected(record); },
                 .deposed = [this] { deposed(); },
                 .failed = [this](const Error& error) { model_.violation(to_string(error)); },
                 .may_follow = [this](NodeId next) { return role().caught_up(next); }}) {}

void TargetHost::elected(const manager::VolumeRecord& record) {
  deposed();
  record_ = record;
  CoordinatorRole::Options options;
  options.limits.writes_in_flight_max = 64;
  options.void_margin = planted_ == Planted::kNumbersReused ? 0 : 64;
  options.first_grant_bytes = 100ull * kBlockBytes;
  CoordinatorHost::Transport& transport = *this;
  coordinator_ = std::make_unique<CoordinatorHost>(
      CoordinatorRole::Start{volume_, record.epoch, record.storages, node_.id()}, options, node_,
      transport,
      CoordinatorHost::Events{.ready = nullptr,
                              // Not from within what tells it.
                              .superseded =
                                  [this](Epoch) {
                                    node_.post([this, term = term_] {
                                      if (term == term_) election_.superseded();
                                    });
                                  },
                              .may_answer = [this] { return lease_.held(); }});
  connect_logger();
  for (const NodeId node : record.storages) connect_storage(node);
}

void TargetHost::deposed() {
  ++term_;
  coordinator_.reset();
  if (logger_ != nullptr) std::exchange(logger_, nullptr)->close(Side::kDialled);
  for (auto& [node, link] : storages_) {
    if (link.connection != nullptr) link.connection->close(Side::kDialled);
  }
  storages_.clear();
}

void TargetHost::connect_logger() {
  node_.after(std::chrono::milliseconds(1 + random_() % 50), [this, term = term_] {
    if (term != term_ || logger_ != nullptr) return;
    replication::LoggerHost* const logger = directory_.logger();
    const SimConnectionPtr connection =
        logger == nullptr ? nullptr : network_.connect(node_, directory_.node(record_.logger));
    if (connection == nullptr) return connect_logger();
    logger_ = connection;
    const auto heard = [this, term, connection](const replication::FromLogger& message) {
      if (term == term_ && logger_ == connection) coordinator_->received(message);
    };
    logger_id_ = logger->accept([connection, heard](const replication::FromLogger& message) {
      connection->send(Side::kAccepted, [heard, message] { heard(message); });
    });
    connection->on_closed(Side::kAccepted, [directory = &directory_, id = logger_id_] {
      if (replication::LoggerHost* host = directory->logger()) host->closed(id);
    });
    connection->on_closed(Side::kDialled, [this, term, connection] {
      if (term == term_ && logger_ == connection) logger_lost();
    });
    coordinator_->logger_connected();
  });
}

void TargetHost::logger_lost() {
  logger_.reset();
  coordinator_->logger_disconnected();
  connect_logger();
}

void TargetHost::connect_storage(NodeId to) {
  node_.after(std::chrono::milliseconds(1 + random_() % 50), [this, to, term = term_] {
    if (term != term_ || storages_.contains(to)) return;
    StoragePart* const storage = directory_.storage(to);
    const bool own = to == node_.id();
    const SimConnectionPtr connection =
        storage == nullptr || own ? nullptr : network_.connect(node_, directory_.node(to));
    if (storage == nullptr || (connection == nullptr && !own)) return connect_storage(to);
    const auto heard = [this, term, to, connection](const replication::FromStorage& message) {
      const auto link = storages_.find(to);
      if (term != term_ || link == storages_.end() || link->second.connection != connection) return;
      coordinator_->received(to, message);
    };
    StorageLink& link = storages_[to];
    link.connection = connection;
    if (own) {
      link.id = storage->host.accept([this, heard](const replication::FromStorage& message) {
        node_.post([heard, message] { heard(message); });
      });
    } else {
      link.id = storage->host.accept([connection, heard](const replication::FromStorage& message) {
        connection->send(Side::kAccepted, [heard, message] { heard(message); });
      });
      connection->on_closed(Side::kAccepted, [directory = &directory_, to, id = link.id] {
        if (StoragePart* part = directory->storage(to)) part->host.closed(id);
      });
      connection->on_closed(Side::kDialled, [this, term, to, connection] {
        const auto found = storages_.find(to);
        if (term == term_ && found != storages_.end() && found->second.connection == connection) {
          storage_lost(to);
        }
      });
    }
    coordinator_->storage_connected(to);
  });
}

void TargetHost::storage_lost(NodeId node) {
  storages_.erase(node);
  coordinator_->storage_disconnected(node);
  connect_storage(node);
}

void TargetHost::send_log(const replication::ToLogger& message) {
  if (const auto* write = std::get_if<replication::WriteMessage>(&message)) model_.stamped(*write);
  if (logger_ == nullptr) return;
  logger_->send(Side::kDialled, [directory = &directory_, id = logger_id_, message] {
    if (replication::LoggerHost* logger = directory->logger()) logger->received(id, message);
  });
}

void TargetHost::send_storage(NodeId node, const replication::ToStorage& message) {
  if (const auto* write = std::get_if<replication::WriteMessage>(&message)) model_.stamped(*write);
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

void TargetHost::reopen_log(const Error& /*why*/) {
  if (logger_ == nullptr) return;
  std::exchange(logger_, nullptr)->close(Side::kDialled);
  connect_logger();
}

void TargetHost::reopen_storage(NodeId node, const Error& /*why*/) {
  const auto link = storages_.find(node);
  if (link == storages_.end()) return;
  if (link->second.connection != nullptr) link->second.connection->close(Side::kDialled);
  storages_.erase(link);
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

bool TargetHost::read(std::uint64_t block, std::function<void(BlockValue)> done) {
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
  if (!serves()) return false;
  const VersionTime time = node_.wall_time();
  coordinator_->settle_moment(
      time, [this, time, done = std::move(done)](const Result<SequenceNumber>& settled) {
        if (settled && lease_.held()) done(time, *settled);
      });
  return true;
}

}  // namespace mariner::test
