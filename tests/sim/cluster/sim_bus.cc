#include "tests/sim/cluster/sim_bus.h"

#include <cstring>
#include <utility>

#include "proto/check.h"
#include "tests/sim/cluster/sim_frames.h"

namespace mariner::test {
namespace {

using replication::Envelope;
using replication::FromCoordinator;
using replication::NodeId;
using replication::ToCoordinator;
using Side = SimConnection::Side;

// Frames to a node that wait for multicast. More than all volumes may have in flight: who comes
// back is sent all of that in one turn, twice if it keeps a journal.
constexpr std::uint64_t kWaitingBytesMax = 2u << 20;

NodeId node_of(trm::PeerNumber peer) { return {static_cast<std::uint32_t>(peer.value)}; }

}  // namespace

class SimBus::Conversation final : public SimConversation {
 public:
  Conversation(SimBus& bus, const With& with, std::uint64_t channel)
      : bus_(bus), with_(with), channel_(channel) {}
  void tell(FromCoordinator message) override {
    bus_.send(with_.node, {channel_, with_.volume, std::move(message)});
  }
  void ask(const cluster::HistoryFrame& question) override {
    bus_.ask(with_.node, channel_, question);
  }
  void close() override {
    Dialled* const dialled = bus_.find({with_.node.value});
    if (dialled == nullptr || dialled->channels.erase(channel_) == 0) return;
    tell(replication::CloseChannel{});
  }

