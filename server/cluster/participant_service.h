// What this node is for the coordinators of other nodes: the logger or a storage node of volumes,
// and where the history is asked.
//
// A conversation is a channel of a connection, and begins with an opening message, which says whom
// it is for. Executor's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "proto/executor.h"
#include "replication/logger_host.h"
#include "replication/storage_host.h"
#include "server/cluster/history_session.h"
#include "server/cluster/peer_bus.h"
#include "server/volume/history.h"

namespace mariner::cluster {

class ParticipantService final : public BusServer {
 public:
  // What this node has of a volume; null: that, others have. All outlive their time here.
  struct Parts {
    replication::LoggerHost* logger = nullptr;  // or of its journal
    replication::StorageHost* storage = nullptr;
    volume::History* history = nullptr;
    volume::Base* image = nullptr;              // for what other storage nodes lack
    CurrentSource* current = nullptr;           // for a coordinator that stores nothing
    replication::LogSource* journal = nullptr;  // for the logger, when it returns
  };
  // Of one connection: as many volumes, and a few that are being opened anew.
  static constexpr std::size_t kChannelsMax = 4096;

  // Before anybody can be connected.
  void attach(PeerBus& bus) { bus_ = &bus; }

  void add(VolumeId volume, const Parts& parts) { volumes_[volume] = parts; }
  // Conversations about it end. What is under way at its parts is not.
  void remove(VolumeId volume);

  void peer_connected(PeerId peer, replication::NodeId node) override;
  void peer_closed(PeerId peer) override;
  Result<void> received(PeerId from, std::uint64_t channel, VolumeId volume,
                        replication::FromCoordinator message) override;
  Result<void> received(PeerId from, HistoryQuestion question) override;
  void writable(PeerId peer) override;

 private:
  struct Conversation {
    VolumeId volume;
    bool with_logger = false;
    replication::ConnectionId id;
  };
  struct Peer {
    std::map<std::uint64_t, Conversation> channels;
    std::unique_ptr<HistorySession> history;
  };

  Result<void> open(PeerId from, Peer& peer, std::uint64_t channel, VolumeId volume,
                    replication::FromCoordinator message);
  Result<void> tell(const Conversation& conversation, replication::FromCoordinator message);
  void end(const Conversation& conversation);

  PeerBus* bus_ = nullptr;
  std::map<VolumeId, Parts> volumes_;
  std::map<PeerId, Peer> peers_;
  // Across a node's connections, one after the other.
  std::map<replication::NodeId, std::shared_ptr<HistorySession::Node>> nodes_;
};

}  // namespace mariner::cluster
