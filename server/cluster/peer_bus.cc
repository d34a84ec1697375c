#include "server/cluster/peer_bus.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "proto/check.h"

namespace mariner::cluster {
namespace {

using replication::Envelope;
using replication::NodeId;

enum class Kind : char {
  kMessage = 'M',   // replication/wire.h
  kQuestion = 'Q',  // history_wire.h
  kAnswer = 'A',
  kReferring = 'R',  // a reference, and then a header of another kind
  kStream = 'T',     // trm-multicast/control.h
};

// Frames to a node that wait for multicast or to be sent: what many volumes may have under way to a
// node that comes back. Coordinators bound each volume's.
constexpr std::uint64_t kWaitingBytesMax = 1u << 30;

std::string header_of(Kind kind, const std::string& text) {
  std::string header;
  header.reserve(text.size() + 1);
  header += static_cast<char>(kind);
  header += text;
  return header;
}

Error unexpected(std::string_view header) {
  return {ErrorCode::kProtocol,
          "a node sends a frame of kind " +
              std::to_string(header.empty() ? 0 : static_cast<unsigned char>(header[0])) +
              ", which does not belong on this connection"};
}

bool is_of(Kind kind, std::string_view header) {
  return !header.empty() && header[0] == static_cast<char>(kind);
}

std::string_view behind_kind(std::string_view header) {
  return header.substr(std::min<std::size_t>(1, header.size()));
}

// What it says to one end, if it is for that one.
template <typename Side>
Result<Side> stream_message(std::string_view header, Payload payload) {
  Result<trm::Control> message = trm::decode(behind_kind(header), std::move(payload));
  if (!message) return message.error();
  auto* side = std::get_if<Side>(&*message);
  if (side == nullptr) return unexpected(header);
  return std::move(*side);
}

Error too_much() {
  return {ErrorCode::kLimit, "a node takes what it is sent too slowly: the connection is ended"};
}

}  // namespace

// The way to a node that this one speaks to first.
struct PeerBus::Dialled final : peer::LinkObserver {
  Dialled(PeerBus& bus_in, const PeerAddress& address_in) : bus(bus_in), address(address_in) {}

  void begin() {
    link.emplace(bus.environment_,
                 peer::LinkOptions{.node = address.name,
                                   .addresses = address.addresses,
                                   .backoff = {.least = std::chrono::milliseconds(50),
                                               .most = std::chrono::milliseconds(1000),
                                               .seed = address.id.value}},
                 *this);
  }
  [[nodiscard]] trm::PeerNumber number() const { return {address.id.value}; }
  void up(peer::Connection& /*connection*/) override {
    is_up = true;
    said = {};
    if (bus.multicast_ != nullptr) bus.multicast_->sender().connected(number());
    bus.caller_.node_up(address.id);
  }
  void down(const Error& reason) override {
    is_up = false;
    gone(reason);
  }
  void gone(const Error& reason) const {
    if (bus.multicast_ != nullptr) bus.multicast_->sender().disconnected(number());
    bus.caller_.node_down(address.id, reason);
  }
  void received(std::string_view header, Payload payload) override {
    const Result<void> taken = take(header, std::move(payload));
    if (taken || !is_up) return;
    bus.report_(taken.error());
    bus.redial(address.id);
  }
  Result<void> take(std::string_view header, Payload payload) {
    const std::string_view text = behind_kind(header);
    if (is_of(Kind::kMessage, header)) {
      Result<Envelope> envelope = replication::decode(text, std::move(payload));
      if (!envelope) return envelope.error();
      auto* message = std::get_if<replication::ToCoordinator>(&envelope->message);
      if (message == nullptr) return unexpected(header);
      return bus.caller_.received(address.id, envelope->channel, envelope->volume,
                                  std::move(*message));
    }
    if (is_of(Kind::kAnswer, header)) {
      Result<HistoryAnswer> answer = decode_answer(text, std::move(payload));
      if (!answer) return answer.error();
      return bus.caller_.received(address.id, std::move(*answer));
    }
    if (is_of(Kind::kStream, header) && bus.multicast_ != nullptr) {
      const auto message = stream_message<trm::FromReceiver>(header, std::move(payload));
      if (!message) return message.error();
      return bus.multicast_->sender().received(number(), *message, bus.multicast_->now());
    }
    return unexpected(header);
  }
  void writable() override { bus.caller_.writable(address.id); }
  void attempt_failed(const Error& reason) override { bus.report_(reason); }

