// All that other nodes send to this one, over their connections and by multicast: joined, in order.
//
// Sans I/O: the caller hands in frames, messages and datagrams as they come and carries out what
// Wires is called for. A connection that has no streams costs nothing. One thread. Nothing is
// called from within Wires.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>

#include "trm-multicast/group.h"
#include "trm-multicast/incoming_frames.h"

namespace mariner::trm {

// A connection that another node has made, as the caller numbers them. Never reused.
using ConnectionNumber = Ordinal<struct ConnectionNumberTag>;

class ReceiverHub {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  // Datagrams that nobody of ours has sent, or nobody waits for, ever.
  struct Strange {
    std::uint64_t malformed = 0;
    std::uint64_t unknown = 0;   // of streams that are not for this node, where groups are shared
    std::uint64_t unsealed = 0;  // of a stream of this node, but from nobody who has its key
  };

  class Wires {
   public:
    virtual ~Wires() = default;
    // Datagrams of the group are wanted, from now on or not any more. An error: why it cannot be.
    virtual Result<void> listen(const Group& group) = 0;
    virtual void leave(const Group& group) = 0;
    // The next frame of the connection.
    virtual void deliver(ConnectionNumber from, std::string_view header, Payload payload) = 0;
    virtual void tell(ConnectionNumber to, const FromReceiver& message) = 0;
    // The other end does not keep to the protocol; disconnected() is to follow.
    virtual void end(ConnectionNumber connection, const Error& reason) = 0;
  };

  // `wires` outlives it.
  ReceiverHub(Wires& wires, const IncomingFrames::Options& options)
      : wires_(wires), options_(options) {}

  void connected(ConnectionNumber connection);
  void disconnected(ConnectionNumber connection);

  // What the connection brings, in order.
  void frame(ConnectionNumber from, std::string_view header, Payload payload);
  void frame(ConnectionNumber from, std::string_view header, const Reference& reference,
             Nanoseconds now);
  void told(ConnectionNumber from, const FromSender& message);
  // A datagram that has come to one of the groups, from anybody.
  void datagram(std::span<const std::byte> bytes, Nanoseconds now);

  // The end of a turn, and when next_at() says so: what there is to be told is.
  void flush(Nanoseconds now);
  [[nodiscard]] std::optional<Nanoseconds> next_at() const;

  // It is on no stream: its frames may go past this.
  [[nodiscard]] bool unused(ConnectionNumber connection) const;
  [[nodiscard]] const Strange& strange() const { return strange_; }
  [[nodiscard]] std::uint64_t strange_datagrams() const {
    return strange_.malformed + strange_.unknown + strange_.unsealed;
  }
  [[nodiscard]] std::uint64_t repaired_bytes() const;

 private:
  struct Connection {
    explicit Connection(const IncomingFrames::Options& options) : frames(options) {}
    IncomingFrames frames;
    std::map<StreamId, Group> streams;
    std::set<StreamId> refused;  // that could not be listened to
    bool ended = false;
  };

  // Who is to have a stream's datagrams: of the connections on which who has its key has opened it,
  // the newest. An older one of the same node may not be known to be gone yet.
  struct Owner {
    ConnectionNumber connection;
    StreamKey key;
  };

  Result<void> take(ConnectionNumber from, Connection& connection, const FromSender& message);
  Result<void> open(ConnectionNumber from, Connection& connection, const OpenStream& message);
  void close(ConnectionNumber from, Connection& connection, StreamId stream);
  void pump(ConnectionNumber from, Connection& connection, const Result<void>& taken);

  Wires& wires_;
  const IncomingFrames::Options options_;
  std::map<ConnectionNumber, std::unique_ptr<Connection>> connections_;
  std::map<StreamId, Owner> streams_;
  std::map<Group, int> groups_;  // streams of each, on all connections
  Strange strange_;
  std::uint64_t repaired_bytes_ = 0;  // of connections that are gone
};

}  // namespace mariner::trm
