#include "tests/bench/trm_ways.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "server/cluster/peer_bus.h"

namespace mariner::bench {
namespace {

using cluster::PeerBus;
using replication::Envelope;
using replication::NodeId;

constexpr VolumeId kVolume{7};
constexpr Epoch kEpoch{3};

[[noreturn]] void give_up(const std::string& what) {
  fmt::print(stderr, "mariner-trm-load: {}\n", what);
  std::exit(1);
}

void need(const Result<void>& result) {
  if (!result) give_up(result.error().message);
}

trm::Group group_of(const std::string& text) {
  const Result<Endpoint> endpoint = parse_endpoint(text);
  if (!endpoint) give_up(endpoint.error().message);
  return {endpoint->address, endpoint->port};
}

NodeId id_of(std::size_t node) { return {static_cast<std::uint32_t>(node + 1)}; }

// A node of the bus, whichever end it is.
struct BusNode {
  BusNode(node::EventLoop& loop_in, const TrmWayOptions& options_in, std::size_t node,
          const peer::NodeIdentity& identity, cluster::BusCaller& caller,
          cluster::BusServer& server)
      : loop(loop_in),
        options(options_in),
        bus({loop.context(), loop, peer::TlsContext::for_peers(identity).value(), {}},
            peers_of(options_in, node), caller, server, [](const Error& error) {
              fmt::print(stderr, "mariner-trm-load: {}\n", error.message);
            }) {
    if (options.kind != TrmWayOptions::Kind::kMulticast) return;
    cluster::MulticastOptions multicast{.interface = options.nodes[node].address,
                                        .encrypted = options.encrypted};
    if (options.bytes_per_second_max > 0) {
      multicast.bytes_per_second_max = options.bytes_per_second_max;
    }
    bus.use_multicast(multicast, [](const std::string& peer, const trm::SenderHub::Change& change) {
      fmt::print(stderr, "mariner-trm-load: node {} {} by multicast{}{}\n", peer,
                 change.admitted ? "gets payloads" : "gets nothing",
                 change.reason.empty() ? "" : ": ", change.reason);
    });
  }
  static std::vector<cluster::PeerAddress> peers_of(const TrmWayOptions& options, std::size_t own) {
    std::vector<cluster::PeerAddress> peers;
    for (std::size_t i = 0; i < options.nodes.size(); ++i) {
      if (i == own) continue;
      peers.push_back(
          {id_of(i), options.nodes[i].name, {{options.nodes[i].address, options.port}}});
    }
    return peers;
  }

  node::EventLoop& loop;
  const TrmWayOptions options;
  PeerBus bus;
};

class BusSending final : public TrmSending, cluster::BusCaller, cluster::BusServer {
 public:
  BusSending(node::EventLoop& loop, const TrmWayOptions& options,
             const peer::NodeIdentity& identity, Heard heard)
      : heard_(std::move(heard)), node_(loop, options, 0, identity, *this, *this) {}

  void begin() override {
    std::vector<NodeId> receivers;
    for (std::size_t i = 1; i < node_.options.nodes.size(); ++i) receivers.push_back(id_of(i));
    if (node_.options.kind == TrmWayOptions::Kind::kMulticast) {
      need(node_.bus.begin_flow(kVolume, group_of(node_.options.group), receivers));
    }
    for (const NodeId receiver : receivers) need(node_.bus.dial(receiver));
  }
  void send(std::size_t receiver, std::uint64_t write, const Payload& payload) override {
    replication::WriteMessage message;
    message.volume = kVolume;
    message.stamp = {kEpoch, {write}, node_.loop.wall_time()};
    message.write.extent = {{write * 2}, payload.size() / kBlockBytes};
    message.write.payload = {payload, 0, payload.size()};
    // As it is when writes wait for the log, and images lag behind.
    message.settled = {write - std::min<std::uint64_t>(write, 40)};
    message.frontier = {write - std::min<std::uint64_t>(write, 5000)};
    node_.bus.send(id_of(receiver),
                   Envelope{receiver, kVolume, replication::FromCoordinator(message)});
  }
  [[nodiscard]] TrmTraffic traffic() const override {
    TrmTraffic traffic;
    if (node_.bus.multicast() == nullptr) return traffic;
    const trm::SenderHub::Counters& counters = node_.bus.multicast()->sender().counters();
    traffic.multicast_bytes = counters.multicast_bytes;
    traffic.carried_bytes = counters.carried_bytes;
    for (const auto& [peer, each] : counters.peers) {
      traffic.repaired_bytes += each.repaired_bytes;
      for (const std::uint64_t times : each.dismissals) traffic.dismissals += times;
    }
    for (std::size_t i = 1; i < node_.options.nodes.size(); ++i) {
      const auto standing = node_.bus.standing(kVolume, id_of(i));
      traffic.taking_part += standing && standing->admitted ? 1 : 0;
    }
    return traffic;
  }

