// What this node asks of others: as the coordinator of volumes, and for their history.
//
// Each coordinator has a CoordinatorLink here, each volume whose logger is elsewhere a
// RemoteHistory. Executor's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "proto/executor.h"
#include "replication/coordinator_host.h"
#include "server/cluster/participant_service.h"
#include "server/cluster/peer_bus.h"
#include "server/cluster/remote_history.h"

namespace mariner::cluster {

class CallerService;

// The way of one coordinator to its participants: conversations on the bus with those on other
// nodes, calls to those on this one.
class CoordinatorLink final : public replication::CoordinatorHost::Transport {
 public:
  struct Participants {
    replication::NodeId logger;
    std::vector<replication::NodeId> storages;
    bool journals = false;  // the storages' journals are spoken to as well
    // Where writes go that several of them, on other nodes, are to get. Nothing: to each alone.
    std::optional<trm::Group> group{};
    // Of this node, if it is one of them.
    ParticipantService::Parts own;
  };

  // `service` outlives it.
  CoordinatorLink(CallerService& service, VolumeId volume, Participants participants);
  ~CoordinatorLink() override;  // ends the conversations
  CoordinatorLink(const CoordinatorLink&) = delete;
  CoordinatorLink& operator=(const CoordinatorLink&) = delete;

  // Begins to talk for `host`, which outlives this, or end().
  void begin(replication::CoordinatorHost& host);
  // Ends the conversations, for good. Not from within what it tells the host.
  void end();

  void send_log(replication::NodeId node, const replication::ToLogger& message) override;
  void send_storage(replication::NodeId node, const replication::ToStorage& message) override;
  void reopen_log(replication::NodeId node, const Error& why) override;
  void reopen_storage(replication::NodeId node, const Error& why) override;
  void fetch(SequenceNumber from, SequenceNumber to,
             UniqueFunction<void(Result<replication::LogSource::Portion>)> done) override;

 private:
  friend class CallerService;
  struct Conversation {
    replication::NodeId node;
    bool with_logger = false;
    std::uint64_t channel = 0;        // 0: there is none now
    replication::ConnectionId own{};  // of a participant of this node
  };
  [[nodiscard]] bool is_own(const Conversation& conversation) const;
  Conversation& with(replication::NodeId node, bool logger);
  void open(Conversation& conversation);
  void open_later(Conversation& conversation);
  void close(Conversation& conversation);
  void begin_flow(bool again);
  void reopen(Conversation& conversation, const Error& why);
  void node_up(replication::NodeId node);
  void node_down(replication::NodeId node);
  Result<void> received(std::uint64_t channel, replication::ToCoordinator message);

  CallerService& service_;
  const VolumeId volume_;
  const ParticipantService::Parts own_;
  const std::optional<trm::Group> group_;
  std::vector<std::unique_ptr<Conversation>> conversations_;
  replication::CoordinatorHost* host_ = nullptr;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class CallerService final : public BusCaller {
 public:
  CallerService(Executor& executor, replication::NodeId self) : executor_(executor), self_(self) {}

  // Before anything is asked.
  void attach(PeerBus& bus) { bus_ = &bus; }

  // The configuration knows another node of this number.
  [[nodiscard]] bool knows(replication::NodeId node) const { return bus_->knows(node); }

  // The history of a volume whose logger is on another node: as long as that is there. Nothing may
  // be under way when it is dropped.
  RemoteHistory& history(VolumeId volume, replication::NodeId logger);
  // As history(), of another storage node, for RemoteBase.
  RemoteHistory& image(VolumeId volume, replication::NodeId storage) {
    return history(volume, storage);
  }

  void node_up(replication::NodeId node) override;
  void node_down(replication::NodeId node, const Error& reason) override;
  Result<void> received(replication::NodeId from, std::uint64_t channel, VolumeId volume,
                        replication::ToCoordinator message) override;
  Result<void> received(replication::NodeId from, HistoryAnswer answer) override;
  void writable(replication::NodeId node) override;

 private:
  friend class CoordinatorLink;
  using Asked = std::pair<VolumeId, replication::NodeId>;
  void connect(replication::NodeId node, RemoteHistory& history);
  template <typename Tell>
  void for_links(Tell tell);

  Executor& executor_;
  const replication::NodeId self_;
  PeerBus* bus_ = nullptr;
  std::map<std::uint64_t, CoordinatorLink*> channels_;
  std::vector<CoordinatorLink*> links_;
  std::uint64_t last_channel_ = 0;
  std::map<replication::NodeId, std::shared_ptr<QuestionSlots>> slots_;
  std::map<Asked, std::unique_ptr<RemoteHistory>> histories_;
};

}  // namespace mariner::cluster
