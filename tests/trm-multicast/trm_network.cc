#include "tests/trm-multicast/trm_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "proto/payload_crc.h"

namespace mariner::trm {
namespace {

constexpr auto kStep = std::chrono::microseconds(20);
constexpr auto kTick = std::chrono::milliseconds(20);
constexpr std::size_t kReceiveBufferDatagrams = 200;

std::uint32_t crc_of(const Payload& payload) {
  return payload ? payload_crc32c({payload, 0, payload.size()}) : 0;
}

}  // namespace

// A receiver, and the way to it.
struct TrmNetwork::Peer final : ReceiverHub::Wires {
  // What comes over the connection: a first letter, and what follows.
  struct Frame {
    Nanoseconds at{};
    std::string bytes;
    Payload payload;
  };
  struct Answer {
    Nanoseconds at{};
    std::string bytes;
  };

  Peer(TrmNetwork& network_in, std::size_t index_in) : network(network_in), index(index_in) {}

  [[nodiscard]] PeerNumber number() const { return {index + 1}; }
  [[nodiscard]] ConnectionNumber connection() const { return {connections}; }

  // ReceiverHub::Wires
  Result<void> listen(const Group& group) override {
    if (path.deaf) {
      refused = true;
      return Error{ErrorCode::kNotFound, "no such interface"};
    }
    groups.insert(group);
    return {};
  }
  void leave(const Group& group) override { groups.erase(group); }
  void deliver(ConnectionNumber /*from*/, std::string_view header, Payload payload) override {
    if (expected.empty() || header != std::to_string(expected.front().first)) {
      return network.fail(fmt::format("receiver {} gets frame {} out of order", index, header));
    }
    if (crc_of(payload) != expected.front().second) {
      return network.fail(fmt::format("frame {} has another payload than was sent", header));
    }
    expected.pop_front();
  }
  void tell(ConnectionNumber /*to*/, const FromReceiver& message) override {
    to_sender.push_back({network.now_ + path.tcp_delay, encode(message)});
  }
  void end(ConnectionNumber /*connection*/, const Error& reason) override {
    network.fail(fmt::format("receiver {} ends its connection: {}", index, reason.message));
  }

  void take(const Frame& frame) {
    std::string_view left = frame.bytes;
    const char kind = left.front();
    left.remove_prefix(1);
    if (kind == 'M') return hub->frame(connection(), left, frame.payload);
    if (kind == 'R') {
      const auto reference = take_reference(left, heard);
      if (!reference) return network.fail("a reference cannot be read");
      return hub->frame(connection(), left, *reference, network.now_);
    }
    const auto message = decode(left, frame.payload);
    if (!message) return network.fail("a message cannot be read: " + message.error().message);
    hub->told(connection(), std::get<FromSender>(*message));
  }
  void step() {
    if (path.paused || !connected) {
      if (datagrams.size() > kReceiveBufferDatagrams) datagrams.clear();
      return;
    }
    while (!datagrams.empty() && datagrams.begin()->first <= network.now_) {
      const std::vector<std::byte> bytes = std::move(datagrams.begin()->second);
      datagrams.erase(datagrams.begin());
      hub->datagram(bytes, network.now_);
    }
    while (!to_receiver.empty() && to_receiver.front().at <= network.now_) {
      const Frame next = std::move(to_receiver.front());
      to_receiver.pop_front();
      take(next);
    }
    hub->flush(network.now_);
  }