 private:
  static std::size_t index_of(NodeId node) { return node.value - 1; }
  void node_up(NodeId node) override { heard_.up(index_of(node)); }
  void node_down(NodeId node, const Error&) override { heard_.down(index_of(node)); }
  Result<void> received(NodeId from, std::uint64_t, VolumeId,
                        replication::ToCoordinator message) override {
    const auto* logged = std::get_if<replication::Logged>(&message);
    if (logged == nullptr) return Error{ErrorCode::kProtocol, "not what was expected"};
    heard_.acknowledged(index_of(from), logged->through.value);
    return {};
  }
  Result<void> received(NodeId, cluster::HistoryAnswer) override { return {}; }
  void writable(NodeId) override {}
  void peer_connected(cluster::PeerId, NodeId) override {}
  void peer_closed(cluster::PeerId) override {}
  Result<void> received(cluster::PeerId, std::uint64_t, VolumeId,
                        replication::FromCoordinator) override {
    return {};
  }
  Result<void> received(cluster::PeerId, cluster::HistoryQuestion) override { return {}; }
  void writable(cluster::PeerId) override {}

  const Heard heard_;
  BusNode node_;
};

class BusReceiving final : public TrmReceiving, cluster::BusCaller, cluster::BusServer {
 public:
  BusReceiving(node::EventLoop& loop, const TrmWayOptions& options, std::size_t node,
               const peer::NodeIdentity& identity, Take take)
      : take_(std::move(take)), node_(loop, options, node, identity, *this, *this) {
    need(node_.bus.listen({{options.nodes[node].address, options.port}}));
  }

 private:
  void node_up(NodeId) override {}
  void node_down(NodeId, const Error&) override {}
  Result<void> received(NodeId, std::uint64_t, VolumeId, replication::ToCoordinator) override {
    return {};
  }
  Result<void> received(NodeId, cluster::HistoryAnswer) override { return {}; }
  void writable(NodeId) override {}
  void peer_connected(cluster::PeerId, NodeId) override {}
  void peer_closed(cluster::PeerId peer) override { unanswered_.erase(peer); }
  Result<void> received(cluster::PeerId from, std::uint64_t channel, VolumeId,
                        replication::FromCoordinator message) override {
    const auto* write = std::get_if<replication::WriteMessage>(&message);
    if (write == nullptr) return Error{ErrorCode::kProtocol, "not what was expected"};
    const std::uint64_t through = take_(write->stamp.sequence.value, write->write.payload);
    unanswered_[from] = {channel, through};
    if (!std::exchange(answering_, true)) node_.loop.defer([this] { answer(); });
    return {};
  }
  Result<void> received(cluster::PeerId, cluster::HistoryQuestion) override { return {}; }
  void writable(cluster::PeerId) override {}

  void answer() {
    answering_ = false;
    for (const auto& [peer, what] : std::exchange(unanswered_, {})) {
      node_.bus.send(peer, Envelope{what.first, kVolume,
                                    replication::ToCoordinator(
                                        replication::Logged{kVolume, kEpoch, {what.second}})});
    }
  }

  const Take take_;
  std::map<cluster::PeerId, std::pair<std::uint64_t, std::uint64_t>> unanswered_;
  bool answering_ = false;
  BusNode node_;
};

}  // namespace

std::unique_ptr<TrmSending> make_sending(node::EventLoop& loop, const TrmWayOptions& options,
                                         const peer::NodeIdentity& identity,
                                         TrmSending::Heard heard) {
  if (options.kind == TrmWayOptions::Kind::kPlain) {
    return make_plain_sending(loop, options, std::move(heard));
  }
  return std::make_unique<BusSending>(loop, options, identity, std::move(heard));
}

std::unique_ptr<TrmReceiving> make_receiving(node::EventLoop& loop, const TrmWayOptions& options,
                                             std::size_t node, const peer::NodeIdentity& identity,
                                             TrmReceiving::Take take) {
  if (options.kind == TrmWayOptions::Kind::kPlain) {
    return make_plain_receiving(loop, options, node, std::move(take));
  }
  return std::make_unique<BusReceiving>(loop, options, node, identity, std::move(take));
}

}  // namespace mariner::bench