 private:
  SimBus& bus_;
  const With with_;
  const std::uint64_t channel_;
};

SimBus::SimBus(SimNode& node, Cluster& cluster)
    : node_(node),
      cluster_(cluster),
      hubs_(node, cluster.random, cluster.multicast, *this, cluster.options, cluster.planted) {}

SimBus::~SimBus() { cluster_.totals.strange += hubs_.strange_datagrams(); }

void SimBus::wrong(const std::string& what) {
  cluster_.violation("node " + std::to_string(node_.id().value) + ": " + what);
}

// ---- who speaks first

SimBus::Dialled* SimBus::find(trm::PeerNumber node) {
  const auto found = dialled_.find(node_of(node));
  return found == dialled_.end() || found->second.ending ? nullptr : &found->second;
}

SimBus::Dialled* SimBus::dial(NodeId node) {
  if (dialled_.contains(node)) return find({node.value});
  SimBus* const there = cluster_.bus(node);
  if (there == nullptr) return nullptr;
  SimConnectionPtr connection = cluster_.network.connect(node_, there->node_);
  if (connection == nullptr) return nullptr;
  Dialled& dialled = dialled_[node];
  dialled.number = ++last_dialled_;
  dialled.connection = connection;
  dialled.there = there;
  dialled.there_number = there->accept(connection, *this, dialled.number);
  connection->on_closed(Side::kDialled,
                        [this, node, number = dialled.number] { gone(node, number); });
  hubs_.sender().connected({node.value});
  return &dialled;
}

// Not at once: this may be called from within what is sent.
void SimBus::redial(NodeId node) {
  Dialled* const dialled = find({node.value});
  if (dialled == nullptr) return;
  dialled->ending = true;
  cluster_.say("node " + std::to_string(node_.id().value) + " dials node " +
               std::to_string(node.value) + " anew: too much waits");
  node_.post([this, node, number = dialled->number] {
    const auto found = dialled_.find(node);
    if (found == dialled_.end() || found->second.number != number) return;
    found->second.connection->close(Side::kDialled);
    gone(node, number);
  });
}

void SimBus::gone(NodeId node, std::uint64_t number) {
  const auto found = dialled_.find(node);
  if (found == dialled_.end() || found->second.number != number) return;
  const auto channels = std::move(found->second.channels);
  dialled_.erase(found);
  hubs_.sender().disconnected({node.value});
  for (const auto& [channel, heard] : channels) heard.lost();
}

std::unique_ptr<SimConversation> SimBus::begin(const With& with, Heard heard) {
  Dialled* const dialled = dial(with.node);
  if (dialled == nullptr) return nullptr;
  const std::uint64_t channel = ++last_channel_;
  dialled->channels[channel] = std::move(heard);
  return std::make_unique<Conversation>(*this, with, channel);
}

void SimBus::coordinates(VolumeId volume, const std::vector<NodeId>& others) {
  std::vector<trm::PeerNumber> peers;
  for (const NodeId other : others) peers.push_back({other.value});
  const std::uint32_t group = cluster_.group_for_all ? 1 : volume.value;
  hubs_.begin_flow({volume.value}, {"239.192.7." + std::to_string(group), 6003}, peers);
}

void SimBus::rests(VolumeId volume) { hubs_.sender().end_flow({volume.value}); }

void SimBus::send(NodeId to, const Envelope& envelope) {
  if (find({to.value}) == nullptr) return;
  trm::SenderHub& sender = hubs_.sender();
  if (sender.waiting_bytes({to.value}) > kWaitingBytesMax) return redial(to);
  PayloadSlice payload = replication::payload_of(envelope);
  count(to, envelope);
  if (cluster_.planted == Planted::kPayloadReused && payload.length == kBlockBytes) {
    Payload& memory = reused_[envelope.volume];
    if (!memory) memory = Payload::allocate(kBlockBytes);
    std::memcpy(memory.data(), payload.bytes().data(), kBlockBytes);
    payload = whole(memory);
  }
  sender.send({to.value}, {envelope.volume.value},
              header_of(FrameKind::kMessage, replication::encode(envelope)), std::move(payload));
}

void SimBus::count(NodeId to, const Envelope& envelope) {
  const auto* write =
      std::get_if<replication::WriteMessage>(&std::get<FromCoordinator>(envelope.message));
  if (write == nullptr || write->write.payload.length == 0) return;
  if (sent_.volume != envelope.volume || sent_.sequence != write->stamp.sequence) {
    sent_ = {envelope.volume, write->stamp.sequence, to, 0, false};
  }
  ++sent_.frames;
  if (sent_.shared) {
    ++cluster_.totals.shared;
  } else if (to != sent_.first) {
    sent_.shared = true;
    cluster_.totals.shared += sent_.frames;
  }
}

void SimBus::ask(NodeId to, std::uint64_t channel, const cluster::HistoryFrame& question) {
  Dialled* const dialled = find({to.value});
  if (dialled == nullptr) return;
  send_frame(*dialled, header_of(FrameKind::kQuestion, channel, question.header), question.payload);
}

void SimBus::send_frame(Dialled& to, std::string header, const PayloadSlice& payload) {
  to.connection->send(Side::kDialled,
                      [there = to.there, number = to.there_number, header = std::move(header),
                       payload = received_payload(payload)]() mutable {
                        there->arrived(number, header, std::move(payload));
                      });
}

void SimBus::send(trm::PeerNumber to, std::string header, PayloadSlice payload,
                  const std::optional<trm::Reference>& reference) {
  Dialled* const dialled = find(to);
  if (dialled == nullptr) return;
  if (!reference) {
    if (payload.length > 0) ++cluster_.totals.carried;
    return send_frame(*dialled, std::move(header), payload);
  }
  ++cluster_.totals.referring;
  std::string referring;
  referring.reserve(1 + trm::kReferenceBytesMax + header.size());
  referring += static_cast<char>(FrameKind::kReferring);
  trm::append(referring, *reference, dialled->said);
  send_frame(*dialled, std::move(referring.append(header)), {});
}

void SimBus::tell(trm::PeerNumber to, const trm::FromSender& message) {
  Dialled* const dialled = find(to);
  if (dialled == nullptr) return;
  const PayloadSlice payload = trm::payload_of(message);
  cluster_.totals.repaired += payload.length;
  send_frame(*dialled, header_of(FrameKind::kStream, trm::encode(message)), payload);
}

void SimBus::changed(const trm::SenderHub::Change& change) {
  ++(change.admitted ? cluster_.totals.admitted : cluster_.totals.dismissed);
  cluster_.say("node " + std::to_string(node_.id().value) + " sends node " +
               std::to_string(change.peer.value) +
               (change.admitted ? " multicast" : " no multicast: " + change.reason));
}

// What the other end says on a connection that this node has made.
void SimBus::answered(NodeId from, std::uint64_t number, std::string_view header, Payload payload) {
  Dialled* const dialled = find({from.value});
  if (dialled == nullptr || dialled->number != number) return;
  const SimHubs::Turn turn(hubs_);
  const char kind = header.front();
  header.remove_prefix(1);
  if (kind == static_cast<char>(FrameKind::kStream)) {
    const auto message = trm::decode(header, std::move(payload));
    if (!message) return wrong(to_string(message.error()));
    const auto* told = std::get_if<trm::FromReceiver>(&*message);
    if (told == nullptr) return wrong("a receiver speaks as a sender");
    const auto taken = hubs_.sender().received({from.value}, *told, hubs_.now());
    if (!taken) wrong(to_string(taken.error()));
    return;
  }
  if (kind == static_cast<char>(FrameKind::kAnswer)) {
    const auto found = dialled->channels.find(take_channel(header));
    if (found == dialled->channels.end()) return;
    const auto heard = found->second.answered;
    return heard({std::string(header), whole(std::move(payload))});
  }
  auto envelope = replication::decode(header, std::move(payload));
  if (!envelope) return wrong(to_string(envelope.error()));
  const auto found = dialled->channels.find(envelope->channel);
  if (found == dialled->channels.end()) return;  // it was closed meanwhile
  const auto heard = found->second.told;
  heard(std::get<ToCoordinator>(std::move(envelope->message)));
}

}  // namespace mariner::test
