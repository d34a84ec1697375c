// One node that sends, and its receivers, over a network that a seed decides on: datagrams are
// lost, late, doubled, forged, or not let through at all; connections are slow, and break;
// receivers pause; the sender's socket is full. The hubs at both ends are the production's.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "trm-multicast/receiver_hub.h"
#include "trm-multicast/sender_hub.h"

namespace mariner::trm {

class TrmNetwork final : private SenderHub::Wires {
 public:
  using Nanoseconds = std::chrono::nanoseconds;
  // How the way to one receiver is.
  struct Path {
    double loss = 0;
    double doubled = 0;
    double forged = 0;
    bool blocked = false;                               // for multicast
    bool paused = false;                                // the receiver does nothing
    bool deaf = false;                                  // it cannot listen to what is opened
    Nanoseconds delay = std::chrono::microseconds(50);  // of datagrams, at least
    Nanoseconds jitter{};                               // and so much more, at random
    Nanoseconds tcp_delay = std::chrono::microseconds(60);
    double tcp_bytes_per_second = 125e6;
  };

  TrmNetwork(std::uint64_t seed, std::size_t receivers, const SenderHub::Options& options);
  ~TrmNetwork() override;

  // Receivers from 0 on; flows: 0 goes to all of them, 1 to the first two.
  static constexpr std::size_t kFlows = 2;
  void begin_flow(std::size_t flow);
  void end_flow(std::size_t flow);

  // A frame with a payload of so many bytes, at random, to some of the receivers; 0: without.
  void send(std::size_t flow, const std::set<std::size_t>& to, std::size_t payload_bytes);
  // Time goes on.
  void run(Nanoseconds time);
  void disconnect(std::size_t receiver);
  void connect(std::size_t receiver);
  // On its connection it could not listen to something.
  [[nodiscard]] bool refused(std::size_t receiver) const;
  // The socket takes nothing.
  void block_socket(bool blocked) { socket_blocked_ = blocked; }

  // What went wrong; empty: nothing did.
  [[nodiscard]] const std::string& violated() const { return violated_; }
  // What has not arrived on connections that hold; empty: everything has.
  [[nodiscard]] std::string unfinished() const;
  // Everybody takes part in what is meant for him.
  [[nodiscard]] bool all_take_part() const;
  // Who took part when, a line each.
  [[nodiscard]] const std::string& changes() const { return changes_; }

  SenderHub& hub() { return hub_; }
  Path& path(std::size_t receiver);
  [[nodiscard]] std::uint64_t carried_frames() const { return carried_; }
  [[nodiscard]] std::uint64_t referring_frames() const { return referring_; }
  [[nodiscard]] std::uint64_t strange_datagrams() const;
  [[nodiscard]] Nanoseconds now() const { return now_; }
  std::mt19937_64& random() { return random_; }

 private:
  struct Peer;

  // SenderHub::Wires
  void frame(PeerNumber to, std::string header, PayloadSlice payload,
             const std::optional<Reference>& reference) override;
  void tell(PeerNumber to, const FromSender& message) override;
  bool multicast(const Group& to, std::span<const std::byte> datagrams,
                 std::size_t datagram_bytes) override;
  void changed(const SenderHub::Change& change) override;
  void random(std::span<std::byte> to) override;

  void step();
  void deliver(Peer& peer, std::span<const std::byte> datagram);
  void forge(Peer& peer, std::span<const std::byte> datagram);
  [[nodiscard]] Nanoseconds arrival(const Path& path);
  void queue(Peer& peer, std::string bytes, const PayloadSlice& payload);
  void fail(const std::string& what);
  [[nodiscard]] bool chance(double probability) {
    return std::uniform_real_distribution<>()(random_) < probability;
  }
  [[nodiscard]] static Group group_of(std::size_t flow) {
    return {"239.192.7." + std::to_string(flow + 1), 6003};
  }
  [[nodiscard]] std::set<std::size_t> receivers_of(std::size_t flow) const;

  std::mt19937_64 random_;
  std::vector<std::unique_ptr<Peer>> peers_;
  SenderHub hub_;
  std::set<std::size_t> flows_;
  std::map<std::pair<PeerNumber, Group>, bool> taking_part_;
  bool socket_blocked_ = false;
  Nanoseconds now_ = std::chrono::seconds(100);
  Nanoseconds ticked_{};
  std::vector<std::vector<std::byte>> old_;  // datagrams, to be replayed
  std::uint64_t frames_ = 0;
  std::uint64_t carried_ = 0;
  std::uint64_t referring_ = 0;
  std::string violated_;
  std::string changes_;
};

}  // namespace mariner::trm
