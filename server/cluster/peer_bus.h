// The way between the nodes of a cluster: which frame goes to whom, and what it is.
//
// Who coordinates a volume, or asks for its history, dials; the other answers on the same
// connection. So between two nodes there may be a connection each way, and each belongs to who
// dialled it. The first byte of a header says what follows: a message of the protocol
// (replication/wire.h), a question about the history, or an answer (history_wire.h). With multicast
// a message may have a reference in place of its payload (trm-multicast/PROTOCOL.md); who hears it
// does not notice.
//
// What cannot be understood, and what would have to wait beyond the connection's bound, ends the
// connection; both ends then begin anew. Executor's thread. Nothing is called from within a call to
// the bus, but for what send functions say.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replication/wire.h"
#include "server/cluster/history_wire.h"
#include "server/cluster/multicast.h"
#include "server/peer/link.h"
#include "server/peer/listener.h"

namespace mariner::cluster {

struct PeerAddress {
  replication::NodeId id;
  std::string name;
  std::vector<Endpoint> addresses;  // at least one
};

// A connection that another node has dialled. Never reused.
using PeerId = Ordinal<struct PeerTag>;

// Who hears what other nodes answer to this one.
class BusCaller {
 public:
  virtual ~BusCaller() = default;
  virtual void node_up(replication::NodeId node) = 0;
  virtual void node_down(replication::NodeId node, const Error& reason) = 0;
  // kProtocol: the connection is ended.
  virtual Result<void> received(replication::NodeId from, std::uint64_t channel, VolumeId volume,
                                replication::ToCoordinator message) = 0;
  virtual Result<void> received(replication::NodeId from, HistoryAnswer answer) = 0;
  virtual void writable(replication::NodeId node) = 0;
};

// Who hears what other nodes tell and ask this one.
class BusServer {
 public:
  virtual ~BusServer() = default;
  virtual void peer_connected(PeerId peer, replication::NodeId node) = 0;
  virtual void peer_closed(PeerId peer) = 0;
  // kProtocol, kLimit: the connection is ended.
  virtual Result<void> received(PeerId from, std::uint64_t channel, VolumeId volume,
                                replication::FromCoordinator message) = 0;
  virtual Result<void> received(PeerId from, HistoryQuestion question) = 0;
  virtual void writable(PeerId peer) = 0;
};

class PeerBus final : private peer::ListenerObserver, private Multicast::Connections {
 public:
  // What is worth a line in the log; callers limit how many.
  using Report = UniqueFunction<void(const Error&)>;
  // A node is admitted to multicast, or dismissed.
  using MulticastChanged =
      UniqueFunction<void(const std::string& node, const trm::SenderHub::Change&)>;

  // `caller`, `server` and what `environment` refers to outlive it. `peers`: the other nodes.
  PeerBus(peer::Connection::Environment environment, std::vector<PeerAddress> peers,
          BusCaller& caller, BusServer& server, Report report);
  ~PeerBus() override;  // not from within a callback
  PeerBus(const PeerBus&) = delete;
  PeerBus& operator=(const PeerBus&) = delete;

  // Listens on every address or none: kIo.
  Result<void> listen(const std::vector<Endpoint>& addresses);
  [[nodiscard]] std::vector<Endpoint> addresses() const;

  // Payloads may go, and come, by multicast: what `changed` hears of. Once, and before anything is
  // dialled or listened to. Without it a node that multicasts to this one cannot speak to it.
  void use_multicast(const MulticastOptions& options, MulticastChanged changed);
  // Writes of the volume that go to several of these nodes go to the group, from now on. The error
  // says why they cannot, now.
  Result<void> begin_flow(VolumeId volume, const trm::Group& group,
                          const std::vector<replication::NodeId>& nodes);
  void end_flow(VolumeId volume);
  // How the node gets the volume's writes. Nothing: not by multicast, whatever happens.
  [[nodiscard]] std::optional<trm::SenderHub::Standing> standing(VolumeId volume,
                                                                 replication::NodeId node) const;
  // Null: use_multicast() was not called.
  [[nodiscard]] const Multicast* multicast() const { return multicast_.get(); }
  // A line in the log, as of what it finds itself.
  void report(const Error& error) { report_(error); }

  // Keeps a connection to the node from now on: node_up() whenever there is one. kNotFound: it is
  // not one of the peers.
  Result<void> dial(replication::NodeId node);
  // It is one of the peers.
  [[nodiscard]] bool knows(replication::NodeId node) const;
  // Ends the connection, and makes a new one.
  void redial(replication::NodeId node);
  [[nodiscard]] bool is_up(replication::NodeId node) const;

  // To a node that is up, or to a peer that is connected. When the frame is not taken the
  // connection ends: node_down(), or peer_closed(), follows.
  void send(replication::NodeId to, const replication::Envelope& envelope);
  void send(PeerId to, const replication::Envelope& envelope);
  // False: it is not taken now, writable() follows; or there is no connection.
  [[nodiscard]] bool ask(replication::NodeId to, const HistoryFrame& question);
  [[nodiscard]] bool answer(PeerId to, const HistoryFrame& answer);

 private:
  struct Dialled;
  struct Accepted;

  // peer::ListenerObserver
  void accepted(std::unique_ptr<peer::Connection> connection) override;
  void refused(const Error& reason) override { report_(reason); }

  // Multicast::Connections
  void send(trm::PeerNumber to, std::string header, PayloadSlice payload,
            const std::optional<trm::Reference>& reference) override;
  void tell(trm::PeerNumber to, const trm::FromSender& message) override;
  [[nodiscard]] std::uint64_t queued_bytes(trm::PeerNumber to) const override;
  void deliver(trm::ConnectionNumber from, std::string_view header, Payload payload) override;
  void tell(trm::ConnectionNumber to, const trm::FromReceiver& message) override;
  void end(trm::ConnectionNumber connection, const Error& reason) override {
    end(PeerId{connection.value}, reason);
  }
  void changed(const trm::SenderHub::Change& change) override;
  void failed(const Error& error) override { report_(error); }

  void end(PeerId peer, const Error& reason);
  [[nodiscard]] bool send_frame(replication::NodeId to, std::string header, PayloadSlice payload);
  [[nodiscard]] replication::NodeId id_of(const std::string& name) const;

  const peer::Connection::Environment environment_;
  const std::vector<PeerAddress> peers_;
  BusCaller& caller_;
  BusServer& server_;
  Report report_;
  std::unique_ptr<peer::Listener> listener_;
  std::map<replication::NodeId, std::unique_ptr<Dialled>> dialled_;
  std::map<PeerId, std::unique_ptr<Accepted>> accepted_;
  std::uint64_t last_peer_ = 0;
  std::unique_ptr<Multicast> multicast_;  // null: there is none
  MulticastChanged multicast_changed_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::cluster