  PeerBus& bus;
  const PeerAddress address;
  std::optional<peer::Link> link;
  bool is_up = false;
  bool ending = false;
  trm::ReferenceCoder said;  // on this connection
};

// A connection of a node that speaks to this one.
struct PeerBus::Accepted final : peer::ConnectionObserver {
  Accepted(PeerBus& bus_in, PeerId id_in, std::unique_ptr<peer::Connection> connection_in)
      : bus(bus_in), id(id_in), connection(std::move(connection_in)) {
    connection->observe(*this);
  }
  void received(std::string_view header, Payload payload) override {
    if (ending) return;
    if (const Result<void> taken = take(header, std::move(payload)); !taken) {
      bus.end(id, taken.error());
    }
  }
  [[nodiscard]] trm::ConnectionNumber number() const { return {id.value}; }
  // With multicast, messages wait for those before them.
  Result<void> take(std::string_view header, Payload payload) {
    if (bus.multicast_ == nullptr) return take_joined(header, std::move(payload));
    const bool of_stream = is_of(Kind::kStream, header) || is_of(Kind::kReferring, header);
    const Multicast& multicast = *bus.multicast_;
    if (!of_stream && multicast.receiver().unused(number())) {
      return take_joined(header, std::move(payload));
    }
    trm::ReceiverHub& receiver = bus.multicast_->receiver();
    if (is_of(Kind::kStream, header)) {
      const auto message = stream_message<trm::FromSender>(header, std::move(payload));
      if (!message) return message.error();
      receiver.told(number(), *message);
    } else if (is_of(Kind::kReferring, header)) {
      std::string_view text = behind_kind(header);
      const auto reference = trm::take_reference(text, heard);
      if (!reference) return reference.error();
      if (payload) return unexpected(header);
      receiver.frame(number(), text, *reference, bus.multicast_->now());
    } else {
      receiver.frame(number(), header, std::move(payload));
    }
    return {};
  }
  Result<void> take_joined(std::string_view header, Payload payload) {
    const std::string_view text = behind_kind(header);
    if (is_of(Kind::kMessage, header)) {
      Result<Envelope> envelope = replication::decode(text, std::move(payload));
      if (!envelope) return envelope.error();
      auto* message = std::get_if<replication::FromCoordinator>(&envelope->message);
      if (message == nullptr) return unexpected(header);
      return bus.server_.received(id, envelope->channel, envelope->volume, std::move(*message));
    }
    if (is_of(Kind::kQuestion, header)) {
      Result<HistoryQuestion> question = decode_question(text, std::move(payload));
      if (!question) return question.error();
      return bus.server_.received(id, std::move(*question));
    }
    return unexpected(header);
  }
  void writable() override {
    if (!ending) bus.server_.writable(id);
  }
  void closed(const Error& reason) override { bus.end(id, reason); }

