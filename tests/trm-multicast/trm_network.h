// One stream's sender and its receivers, over a network that a seed decides on: datagrams are lost,
// late, doubled, forged, or not let through at all; connections are slow, and break; receivers
// pause. The sender and the receivers are the production's.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "trm-multicast/incoming_frames.h"
#include "trm-multicast/outgoing_frames.h"
#include "trm-multicast/stream_sender.h"

namespace mariner::trm {

class TrmNetwork {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  // How the way to one receiver is.
  struct Path {
    double loss = 0;
    double doubled = 0;
    double forged = 0;
    bool blocked = false;                               // for multicast
    bool paused = false;                                // the receiver does nothing
    Nanoseconds delay = std::chrono::microseconds(50);  // of datagrams, at least
    Nanoseconds jitter{};                               // and so much more, at random
    Nanoseconds tcp_delay = std::chrono::microseconds(60);
    double tcp_bytes_per_second = 125e6;
  };

  TrmNetwork(std::uint64_t seed, std::size_t receivers, const StreamSender::Options& options);

  // Sends a frame with a payload of so many bytes, at random, to these receivers; 0: without.
  void send(ReceiverSet to, std::size_t payload_bytes);
  // Time goes on.
  void run(Nanoseconds time);
  void disconnect(ReceiverIndex receiver);
  void connect(ReceiverIndex receiver);

  // What went wrong; empty: nothing did.
  [[nodiscard]] const std::string& violated() const { return violated_; }
  // Everything that was sent on connections that hold has arrived, and nothing is kept.
  [[nodiscard]] std::string unfinished() const;

  StreamSender& sender() { return sender_; }
  Path& path(ReceiverIndex receiver) { return peers_[receiver].path; }
  [[nodiscard]] std::uint64_t delivered(ReceiverIndex receiver) const {
    return peers_[receiver].delivered_bytes;
  }
  [[nodiscard]] std::uint64_t repaired() const { return sender_.repaired_bytes(); }
  [[nodiscard]] std::uint64_t carried_frames() const { return carried_; }
  [[nodiscard]] std::uint64_t referring_frames() const { return referring_; }
  // Who took part when, a line each.
  [[nodiscard]] const std::string& changes() const { return changes_; }
  [[nodiscard]] Nanoseconds now() const { return now_; }
  std::mt19937_64& random() { return random_; }

 private:
  struct ToReceiver {  // over its connection
    std::string header;
    std::optional<Reference> reference;
    std::optional<FromSender> control;
    Payload payload;
  };
  template <typename T>
  struct Timed {
    Nanoseconds at{};
    T what;
  };
  struct Peer {
    Path path;
    bool connected = false;
    OutgoingFrames outgoing;
    std::unique_ptr<IncomingFrames> incoming;
    std::deque<Timed<ToReceiver>> to_receiver;
    std::deque<Timed<FromReceiver>> to_sender;
    std::multimap<Nanoseconds, std::pair<std::vector<std::byte>, bool>> datagrams;  // and forged
    Nanoseconds line_free{};
    // What is to come on this connection: numbers of frames, and the CRCs of their payloads.
    std::deque<std::pair<std::uint64_t, std::uint32_t>> expected;
    std::uint64_t delivered_bytes = 0;
  };

  void step();
  void pump_sender();
  void transmit(const StreamSender::Batch& batch);
  void deliver_datagram(Peer& peer, std::vector<std::byte> bytes);
  void queue(Peer& peer, ToReceiver message, std::size_t bytes);
  void pump_receiver(ReceiverIndex index);
  void take_frames(ReceiverIndex index);
  void fail(const std::string& what);
  [[nodiscard]] bool chance(double probability) {
    return std::uniform_real_distribution<>()(random_) < probability;
  }

  std::mt19937_64 random_;
  const OpenStream open_;
  StreamSender sender_;
  Sealer sealer_;
  std::vector<Peer> peers_;
  Nanoseconds now_ = std::chrono::seconds(100);
  Nanoseconds ticked_{};
  std::vector<std::vector<std::byte>> old_;  // datagrams, to be replayed
  std::uint64_t frames_ = 0;
  std::uint64_t carried_ = 0;
  std::uint64_t referring_ = 0;
  std::string changes_;
  std::string violated_;
};

}  // namespace mariner::trm
