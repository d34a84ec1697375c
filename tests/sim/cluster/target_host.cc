#include "tests/sim/cluster/target_host.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::test {

using replication::CoordinatorHost;
using replication::CoordinatorRole;
using replication::NodeId;

TargetHost::TargetHost(SimNode& node, std::mt19937_64& random, ClusterModel& model, SimWays& ways,
                       manager::ClusterStore& store, const manager::NodeLease& lease,
                       const manager::ClusterView& view, VolumeId volume,
                       const Directory& directory, Planted planted, bool stores)
    : node_(node),
      random_(random),
      model_(model),
      ways_(ways),
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
  for (auto& [node, image] : images_) image.down();
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
                              .image_failed =
                                  [this](const CoordinatorRole::ImageFailed& which) {
                                    model_.image_failed(which.let_go);
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
      [this](NodeId node) -> cluster::RemoteHistory& { return images_.at(node); });
  for (const NodeId node : record.storages) images_.try_emplace(node, volume_);
  std::vector<NodeId> others = record.storages;
  others.push_back(record.logger);
  std::erase(others, node_.id());
  ways_.coordinates(volume_, others);
  connect(record.logger, true);
  if (record.away) {
    for (const NodeId node : record.storages) connect(node, true);
  }
  for (const NodeId node : record.storages) connect(node, false);
}

void TargetHost::deposed() {
  ++term_;
  current_.reset();
  for (auto& [node, image] : images_) image.down();
  coordinator_.reset();
  for (auto* links : {&logs_, &storages_}) {
    for (auto& [node, link] : *links) {
      if (link.conversation != nullptr) link.conversation->close();
    }
    links->clear();
  }
  ways_.rests(volume_);
}

bool TargetHost::is_open(bool logger, NodeId to, std::uint64_t number) {
  const auto link = links(logger).find(to);
  return link != links(logger).end() && link->second.number == number;
}

// What comes of an earlier term, or of a conversation that is over, is not heard.
SimWays::Heard TargetHost::heard(NodeId from, bool logger, std::uint64_t number) {
  const auto is_open = [=, this, term = term_] {
    return term == term_ && this->is_open(logger, from, number);
  };
  return {[=, this](replication::ToCoordinator message) {
            if (is_open()) received(from, logger, std::move(message));
          },
          [=, this](const cluster::HistoryFrame& frame) {
            if (!is_open()) return;
            auto answer = cluster::decode_answer(frame.header, received_payload(frame.payload));
            CHECK(answer.has_value() && images_.at(from).received(*std::move(answer)).has_value());
          },
          [=, this] {
            if (is_open()) lost(from, logger);
          }};
}

void TargetHost::connect(NodeId to, bool logger) {
  node_.after(std::chrono::milliseconds(1 + random_() % 50), [=, this, term = term_] {
    if (term != term_ || links(logger).contains(to)) return;
    Link link{.number = ++last_link_, .conversation = nullptr, .own = {}};
    SimWays::Heard hear = heard(to, logger, link.number);
    if (to == node_.id()) {
      const auto answer = [this, told = std::move(hear.told)](const auto& message) {
        node_.post([told, message] { told(replication::widen(message)); });
      };
      link.own =
          logger ? directory_.log(to)->accept(answer) : directory_.storage(to)->host.accept(answer);
    } else {
      const bool asks = !logger && !stores_;
      link.conversation = ways_.begin({to, volume_, logger, asks}, std::move(hear));
      if (link.conversation == nullptr) return connect(to, logger);
    }
    links(logger)[to] = std::move(link);
    if (logger) return coordinator_->logger_connected(to);
    if (!stores_) open_way(to);
    coordinator_->storage_connected(to);
  });
}

void TargetHost::received(NodeId from, bool logger, replication::ToCoordinator message) {
  if (logger) {
    auto told = replication::from_logger(std::move(message));
    CHECK(told.has_value());
    coordinator_->received(from, std::move(*told));
  } else {
    const auto told = replication::from_storage(std::move(message));
    CHECK(told.has_value());
    coordinator_->received(from, *told);
  }
}

void TargetHost::lost(NodeId node, bool logger) {
  links(logger).erase(node);
  if (logger) {
    coordinator_->logger_disconnected(node);
  } else {
    coordinator_->storage_disconnected(node);
    images_.at(node).down();
  }
  connect(node, logger);
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
  if (node == node_.id()) return directory_.log(node)->received(link->second.own, message);
  link->second.conversation->tell(replication::widen(message));
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
    return directory_.storage(node)->received(link->second.own, message);
  }
  link->second.conversation->tell(replication::widen(message));
}

// The coordinator knows already.
void TargetHost::end(NodeId node, bool logger) {
  const auto found = links(logger).find(node);
  if (found == links(logger).end()) return;
  const Link link = std::move(found->second);
  links(logger).erase(found);
  if (link.conversation != nullptr) {
    link.conversation->close();
  } else if (logger) {
    directory_.log(node)->closed(link.own);
  } else {
    directory_.storage(node)->host.closed(link.own);
  }
  if (!logger) images_.at(node).down();
  connect(node, logger);
}

void TargetHost::reopen_log(NodeId node, const Error& /*why*/) { end(node, true); }

void TargetHost::reopen_storage(NodeId node, const Error& /*why*/) { end(node, false); }

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
  images_.at(to).up([this, to](const cluster::HistoryFrame& frame) {
    const auto link = storages_.find(to);
    if (link != storages_.end()) link->second.conversation->ask(frame);
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
    images_.at(record_.storages[random_() % 2])
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
