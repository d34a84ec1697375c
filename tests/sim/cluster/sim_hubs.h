// The hubs of trm-multicast at one node of the simulated cluster, with their timers: what
// server/cluster/multicast.h is to a PeerBus, over the simulated network. For one life of the node.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "server/cluster/multicast.h"
#include "tests/sim/cluster/planted.h"
#include "tests/sim/cluster/sim_multicast.h"
#include "trm-multicast/receiver_hub.h"
#include "trm-multicast/sender_hub.h"

namespace mariner::test {

class SimHubs final : private trm::SenderHub::Wires,
                      private trm::ReceiverHub::Wires,
                      private SimMulticast::Member {
 public:
  using Connections = cluster::Multicast::Connections;
  // Why a group cannot be listened to, where it cannot: there is no other reason.
  static constexpr std::string_view kDeaf = "no interface has the address";

  // All outlive it. What numbers and keys of streams come from: `random`, but where it is planted
  // that they are those of an earlier life.
  SimHubs(SimNode& node, std::mt19937_64& random, SimMulticast& network, Connections& connections,
          const trm::SenderHub::Options& options, Planted planted);
  ~SimHubs() override { network_.leave(*this); }
  SimHubs(const SimHubs&) = delete;
  SimHubs& operator=(const SimHubs&) = delete;

  // An event that is a turn of its own, as most are here: what comes of it leaves at its end, and
  // not in a further event, which would cost more than it brings.
  class Turn {
   public:
    explicit Turn(SimHubs& hubs) : hubs_(hubs) { hubs_.in_turn_ = true; }
    ~Turn() {
      hubs_.in_turn_ = false;
      hubs_.flush();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    SimHubs& hubs_;
  };

  // What comes of it leaves at the turn's end.
  trm::SenderHub& sender() {
    flush_later(flush_sender_);
    return sender_;
  }
  trm::ReceiverHub& receiver() {
    flush_later(flush_receiver_);
    return receiver_;
  }
  void begin_flow(trm::FlowNumber flow, const trm::Group& group,
                  const std::vector<trm::PeerNumber>& peers);
  [[nodiscard]] std::chrono::nanoseconds now() const { return node_.monotonic_time(); }
  [[nodiscard]] std::uint64_t strange_datagrams() const { return receiver_.strange_datagrams(); }

 private:
  // SenderHub::Wires
  void frame(trm::PeerNumber to, std::string header, PayloadSlice payload,
             const std::optional<trm::Reference>& reference) override {
    connections_.send(to, std::move(header), std::move(payload), reference);
  }
  void tell(trm::PeerNumber to, const trm::FromSender& message) override {
    connections_.tell(to, message);
  }
  bool multicast(const trm::Group& to, std::span<const std::byte> datagrams,
                 std::size_t datagram_bytes) override;
  void changed(const trm::SenderHub::Change& change) override { connections_.changed(change); }
  void random(std::span<std::byte> to) override;
  // ReceiverHub::Wires
  Result<void> listen(const trm::Group& group) override;
  void leave(const trm::Group& group) override { network_.leave(*this, group); }
  void deliver(trm::ConnectionNumber from, std::string_view header, Payload payload) override {
    connections_.deliver(from, header, std::move(payload));
  }
  void tell(trm::ConnectionNumber to, const trm::FromReceiver& message) override {
    connections_.tell(to, message);
  }
  void end(trm::ConnectionNumber connection, const Error& reason) override {
    connections_.end(connection, reason);
  }
  // SimMulticast::Member
  [[nodiscard]] SimNode& node() override { return node_; }
  void datagrams(const SimMulticast::Batch& batch, const SimMulticast::Indices& which) override;
  void writable() override;

  void flush_later(bool& which);
  void flush();
  void wake_at(std::chrono::nanoseconds at);
  void tick_later();

  SimNode& node_;
  std::mt19937_64& random_;
  std::mt19937_64 same_each_life_;
  SimMulticast& network_;
  Connections& connections_;
  trm::SenderHub sender_;
  trm::ReceiverHub receiver_;
  const Planted planted_;
  bool in_turn_ = false;
  bool flush_set_ = false;
  bool flush_sender_ = false;
  bool flush_receiver_ = false;
  bool ticking_ = false;
  std::optional<std::chrono::nanoseconds> wakes_at_;
  std::set<trm::Group> waiting_;  // for the socket
};

}  // namespace mariner::test