  TrmNetwork& network;
  const std::size_t index;
  Path path;
  bool connected = false;
  bool refused = false;  // a stream, on this connection
  std::uint64_t connections = 0;
  std::unique_ptr<ReceiverHub> hub =
      std::make_unique<ReceiverHub>(*this, IncomingFrames::Options{});
  std::set<Group> groups;
  ReferenceCoder said;
  ReferenceCoder heard;
  std::deque<Frame> to_receiver;
  std::deque<Answer> to_sender;
  std::multimap<Nanoseconds, std::vector<std::byte>> datagrams;
  Nanoseconds line_free{};
  // What is to come on this connection: numbers of frames, and the CRCs of their payloads.
  std::deque<std::pair<std::uint64_t, std::uint32_t>> expected;
};

TrmNetwork::TrmNetwork(std::uint64_t seed, std::size_t receivers, const SenderHub::Options& options)
    : random_(seed), hub_(*this, options) {
  for (std::size_t i = 0; i < receivers; ++i) {
    peers_.push_back(std::make_unique<Peer>(*this, i));
    connect(i);
  }
  for (std::size_t flow = 0; flow < kFlows; ++flow) begin_flow(flow);
}

TrmNetwork::~TrmNetwork() = default;

TrmNetwork::Path& TrmNetwork::path(std::size_t receiver) { return peers_[receiver]->path; }

bool TrmNetwork::refused(std::size_t receiver) const { return peers_[receiver]->refused; }

void TrmNetwork::fail(const std::string& what) {
  if (violated_.empty()) violated_ = what;
}

std::set<std::size_t> TrmNetwork::receivers_of(std::size_t flow) const {
  std::set<std::size_t> out;
  for (std::size_t i = 0; i < (flow == 0 ? peers_.size() : 2); ++i) out.insert(i);
  return out;
}

void TrmNetwork::begin_flow(std::size_t flow) {
  std::vector<PeerNumber> numbers;
  for (const std::size_t each : receivers_of(flow)) numbers.push_back(peers_[each]->number());
  hub_.begin_flow({flow + 1}, group_of(flow), numbers);
  flows_.insert(flow);
}

void TrmNetwork::end_flow(std::size_t flow) {
  hub_.end_flow({flow + 1});
  flows_.erase(flow);
}

void TrmNetwork::connect(std::size_t receiver) {
  Peer& peer = *peers_[receiver];
  if (peer.connected) return;
  peer.connected = true;
  peer.refused = false;
  ++peer.connections;
  peer.hub->connected(peer.connection());
  hub_.connected(peer.number());
}

void TrmNetwork::disconnect(std::size_t receiver) {
  Peer& peer = *peers_[receiver];
  if (!peer.connected) return;
  hub_.disconnected(peer.number());
  peer.hub->disconnected(peer.connection());
  if (!peer.groups.empty()) fail("a group is listened to that nobody needs");
  peer.connected = false;
  peer.said = peer.heard = {};
  peer.to_receiver.clear();
  peer.to_sender.clear();
  peer.expected.clear();
  peer.line_free = now_;
}

void TrmNetwork::send(std::size_t flow, const std::set<std::size_t>& to,
                      std::size_t payload_bytes) {
  Payload payload;
  if (payload_bytes > 0) {
    payload = Payload::allocate(payload_bytes);
    for (std::size_t i = 0; i < payload_bytes / 8; ++i) {
      reinterpret_cast<std::uint64_t*>(payload.data())[i] = random_();
    }
    for (std::size_t i = payload_bytes / 8 * 8; i < payload_bytes; ++i) {
      payload.bytes()[i] = static_cast<std::byte>(random_());
    }
  }
  const std::uint64_t number = ++frames_;
  for (const std::size_t each : to) {
    Peer& peer = *peers_[each];
    if (!peer.connected) continue;
    peer.expected.emplace_back(number, crc_of(payload));
    hub_.send(peer.number(), {flow + 1}, std::to_string(number), {payload, 0, payload_bytes});
  }
}

// ---- SenderHub::Wires

void TrmNetwork::queue(Peer& peer, std::string bytes, const PayloadSlice& payload) {
  const double length = 100.0 + static_cast<double>(bytes.size() + payload.length);
  peer.line_free = std::max(peer.line_free, now_) +
                   std::chrono::duration_cast<Nanoseconds>(
                       std::chrono::duration<double>(length / peer.path.tcp_bytes_per_second));
  peer.to_receiver.push_back({peer.line_free + peer.path.tcp_delay, std::move(bytes),
                              payload.length > 0 ? Payload::copy_of(payload.bytes()) : Payload{}});
}

void TrmNetwork::frame(PeerNumber to, std::string header, PayloadSlice payload,
                       const std::optional<Reference>& reference) {
  Peer& peer = *peers_[to.value - 1];
  if (!reference) {
    carried_ += payload.length > 0 ? 1 : 0;
    return queue(peer, "M" + header, payload);
  }
  ++referring_;
  std::string bytes = "R";
  append(bytes, *reference, peer.said);
  queue(peer, bytes + header, {});
}

void TrmNetwork::tell(PeerNumber to, const FromSender& message) {
  queue(*peers_[to.value - 1], "T" + encode(message), payload_of(message));
}

bool TrmNetwork::multicast(const Group& to, std::span<const std::byte> datagrams,
                           std::size_t datagram_bytes) {
  if (socket_blocked_) return false;
  for (; !datagrams.empty();
       datagrams = datagrams.subspan(std::min(datagram_bytes, datagrams.size()))) {
    const auto datagram = datagrams.first(std::min(datagram_bytes, datagrams.size()));
    if (old_.size() < 100) old_.emplace_back(datagram.begin(), datagram.end());
    for (const auto& peer : peers_) {
      if (peer->groups.contains(to)) deliver(*peer, datagram);
    }
  }
  return true;
}

void TrmNetwork::changed(const SenderHub::Change& change) {
  taking_part_[{change.peer, change.group}] = change.admitted;
  changes_ += fmt::format("{:.3f} s: receiver {} of {}: {}\n",
                          std::chrono::duration<double>(now_).count(), change.peer.value - 1,
                          change.group.address, change.admitted ? "takes part" : change.reason);
}

void TrmNetwork::random(std::span<std::byte> to) {
  for (std::byte& each : to) each = static_cast<std::byte>(random_());
}

// ---- datagrams

TrmNetwork::Nanoseconds TrmNetwork::arrival(const Path& path) {
  const auto jitter =
      path.jitter.count() == 0
          ? 0
          : static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(path.jitter.count()));
  return now_ + path.delay + Nanoseconds(jitter);
}

