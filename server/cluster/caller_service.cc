#include "server/cluster/caller_service.h"

#include <algorithm>
#include <set>
#include <utility>

#include "proto/check.h"

namespace mariner::cluster {
namespace {

using replication::Envelope;
using replication::FromCoordinator;
using replication::NodeId;

constexpr auto kReopenAfter = std::chrono::milliseconds(50);
// Whoever is asked takes all of them.
static_assert(QuestionSlots::kMost <= HistorySession::kWaitingMax);
// An interface may come up.
constexpr auto kFlowAgain = std::chrono::seconds(10);

}  // namespace

// ---- the way of one coordinator

CoordinatorLink::CoordinatorLink(CallerService& service, VolumeId volume, Participants participants)
    : service_(service), volume_(volume), own_(participants.own), group_(participants.group) {
  conversations_.push_back(
      std::make_unique<Conversation>(Conversation{participants.logger, true, 0, {}}));
  for (const NodeId node : participants.storages) {
    conversations_.push_back(std::make_unique<Conversation>(Conversation{node, false, 0, {}}));
    if (!participants.journals) continue;
    conversations_.push_back(std::make_unique<Conversation>(Conversation{node, true, 0, {}}));
  }
  service_.links_.push_back(this);
}

CoordinatorLink::~CoordinatorLink() { end(); }

void CoordinatorLink::end() {
  if (!std::exchange(*alive_, false)) return;
  for (const auto& conversation : conversations_) close(*conversation);
  if (host_ != nullptr && group_) service_.bus_->end_flow(volume_);
  std::erase(service_.links_, this);
}

void CoordinatorLink::begin(replication::CoordinatorHost& host) {
  host_ = &host;
  if (group_) begin_flow(false);
  for (const auto& conversation : conversations_) {
    if (!is_own(*conversation)) {
      const Result<void> dialled = service_.bus_->dial(conversation->node);
      CHECK_MSG(dialled.has_value(), "a volume's record names a node that is not configured");
      if (!service_.bus_->is_up(conversation->node)) continue;
    }
    open_later(*conversation);
  }
}

// What cannot go by multicast goes by the connections, which is said once.
void CoordinatorLink::begin_flow(bool again) {
  std::set<NodeId> others;
  for (const auto& conversation : conversations_) {
    if (!is_own(*conversation)) others.insert(conversation->node);
  }
  if (others.size() < 2) return;
  const Result<void> begun =
      service_.bus_->begin_flow(volume_, *group_, {others.begin(), others.end()});
  if (begun) return;
  if (!again) service_.bus_->report(begun.error());
  service_.executor_.after(kFlowAgain, [this, alive = alive_] {
    if (*alive) begin_flow(true);
  });
}

bool CoordinatorLink::is_own(const Conversation& conversation) const {
  return conversation.node == service_.self_;
}

CoordinatorLink::Conversation& CoordinatorLink::with(NodeId node, bool logger) {
  const auto found = std::ranges::find_if(conversations_, [&](const auto& each) {
    return each->with_logger == logger && each->node == node;
  });
  CHECK(found != conversations_.end());
  return **found;
}

void CoordinatorLink::open(Conversation& conversation) {
  if (conversation.channel != 0) return;
  conversation.channel = ++service_.last_channel_;
  if (is_own(conversation)) {
    // What is said comes in a turn of its own, as from elsewhere.
    const auto answer = [this, channel = conversation.channel, alive = alive_](const auto& told) {
      service_.executor_.post([this, channel, alive, message = replication::widen(told)] {
        if (*alive) (void)received(channel, message);
      });
    };
    conversation.own =
        conversation.with_logger ? own_.logger->accept(answer) : own_.storage->accept(answer);
  } else {
    service_.channels_[conversation.channel] = this;
  }
  if (conversation.with_logger) {
    host_->logger_connected(conversation.node);
  } else {
    host_->storage_connected(conversation.node);
  }
}

void CoordinatorLink::open_later(Conversation& conversation) {
  service_.executor_.after(kReopenAfter, [this, &conversation, alive = alive_] {
    if (!*alive) return;
    if (is_own(conversation) || service_.bus_->is_up(conversation.node)) open(conversation);
  });
}

void CoordinatorLink::close(Conversation& conversation) {
  const std::uint64_t channel = std::exchange(conversation.channel, 0);
  if (channel == 0) return;
  if (!is_own(conversation)) {
    service_.channels_.erase(channel);
    service_.bus_->send(conversation.node,
                        Envelope{channel, volume_, FromCoordinator(replication::CloseChannel{})});
  } else if (conversation.with_logger) {
    own_.logger->closed(conversation.own);
  } else {
    own_.storage->closed(conversation.own);
  }
}

// The host knows already. Why is worth a line: without it nobody learns what the volume waits for.
// A newer epoch is none, others say that.
void CoordinatorLink::reopen(Conversation& conversation, const Error& why) {
  if (!*alive_) return;
  if (why.code != ErrorCode::kStaleEpoch && service_.bus_ != nullptr) {
    service_.bus_->report(
        {why.code, "volume " + std::to_string(volume_.value) + ", node " +
                       std::to_string(conversation.node.value) +
                       (conversation.with_logger ? ", its log: " : ", its image: ") + why.message});
  }
  close(conversation);
  open_later(conversation);
}

void CoordinatorLink::send_log(NodeId node, const replication::ToLogger& message) {
  Conversation& logger = with(node, true);
  if (logger.channel == 0) return;
  if (is_own(logger)) return own_.logger->received(logger.own, message);
  service_.bus_->send(logger.node, Envelope{logger.channel, volume_, replication::widen(message)});
}

void CoordinatorLink::send_storage(NodeId node, const replication::ToStorage& message) {
  Conversation& storage = with(node, false);
  if (storage.channel == 0) return;
  if (is_own(storage)) return own_.storage->received(storage.own, message);
  service_.bus_->send(node, Envelope{storage.channel, volume_, replication::widen(message)});
}

void CoordinatorLink::reopen_log(NodeId node, const Error& why) { reopen(with(node, true), why); }

void CoordinatorLink::reopen_storage(NodeId node, const Error& why) {
  reopen(with(node, false), why);
}

void CoordinatorLink::fetch(SequenceNumber from, SequenceNumber to,
                            UniqueFunction<void(Result<replication::LogSource::Portion>)> done) {
  if (own_.journal == nullptr) {
    return done(Error{ErrorCode::kNotFound, "this node keeps no journal of the volume"});
  }
  own_.journal->fetch(from, to, std::move(done));
}

void CoordinatorLink::node_up(NodeId node) {
  for (const auto& conversation : conversations_) {
    if (host_ != nullptr && conversation->node == node) open(*conversation);
  }
}

void CoordinatorLink::node_down(NodeId node) {
  for (const auto& conversation : conversations_) {
    if (conversation->node != node || conversation->channel == 0) continue;
    service_.channels_.erase(std::exchange(conversation->channel, 0));
    if (conversation->with_logger) {
      host_->logger_disconnected(node);
    } else {
      host_->storage_disconnected(node);
    }
  }
}

Result<void> CoordinatorLink::received(std::uint64_t channel, replication::ToCoordinator message) {
  const auto found = std::ranges::find_if(
      conversations_, [&](const auto& each) { return each->channel == channel; });
  if (found == conversations_.end()) return {};  // it was closed meanwhile
  if ((*found)->with_logger) {
    auto told = replication::from_logger(std::move(message));
    if (!told) return told.error();
    host_->received((*found)->node, std::move(*told));
  } else {
    auto told = replication::from_storage(std::move(message));
    if (!told) return told.error();
    host_->received((*found)->node, *told);
  }
  return {};
}

// ---- all of them

RemoteHistory& CallerService::history(VolumeId volume, NodeId node) {
  std::unique_ptr<RemoteHistory>& history = histories_[{volume, node}];
  if (history == nullptr) {
    history = std::make_unique<RemoteHistory>(volume);
    CHECK_MSG(bus_->dial(node).has_value(), "who has a volume is not a configured node");
    if (bus_->is_up(node)) connect(node, *history);
  }
  return *history;
}

void CallerService::connect(NodeId node, RemoteHistory& history) {
  std::shared_ptr<QuestionSlots>& slots = slots_[node];
  if (slots == nullptr) slots = std::make_shared<QuestionSlots>();
  history.up([this, node](const HistoryFrame& frame) { return bus_->ask(node, frame); }, slots);
}

// What one is told may end others.
template <typename Tell>
void CallerService::for_links(Tell tell) {
  for (CoordinatorLink* const link : std::vector(links_)) {
    if (std::ranges::find(links_, link) != links_.end()) tell(*link);
  }
}

void CallerService::node_up(NodeId node) {
  for (auto& [asked, history] : histories_) {
    if (asked.second == node) connect(node, *history);
  }
  for_links([node](CoordinatorLink& link) { link.node_up(node); });
}

void CallerService::node_down(NodeId node, const Error& /*reason*/) {
  for_links([node](CoordinatorLink& link) { link.node_down(node); });
  for (auto& [asked, history] : histories_) {
    if (asked.second == node) history->down();
  }
}

Result<void> CallerService::received(NodeId /*from*/, std::uint64_t channel, VolumeId volume,
                                     replication::ToCoordinator message) {
  const auto found = channels_.find(channel);
  if (found == channels_.end()) return {};  // it was closed meanwhile
  if (found->second->volume_ != volume) {
    return Error{ErrorCode::kProtocol, "a node answers about another volume than it was asked"};
  }
  return found->second->received(channel, std::move(message));
}

Result<void> CallerService::received(NodeId from, HistoryAnswer answer) {
  const auto found = histories_.find({answer.volume, from});
  if (found == histories_.end()) {
    return Error{ErrorCode::kProtocol,
                 "a node answers about the history of a volume that it was "
                 "not asked for"};
  }
  return found->second->received(std::move(answer));
}

void CallerService::writable(NodeId node) {
  for (auto& [asked, history] : histories_) {
    if (asked.second == node) history->writable();
  }
}

}  // namespace mariner::cluster