  PeerBus& bus;
  const PeerId id;
  std::unique_ptr<peer::Connection> connection;
  bool ending = false;
  trm::ReferenceCoder heard;
};

PeerBus::PeerBus(peer::Connection::Environment environment, std::vector<PeerAddress> peers,
                 BusCaller& caller, BusServer& server, Report report)
    : environment_(std::move(environment)),
      peers_(std::move(peers)),
      caller_(caller),
      server_(server),
      report_(std::move(report)) {}

PeerBus::~PeerBus() { *alive_ = false; }

Result<void> PeerBus::listen(const std::vector<Endpoint>& addresses) {
  auto listener = peer::Listener::open(environment_, {.addresses = addresses}, *this);
  if (!listener) return listener.error();
  listener_ = std::move(*listener);
  listener_->start();
  return {};
}

std::vector<Endpoint> PeerBus::addresses() const {
  return listener_ == nullptr ? std::vector<Endpoint>{} : listener_->addresses();
}

NodeId PeerBus::id_of(const std::string& name) const {
  const auto found = std::ranges::find(peers_, name, &PeerAddress::name);
  return found == peers_.end() ? NodeId{} : found->id;
}

bool PeerBus::knows(NodeId node) const {
  return std::ranges::find(peers_, node, &PeerAddress::id) != peers_.end();
}

Result<void> PeerBus::dial(NodeId node) {
  if (dialled_.contains(node)) return {};
  const auto found = std::ranges::find(peers_, node, &PeerAddress::id);
  if (found == peers_.end()) {
    return Error{ErrorCode::kNotFound,
                 "node " + std::to_string(node.value) + " is not one of the cluster's"};
  }
  auto dialled = std::make_unique<Dialled>(*this, *found);
  Dialled& one = *dialled;
  dialled_[node] = std::move(dialled);
  one.begin();
  return {};
}

// Not at once: this may be called from within a callback of the link.
void PeerBus::redial(NodeId node) {
  const auto found = dialled_.find(node);
  if (found == dialled_.end() || std::exchange(found->second->ending, true)) return;
  environment_.executor.post([this, node, alive = alive_] {
    if (!*alive) return;
    Dialled& one = *dialled_.at(node);
    one.ending = false;
    one.link.reset();
    const bool was_up = std::exchange(one.is_up, false);
    if (was_up) one.gone(too_much());
    if (*alive) one.begin();
  });
}

bool PeerBus::is_up(NodeId node) const {
  const auto found = dialled_.find(node);
  return found != dialled_.end() && found->second->is_up && !found->second->ending;
}

void PeerBus::accepted(std::unique_ptr<peer::Connection> connection) {
  const NodeId node = id_of(connection->peer().node);
  if (node.value == 0) {
    return report_({ErrorCode::kNotFound, "node " + connection->peer().node + " at " +
                                              connection->remote() +
                                              " has a certificate, but is not one of the cluster's "
                                              "nodes in the configuration"});
  }
  const PeerId id{++last_peer_};
  accepted_[id] = std::make_unique<Accepted>(*this, id, std::move(connection));
  if (multicast_ != nullptr) multicast_->receiver().connected({id.value});
  server_.peer_connected(id, node);
}

void PeerBus::end(PeerId peer, const Error& reason) {
  const auto found = accepted_.find(peer);
  if (found == accepted_.end() || std::exchange(found->second->ending, true)) return;
  if (reason.code != ErrorCode::kUnavailable) report_(reason);
  environment_.executor.post([this, peer, alive = alive_] {
    if (!*alive) return;
    accepted_.erase(peer);
    if (multicast_ != nullptr) multicast_->receiver().disconnected({peer.value});
    server_.peer_closed(peer);
  });
}

void PeerBus::send(NodeId to, const Envelope& envelope) {
  if (!is_up(to)) return;
  std::string header = header_of(Kind::kMessage, encode(envelope));
  if (multicast_ == nullptr || std::as_const(*multicast_).sender().unused({to.value})) {
    if (!send_frame(to, std::move(header), payload_of(envelope))) redial(to);
    return;
  }
  trm::SenderHub& sender = multicast_->sender();
  if (sender.waiting_bytes({to.value}) + queued_bytes(trm::PeerNumber{to.value}) >
      kWaitingBytesMax) {
    return redial(to);
  }
  sender.send({to.value}, {envelope.volume.value}, std::move(header), payload_of(envelope));
}

bool PeerBus::send_frame(NodeId to, std::string header, PayloadSlice payload) {
  peer::Connection* const connection = dialled_.at(to)->link->connection();
  return connection != nullptr && connection->send_held(std::move(header), std::move(payload));
}

void PeerBus::send(PeerId to, const Envelope& envelope) {
  const auto found = accepted_.find(to);
  if (found == accepted_.end() || found->second->ending) return;
  if (!found->second->connection->send(header_of(Kind::kMessage, encode(envelope)),
                                       payload_of(envelope))) {
    end(to, too_much());
  }
}

bool PeerBus::ask(NodeId to, const HistoryFrame& question) {
  if (!is_up(to)) return false;
  peer::Connection* const connection = dialled_.at(to)->link->connection();
  return connection != nullptr &&
         connection->send(header_of(Kind::kQuestion, question.header), question.payload);
}

bool PeerBus::answer(PeerId to, const HistoryFrame& answer) {
  const auto found = accepted_.find(to);
  return found != accepted_.end() && !found->second->ending &&
         found->second->connection->send(header_of(Kind::kAnswer, answer.header), answer.payload);
}

// ---- multicast

void PeerBus::use_multicast(const MulticastOptions& options, MulticastChanged changed) {
  CHECK(multicast_ == nullptr && dialled_.empty() && accepted_.empty());
  Multicast::Connections& own = *this;
  multicast_ =
      std::make_unique<Multicast>(environment_.context, environment_.executor, own, options);
  multicast_changed_ = std::move(changed);
}

Result<void> PeerBus::begin_flow(VolumeId volume, const trm::Group& group,
                                 const std::vector<NodeId>& nodes) {
  CHECK(multicast_ != nullptr);
  std::vector<trm::PeerNumber> peers;
  for (const NodeId node : nodes) peers.push_back({node.value});
  return multicast_->begin_flow({volume.value}, group, peers);
}

void PeerBus::end_flow(VolumeId volume) {
  if (multicast_ != nullptr) multicast_->sender().end_flow({volume.value});
}

std::optional<trm::SenderHub::Standing> PeerBus::standing(VolumeId volume, NodeId node) const {
  if (multicast_ == nullptr) return std::nullopt;
  return std::as_const(*multicast_).sender().standing({volume.value}, {node.value});
}

void PeerBus::send(trm::PeerNumber to, std::string header, PayloadSlice payload,
                   const std::optional<trm::Reference>& reference) {
  const NodeId node{static_cast<std::uint32_t>(to.value)};
  if (!is_up(node)) return;
  if (reference) {
    std::string referring;
    referring.reserve(1 + trm::kReferenceBytesMax + header.size());
    referring += static_cast<char>(Kind::kReferring);
    trm::append(referring, *reference, dialled_.at(node)->said);
    header = std::move(referring.append(header));
    payload = {};
  }
  if (!send_frame(node, std::move(header), std::move(payload))) redial(node);
}

void PeerBus::tell(trm::PeerNumber to, const trm::FromSender& message) {
  const NodeId node{static_cast<std::uint32_t>(to.value)};
  if (!is_up(node)) return;
  if (!send_frame(node, header_of(Kind::kStream, trm::encode(message)), trm::payload_of(message))) {
    redial(node);
  }
}

std::uint64_t PeerBus::queued_bytes(trm::PeerNumber to) const {
  const auto found = dialled_.find(NodeId{static_cast<std::uint32_t>(to.value)});
  if (found == dialled_.end() || !found->second->link) return 0;
  const peer::Connection* const connection = found->second->link->connection();
  return connection == nullptr ? 0 : connection->queued_bytes();
}

void PeerBus::deliver(trm::ConnectionNumber from, std::string_view header, Payload payload) {
  const auto found = accepted_.find(PeerId{from.value});
  if (found == accepted_.end() || found->second->ending) return;
  const Result<void> taken = found->second->take_joined(header, std::move(payload));
  if (!taken) end(found->first, taken.error());
}

void PeerBus::tell(trm::ConnectionNumber to, const trm::FromReceiver& message) {
  const auto found = accepted_.find(PeerId{to.value});
  if (found == accepted_.end() || found->second->ending) return;
  if (!found->second->connection->send(header_of(Kind::kStream, trm::encode(message)), {})) {
    end(found->first, too_much());
  }
}

void PeerBus::changed(const trm::SenderHub::Change& change) {
  const auto node =
      std::ranges::find(peers_, change.peer.value, [](const auto& each) { return each.id.value; });
  if (multicast_changed_ && node != peers_.end()) multicast_changed_(node->name, change);
}

}  // namespace mariner::cluster
