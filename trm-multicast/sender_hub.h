// All that one node sends: its frames to other nodes, and the streams that carry what several of
// them are to get.
//
// Sans I/O: the caller says who is connected, what is to be sent and what was received, and carries
// out what Wires is called for. A payload that is sent to several nodes one after the other is seen
// to be the same (the memory is), and goes by multicast when those nodes are a group; each frame
// then has a reference in its place. The order of frames to one node is that of send(), whichever
// way their payloads go. Two frames to one node may share a payload, too.
//
// One thread. Nothing is called from within Wires.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trm-multicast/group.h"
#include "trm-multicast/outgoing_frames.h"
#include "trm-multicast/sealer.h"
#include "trm-multicast/stream_sender.h"

namespace mariner::trm {

// Another node, as the caller numbers them.
using PeerNumber = Ordinal<struct PeerNumberTag>;
// What is sent to a group of nodes: a volume's writes, for instance.
using FlowNumber = Ordinal<struct FlowTag>;

class SenderHub {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  struct Options {
    StreamSender::Options stream{};
    bool encrypted = true;
  };
  struct Change {
    PeerNumber peer;
    Group group;
    bool admitted = false;
    std::string reason;
  };

  class Wires {
   public:
    virtual ~Wires() = default;
    // To the peer, on its connection. Without a reference: with its payload.
    virtual void frame(PeerNumber to, std::string header, PayloadSlice payload,
                       const std::optional<Reference>& reference) = 0;
    virtual void tell(PeerNumber to, const FromSender& message) = 0;
    // Datagrams of `datagram_bytes` each, but for the last. False: not now; the same ones are
    // offered again by writable().
    virtual bool multicast(const Group& to, std::span<const std::byte> datagrams,
                           std::size_t datagram_bytes) = 0;
    // Somebody takes part in a stream, or does not any more.
    virtual void changed(const Change& change) = 0;
    // For stream numbers and keys: a cryptographic source, but in a simulation.
    virtual void random(std::span<std::byte> to) = 0;
  };

  // `wires` outlives it.
  SenderHub(Wires& wires, const Options& options);
  ~SenderHub();
  SenderHub(const SenderHub&) = delete;
  SenderHub& operator=(const SenderHub&) = delete;

  // From now on payloads of `flow` that are sent to several of `peers` go to the group.
  void begin_flow(FlowNumber flow, const Group& group, const std::vector<PeerNumber>& peers);
  void end_flow(FlowNumber flow);

  void connected(PeerNumber peer);
  void disconnected(PeerNumber peer);

  // A frame to a peer that is connected. It leaves with flush(), at the latest.
  void send(PeerNumber to, FlowNumber flow, std::string header, PayloadSlice payload);
  // Of no flow.
  void send(PeerNumber to, std::string header, PayloadSlice payload);
  // The end of a turn: what can be sent is.
  void flush(Nanoseconds now);
  // The group's socket takes datagrams again.
  void writable(const Group& group, Nanoseconds now);

  // kProtocol: the connection is to be ended.
  Result<void> received(PeerNumber from, const FromReceiver& message, Nanoseconds now);
  // Every 20 to 100 ms.
  void tick(Nanoseconds now);
  // When flush() is worth a call without anything having been sent or received.
  [[nodiscard]] std::optional<Nanoseconds> next_at(Nanoseconds now);

  // Of frames to the peer that wait for their payloads to be multicast, or behind such.
  [[nodiscard]] std::uint64_t waiting_bytes(PeerNumber peer) const;
  [[nodiscard]] std::size_t streams() const { return streams_.size(); }
  // Sent again over connections, ever.
  [[nodiscard]] std::uint64_t repaired_bytes() const;

 private:
  struct Stream;
  // What was sent in this turn with one payload, until another one comes.
  struct Gathered {
    struct Frame {
      PeerNumber to;
      std::string header;
    };
    FlowNumber flow;
    PayloadSlice payload;
    std::vector<Frame> frames;
  };

  [[nodiscard]] Stream* stream_of(FlowNumber flow) const;
  Stream* make_stream(const Group& group, const std::set<PeerNumber>& peers);
  void close_unused();
  void offer_gathered();
  void pump(Stream& stream, Nanoseconds now);
  void carry_out(Stream& stream);
  void flush_frames();

  Wires& wires_;
  const Options options_;
  std::map<PeerNumber, OutgoingFrames> frames_;  // of who is connected
  std::map<FlowNumber, Stream*> flows_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::optional<Gathered> gathered_;
  std::uint64_t repaired_bytes_ = 0;  // of streams that are gone
};

}  // namespace mariner::trm