void TrmNetwork::deliver(Peer& peer, std::span<const std::byte> datagram) {
  if (chance(peer.path.forged)) forge(peer, datagram);
  if (peer.path.blocked || chance(peer.path.loss)) return;
  const std::vector<std::byte> bytes(datagram.begin(), datagram.end());
  if (chance(peer.path.doubled)) peer.datagrams.emplace(arrival(peer.path), bytes);
  peer.datagrams.emplace(arrival(peer.path), bytes);
}

void TrmNetwork::forge(Peer& peer, std::span<const std::byte> datagram) {
  std::vector<std::byte> forged(datagram.begin(), datagram.end());
  if (random_() % 2 == 0) forged = old_[random_() % old_.size()];
  switch (random_() % 4) {
    case 0: break;  // replayed as it was
    case 1: forged[random_() % forged.size()] ^= static_cast<std::byte>(1 + random_() % 255); break;
    case 2: forged.resize(random_() % (forged.size() + 1)); break;
    default:
      for (std::size_t i = 20; i < forged.size(); ++i) {
        forged[i] = static_cast<std::byte>(random_());
      }
  }
  peer.datagrams.emplace(arrival(peer.path), std::move(forged));
}

// ---- time

void TrmNetwork::run(Nanoseconds time) {
  for (const Nanoseconds end = now_ + time; now_ < end && violated_.empty(); now_ += kStep) step();
}

void TrmNetwork::step() {
  for (const auto& peer : peers_) {
    while (!peer->to_sender.empty() && peer->to_sender.front().at <= now_) {
      const auto answer = decode(peer->to_sender.front().bytes, {});
      peer->to_sender.pop_front();
      if (!answer) return fail("an answer cannot be read: " + answer.error().message);
      const auto taken = hub_.received(peer->number(), std::get<FromReceiver>(*answer), now_);
      if (!taken) return fail("the sender refuses an answer: " + taken.error().message);
    }
  }
  if (now_ - ticked_ >= kTick) {
    ticked_ = now_;
    hub_.tick(now_);
    if (!socket_blocked_) {
      for (std::size_t flow = 0; flow < kFlows; ++flow) hub_.writable(group_of(flow), now_);
    }
  } else {
    hub_.flush(now_);
  }
  for (const auto& peer : peers_) peer->step();
}

std::string TrmNetwork::unfinished() const {
  for (const auto& peer : peers_) {
    if (!peer->connected || peer->expected.empty()) continue;
    return fmt::format(
        "receiver {} still waits for frame {}: {} bytes of frames wait at the sender; {} messages "
        "are on the way there, {} back\n{}",
        peer->index, peer->expected.front().first, hub_.waiting_bytes(peer->number()),
        peer->to_receiver.size(), peer->to_sender.size(), changes_);
  }
  return {};
}

bool TrmNetwork::all_take_part() const {
  return std::ranges::all_of(flows_, [this](std::size_t flow) {
    return std::ranges::all_of(receivers_of(flow), [&](std::size_t each) {
      const auto found = taking_part_.find({peers_[each]->number(), group_of(flow)});
      return found != taking_part_.end() && found->second;
    });
  });
}

std::uint64_t TrmNetwork::strange_datagrams() const {
  std::uint64_t sum = 0;
  for (const auto& peer : peers_) sum += peer->hub->strange_datagrams();
  return sum;
}

}  // namespace mariner::trm
