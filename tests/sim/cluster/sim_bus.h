// The way between the nodes of the simulated cluster as it is in the daemon (server/cluster/
// peer_bus.h, caller_service.h, participant_service.h): who speaks first dials, one connection each
// way between two nodes carries all conversations as frames of bytes, and payloads that several are
// to get go by multicast, through the production's hubs.
//
// Nodes are honest: what cannot be understood, what ends a connection but the network, and a
// payload that is not the write's are violations. For one life of the node.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/cluster/planted.h"
#include "tests/sim/cluster/sim_hubs.h"
#include "tests/sim/cluster/sim_ways.h"
#include "tests/sim/cluster/storage_part.h"

namespace mariner::test {

// Of all nodes, ever.
struct BusTotals {
  std::uint64_t shared = 0;     // frames whose payload several nodes are to get
  std::uint64_t referring = 0;  // frames whose payload has gone by multicast
  std::uint64_t carried = 0;    // frames with their payload
  std::uint64_t repaired = 0;   // bytes
  std::uint64_t admitted = 0;   // times that a node took part in a stream
  std::uint64_t dismissed = 0;  // ... and did not any more
  std::uint64_t strange = 0;    // datagrams
};

class SimBus final : public SimWays, private cluster::Multicast::Connections {
 public:
  struct Cluster {
    std::mt19937_64& random;
    SimNetwork& network;
    SimMulticast& multicast;
    std::function<SimBus*(replication::NodeId)> bus;  // null: it is down
    std::function<const Directory&(VolumeId)> directory;
    std::function<void(const std::string&)> violation;
    std::function<void(const std::string&)> say;
    trm::SenderHub::Options options;
    bool group_for_all = false;  // volumes; else each has one of its own
    Planted planted = Planted::kNothing;
    BusTotals totals{};
  };

  // Both outlive it.
  SimBus(SimNode& node, Cluster& cluster);
  ~SimBus() override;
  SimBus(const SimBus&) = delete;
  SimBus& operator=(const SimBus&) = delete;

  std::unique_ptr<SimConversation> begin(const With& with, Heard heard) override;
  void coordinates(VolumeId volume, const std::vector<replication::NodeId>& others) override;
  void rests(VolumeId volume) override;

 private:
  class Conversation;
  // A connection that this node has made: conversations by channel.
  struct Dialled {
    std::uint64_t number = 0;  // never reused
    SimConnectionPtr connection;
    std::map<std::uint64_t, Heard> channels;
    SimBus* there = nullptr;
    trm::ConnectionNumber there_number{};
    trm::ReferenceCoder said{};
    bool ending = false;
  };
  // ... and one that another node has made.
  struct Spoken {
    VolumeId volume;
    bool logger = false;
    replication::ConnectionId id;
    bool asks = false;
  };
  struct Accepted {
    SimConnectionPtr connection;
    SimBus* there = nullptr;
    std::uint64_t there_number = 0;
    std::map<std::uint64_t, Spoken> channels;
    trm::ReferenceCoder heard{};
    bool ending = false;
    std::size_t handed_on_early = 0;  // where that is planted
  };

  // Of the write that was sent last: frames, and to whom first.
  struct Sent {
    VolumeId volume;
    SequenceNumber sequence;
    replication::NodeId first;
    std::uint64_t frames = 0;
    bool shared = false;
  };

  // ---- who speaks first
  Dialled* dial(replication::NodeId node);
  [[nodiscard]] Dialled* find(trm::PeerNumber node);
  void redial(replication::NodeId node);
  void gone(replication::NodeId node, std::uint64_t number);
  void send(replication::NodeId to, const replication::Envelope& envelope);
  void count(replication::NodeId to, const replication::Envelope& envelope);
  void ask(replication::NodeId to, std::uint64_t channel, const cluster::HistoryFrame& question);
  void send_frame(Dialled& to, std::string header, const PayloadSlice& payload);
  void answered(replication::NodeId from, std::uint64_t number, std::string_view header,
                Payload payload);
  // ---- who is spoken to
  trm::ConnectionNumber accept(SimConnectionPtr connection, SimBus& from,
                               std::uint64_t there_number);
  void ended(trm::ConnectionNumber number);
  void arrived(trm::ConnectionNumber from, std::string_view header, Payload payload);
  void hand_on_early(trm::ConnectionNumber from, std::string_view header, Payload payload);
  void take(trm::ConnectionNumber from, std::string_view header, Payload payload);
  void take(trm::ConnectionNumber from, std::uint64_t channel, VolumeId volume,
            replication::FromCoordinator message);
  void open(trm::ConnectionNumber from, std::uint64_t channel, VolumeId volume, bool logger);
  void tell(const Spoken& spoken, replication::FromCoordinator message);
  void close(const Spoken& spoken);
  void asked(trm::ConnectionNumber from, std::uint64_t channel,
             const cluster::HistoryFrame& question);
  void answer(trm::ConnectionNumber to, std::string header, const PayloadSlice& payload);

  // cluster::Multicast::Connections
  void send(trm::PeerNumber to, std::string header, PayloadSlice payload,
            const std::optional<trm::Reference>& reference) override;
  void tell(trm::PeerNumber to, const trm::FromSender& message) override;
  void deliver(trm::ConnectionNumber from, std::string_view header, Payload payload) override;
  void tell(trm::ConnectionNumber to, const trm::FromReceiver& message) override;
  void end(trm::ConnectionNumber connection, const Error& reason) override;
  void changed(const trm::SenderHub::Change& change) override;
  void failed(const Error& error) override { wrong(to_string(error)); }

  void wrong(const std::string& what);

  SimNode& node_;
  Cluster& cluster_;
  std::map<replication::NodeId, Dialled> dialled_;
  std::map<trm::ConnectionNumber, Accepted> accepted_;
  std::uint64_t last_dialled_ = 0;
  std::uint64_t last_accepted_ = 0;
  std::uint64_t last_channel_ = 0;
  bool delivered_ = false;              // something, since it was cleared
  std::map<VolumeId, Payload> reused_;  // where that is planted
  Sent sent_;
  SimHubs hubs_;
};

}  // namespace mariner::test
