#include "tests/sim/cluster/target_host.h"

#include <utility>

namespace mariner::test {

using replication::ConnectionId;
using replication::CoordinatorRole;
using replication::NodeId;
using Side = SimConnection::Side;

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
                 .failed = [this](const Error& error) { model_.violation(to_string(error)); }}) {
  tick();
}

void TargetHost::elected(const manager::VolumeRecord& record) {
  deposed();
  record_ = record;
  CoordinatorRole::Options options;
  options.limits.writes_in_flight_max = 64;
  options.void_margin = planted_ == Planted::kNumbersReused ? 0 : 64;
  options.first_grant_bytes = 100ull * kBlockBytes;
  role_ = std::make_unique<CoordinatorRole>(
      CoordinatorRole::Start{volume_, record.epoch, record.storages, node_.id()}, options);
  connect_logger();
  for (const NodeId node : record.storages) connect_storage(node);
}

void TargetHost::deposed() {
  ++term_;
  role_.reset();
  queue_.clear();
  writes_.clear();
  moments_.clear();
  if (logger_ != nullptr) std::exchange(logger_, nullptr)->close(Side::kDialled);
  for (auto& [node, link] : storages_) {
    if (link.connection != nullptr) link.connection->close(Side::kDialled);
  }
  storages_.clear();
}

void TargetHost::connect_logger() {
  node_.after(std::chrono::milliseconds(1 + random_() % 50), [this, term = term_] {
    if (term != term_) return;
    LoggerHost* const logger = directory_.logger();
    SimConnectionPtr connection =
        logger == nullptr ? nullptr : network_.connect(node_, directory_.node(record_.logger));
    if (connection == nullptr) return connect_logger();
    logger_ = connection;
    // What the logger says arrives here.
    logger_id_ =
        logger->accept(connection, [this, term, connection](replication::FromLogger message) {
          if (term != term_ || logger_ != connection) return;
          CoordinatorRole::Actions actions;
          role_->received(std::move(message), node_.wall_time(), actions);
          run(actions);
        });
    connection->on_closed(Side::kDialled, [this, term, connection] {
      if (term == term_ && logger_ == connection) logger_lost();
    });
    CoordinatorRole::Actions actions;
    role_->logger_connected(actions);
    run(actions);
  });
}

void TargetHost::logger_lost() {
  logger_.reset();
  role_->logger_disconnected();
  connect_logger();
}

void TargetHost::connect_storage(NodeId to) {
  node_.after(std::chrono::milliseconds(1 + random_() % 50), [this, to, term = term_] {
    if (term != term_) return;
    StorageHost* const storage = directory_.storage(to);
    const bool own = to == node_.id();
    SimConnectionPtr connection =
        storage == nullptr || own ? nullptr : network_.connect(node_, directory_.node(to));
    if (storage == nullptr || (connection == nullptr && !own)) return connect_storage(to);
    const auto heard = [this, term, to, connection](replication::FromStorage message) {
      const auto link = storages_.find(to);
      if (term != term_ || link == storages_.end() || link->second.connection != connection) return;
      CoordinatorRole::Actions actions;
      role_->received(to, message, node_.wall_time(), actions);
      run(actions);
    };
    StorageLink& link = storages_[to];
    link.connection = connection;
    if (own) {
      link.id = storage->accept([this, heard](replication::FromStorage message) {
        node_.post([heard, message] { heard(message); });
      });
    } else {
      link.id = storage->accept([connection, heard](replication::FromStorage message) {
        connection->send(Side::kAccepted, [heard, message] { heard(message); });
      });
      connection->on_closed(Side::kAccepted, [directory = &directory_, to, id = link.id] {
        if (StorageHost* host = directory->storage(to)) host->disconnected(id);
      });
      connection->on_closed(Side::kDialled, [this, term, to, connection] {
        const auto found = storages_.find(to);
        if (term == term_ && found != storages_.end() && found->second.connection == connection) {
          storage_lost(to);
        }
      });
    }
    CoordinatorRole::Actions actions;
    role_->storage_connected(to, actions);
    run(actions);
  });
}

void TargetHost::storage_lost(NodeId node) {
  storages_.erase(node);
  CoordinatorRole::Actions actions;
  role_->storage_disconnected(node, node_.wall_time(), actions);
  run(actions);
  connect_storage(node);
}

void TargetHost::run(CoordinatorRole::Actions& actions) {
  for (auto& action : actions) queue_.push_back(std::move(action));
  actions.clear();
  flush_later();
  if (std::exchange(running_, true)) return;
  const std::uint64_t term = term_;
  while (term == term_ && !queue_.empty()) {
    CoordinatorRole::Action action = std::move(queue_.front());
    queue_.pop_front();
    carry_out(action);
  }
  running_ = false;
}

