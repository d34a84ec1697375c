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

#include <array>
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
  // What datagrams may carry, as in StreamSender::Options.
  struct Bodies {
    std::uint32_t bytes_max = 0;
    std::uint32_t bytes_safe = 0;
  };
  struct Change {
    PeerNumber peer;
    Group group;
    bool admitted = false;
    Dismissal why{};     // unless admitted
    std::string reason;  // the same for people
  };
  // How a node gets the payloads of a flow.
  struct Standing {
    bool connected = false;
    bool admitted = false;
    bool alone = false;  // ... and nobody else is: its frames carry their payloads all the same
    // Of one that is connected and not admitted: since when, and what is known of why.
    std::optional<Nanoseconds> out_since{};
    std::optional<Dismissal> why{};
    std::string reason{};
  };
  // Of one peer, ever.
  struct PeerCounters {
    std::uint64_t repairs = 0;  // parts of payloads that it asked for, sent again
    std::uint64_t repaired_bytes = 0;
    std::array<std::uint64_t, kDismissals> dismissals{};
  };
  // Bytes of payloads that were sent, ever.
  struct Counters {
    std::uint64_t multicast_bytes = 0;  // by multicast, each once
    std::uint64_t carried_bytes = 0;    // in frames, once for each peer
    std::map<PeerNumber, PeerCounters> peers;
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
    // Several of them, in order: how many of these went; fewer than all: not now. What has gone of
    // the next one is taken off it.
    virtual std::size_t multicast_all(const Group& to, std::span<DatagramBatch> batches) {
      std::size_t sent = 0;
      while (sent < batches.size() &&
             multicast(to, batches[sent].bytes, batches[sent].datagram_bytes)) {
        ++sent;
      }
      return sent;
    }
    // Of what frame() and tell() were given for the peer: what waits, and has not been given to the
    // network.
    [[nodiscard]] virtual std::uint64_t queued_bytes(PeerNumber /*peer*/) const { return 0; }
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

  // From now on payloads of `flow` that are sent to several of `peers` go to the group. kLimit: one
  // of them would take part in more than kStreamsMax streams; frames carry their payloads.
  Result<void> begin_flow(FlowNumber flow, const Group& group,
                          const std::vector<PeerNumber>& peers);
  void end_flow(FlowNumber flow);
  // Of streams that are made from now on: the interface's packets may have another size.
  void set_bodies(const Bodies& bodies) {
    options_.stream.body_bytes_max = bodies.bytes_max;
    options_.stream.body_bytes_safe = bodies.bytes_safe;
  }

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
  // How long what the group is sent at its pace takes for a part of a socket's buffer: when it is
  // full it is worth trying again after so long.
  [[nodiscard]] Nanoseconds rest(const Group& group, Nanoseconds now);

  // kProtocol: the connection is to be ended.
  Result<void> received(PeerNumber from, const FromReceiver& message, Nanoseconds now);
  // Every 20 to 100 ms.
  void tick(Nanoseconds now);
  // When flush() is worth a call without anything having been sent or received.
  [[nodiscard]] std::optional<Nanoseconds> next_at(Nanoseconds now);

  // Of frames to the peer that wait for their payloads to be multicast, or behind such.
  [[nodiscard]] std::uint64_t waiting_bytes(PeerNumber peer) const;
  [[nodiscard]] std::size_t streams() const { return streams_.size(); }
  // There are no streams, and nothing waits for the peer: its frames may go past this.
  [[nodiscard]] bool unused(PeerNumber peer) const;
  // Nothing: the flow does not go to the peer by multicast, whatever happens.
  [[nodiscard]] std::optional<Standing> standing(FlowNumber flow, PeerNumber peer) const;
  [[nodiscard]] const Counters& counters() const { return counters_; }
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
  void carry_out(Stream& stream, Nanoseconds now);
  static void note(Standing& standing, const StreamSender::Change& change, Nanoseconds now);
  [[nodiscard]] std::size_t streams_to(PeerNumber peer) const;
  void flush_frames();
  void hand_over(PeerNumber to, std::uint64_t bytes) { ways_.at(to).given += bytes; }
  void note_drained();

  Wires& wires_;
  Options options_;
  // What a connection was given of payloads, and what of that has left.
  struct Way {
    std::uint64_t given = 0;
    std::uint64_t drained = 0;
  };
  std::map<PeerNumber, OutgoingFrames> frames_;  // of who is connected
  std::map<PeerNumber, Way> ways_;               // of the same
  std::map<FlowNumber, Stream*> flows_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::size_t turn_ = 0;  // with which of them a socket is filled first; any number
  std::optional<Gathered> gathered_;
  Counters counters_;
};

}  // namespace mariner::trm