void TargetHost::carry_out(CoordinatorRole::Action& action) {
  if (auto* log = std::get_if<CoordinatorRole::ToLog>(&action)) {
    if (const auto* write = std::get_if<replication::WriteMessage>(&log->message)) {
      model_.stamped(*write);
    }
    if (logger_ == nullptr) return;
    logger_->send(Side::kDialled,
                  [directory = &directory_, id = logger_id_, message = log->message] {
                    if (LoggerHost* logger = directory->logger()) logger->received(id, message);
                  });
  } else if (auto* store = std::get_if<CoordinatorRole::ToStore>(&action)) {
    if (const auto* write = std::get_if<replication::WriteMessage>(&store->message)) {
      model_.stamped(*write);
    }
    const auto link = storages_.find(store->node);
    if (link == storages_.end()) return;
    if (store->node == node_.id()) {
      directory_.storage(node_.id())->received(link->second.id, std::move(store->message));
      return;
    }
    link->second.connection->send(Side::kDialled, [directory = &directory_, to = store->node,
                                                   id = link->second.id, message = store->message] {
      if (StorageHost* host = directory->storage(to)) host->received(id, message);
    });
  } else if (auto* disconnect = std::get_if<CoordinatorRole::Disconnect>(&action)) {
    const auto link = storages_.find(disconnect->node);
    if (link == storages_.end()) return;
    if (link->second.connection != nullptr) link->second.connection->close(Side::kDialled);
    storage_lost(disconnect->node);
  } else if (std::holds_alternative<CoordinatorRole::DisconnectLogger>(action)) {
    if (logger_ == nullptr) return;
    logger_->close(Side::kDialled);
    logger_lost();
  } else if (std::holds_alternative<CoordinatorRole::Superseded>(action)) {
    election_.superseded();
  } else if (auto* answer = std::get_if<replication::Answer>(&action)) {
    const auto found = writes_.find(answer->token.value);
    if (found == writes_.end()) return;
    const auto done = std::move(found->second);
    writes_.erase(found);
    // An acknowledgement is not sent when the lease has ended.
    if (serves()) done(answer->result);
  } else if (auto* settled = std::get_if<replication::Settled>(&action)) {
    const auto found = moments_.find(settled->token.value);
    if (found == moments_.end()) return;
    const auto [time, done] = std::move(found->second);
    moments_.erase(found);
    if (serves()) done(time, settled->sequence);
  }
}

bool TargetHost::serves() const { return role_ != nullptr && role_->ready() && lease_.held(); }

bool TargetHost::write(BlockRange extent, std::uint64_t attempt,
                       std::function<void(const Result<replication::Stamp>&)> done) {
  if (!serves()) return false;
  const std::uint64_t token = ++tokens_;
  writes_[token] = std::move(done);
  CoordinatorRole::Actions actions;
  role_->submit({token}, sim_write(extent, attempt), node_.wall_time(), actions);
  run(actions);
  return true;
}

bool TargetHost::read(std::uint64_t block, std::function<void(BlockValue)> done) {
  StorageHost* const storage = directory_.storage(node_.id());
  if (planted_ == Planted::kReadFromMirror && !serves()) {
    done(storage->value(block));
    return true;
  }
  if (!serves() || !role_->caught_up(node_.id())) return false;
  storage->read(block, role_->writes().acknowledged(), std::move(done));
  return true;
}

bool TargetHost::open_moment(std::function<void(VersionTime, SequenceNumber)> done) {
  if (!serves()) return false;
  const std::uint64_t token = ++tokens_;
  const VersionTime time = node_.wall_time();
  moments_[token] = {time, std::move(done)};
  CoordinatorRole::Actions actions;
  role_->settle_moment({token}, time, actions);
  run(actions);
  return true;
}

void TargetHost::flush_later() {
  if (std::exchange(flushing_, true)) return;
  node_.defer([this] {
    flushing_ = false;
    if (role_ == nullptr) return;
    CoordinatorRole::Actions actions;
    role_->flush(actions);
    if (!actions.empty()) run(actions);
  });
}

void TargetHost::tick() {
  node_.after(std::chrono::milliseconds(100), [this] {
    if (role_ != nullptr) {
      CoordinatorRole::Actions actions;
      role_->tick(node_.wall_time(), node_.monotonic_time(), actions);
      run(actions);
    }
    tick();
  });
}

}  // namespace mariner::test
