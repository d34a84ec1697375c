#include "tests/trm-multicast/trm_network.h"

#include <fmt/format.h>

#include <algorithm>

#include "proto/payload_crc.h"

namespace mariner::trm {
namespace {

constexpr auto kStep = std::chrono::microseconds(20);
constexpr auto kTick = std::chrono::milliseconds(20);

OpenStream make_open(std::mt19937_64& random, const StreamSender::Options& options) {
  OpenStream open{.stream = {static_cast<std::uint32_t>(random())},
                  .group = "239.192.7.1",
                  .port = 6003,
                  .key = {},
                  .encrypted = random() % 2 == 0,
                  .window_bytes = options.window_bytes};
  for (std::byte& b : open.key.key) b = static_cast<std::byte>(random());
  for (std::byte& b : open.key.salt) b = static_cast<std::byte>(random());
  return open;
}

std::uint32_t crc_of(const Payload& payload) {
  return payload ? payload_crc32c({payload, 0, payload.size()}) : 0;
}

}  // namespace

TrmNetwork::TrmNetwork(std::uint64_t seed, std::size_t receivers,
                       const StreamSender::Options& options)
    : random_(seed),
      open_(make_open(random_, options)),
      sender_(open_, options),
      sealer_(open_.key, open_.encrypted),
      peers_(receivers) {
  for (std::size_t i = 0; i < receivers; ++i) connect(static_cast<ReceiverIndex>(i));
}

void TrmNetwork::fail(const std::string& what) {
  if (violated_.empty()) violated_ = what;
}

void TrmNetwork::connect(ReceiverIndex receiver) {
  Peer& peer = peers_[receiver];
  if (peer.connected) return;
  peer.connected = true;
  peer.incoming = std::make_unique<IncomingFrames>(IncomingFrames::Options{});
  queue(peer, {.header = {}, .reference = {}, .control = open_, .payload = {}}, 100);
  sender_.connected(receiver);
}

void TrmNetwork::disconnect(ReceiverIndex receiver) {
  Peer& peer = peers_[receiver];
  if (!peer.connected) return;
  sender_.disconnected(receiver);
  peer.connected = false;
  peer.outgoing = {};
  peer.incoming.reset();
  peer.to_receiver.clear();
  peer.to_sender.clear();
  peer.expected.clear();
  peer.line_free = now_;
}

void TrmNetwork::send(ReceiverSet to, std::size_t payload_bytes) {
  Payload payload;
  if (payload_bytes > 0) {
    payload = Payload::allocate(payload_bytes);
    auto* const words = reinterpret_cast<std::uint64_t*>(payload.data());
    for (std::size_t i = 0; i < (payload_bytes + 7) / 8; ++i) words[i] = random_();
  }
  const PayloadSlice slice{payload, 0, payload_bytes};
  ReceiverSet connected = 0;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].connected) connected |= ReceiverSet{1} << i;
  }
  to &= connected;
  const auto reference = payload ? sender_.offer(to, slice) : std::nullopt;
  const std::uint64_t number = ++frames_;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    if ((to >> i & 1) == 0) continue;
    peers_[i].expected.emplace_back(number, crc_of(payload));
    peers_[i].outgoing.push({std::to_string(number), slice, reference},
                            reference ? &sender_ : nullptr, static_cast<ReceiverIndex>(i));
  }
}

void TrmNetwork::queue(Peer& peer, ToReceiver message, std::size_t bytes) {
  peer.line_free = std::max(peer.line_free, now_) +
                   std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(
                       static_cast<double>(bytes) / peer.path.tcp_bytes_per_second));
  peer.to_receiver.push_back({peer.line_free + peer.path.tcp_delay, std::move(message)});
}

void TrmNetwork::run(Nanoseconds time) {
  for (const Nanoseconds end = now_ + time; now_ < end && violated_.empty(); now_ += kStep) step();
}

void TrmNetwork::step() {
  if (now_ - ticked_ >= kTick) {
    ticked_ = now_;
    sender_.tick(now_);
  }
  pump_sender();
  for (std::size_t i = 0; i < peers_.size(); ++i) pump_receiver(static_cast<ReceiverIndex>(i));
}

void TrmNetwork::pump_sender() {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    auto& answers = peers_[i].to_sender;
    while (!answers.empty() && answers.front().at <= now_) {
      const FromReceiver answer = std::move(answers.front().what);
      answers.pop_front();
      const auto taken = sender_.received(static_cast<ReceiverIndex>(i), answer, now_);
      if (!taken) return fail("the sender refuses an answer: " + taken.error().message);
    }
  }
  while (const auto batch = sender_.next(now_)) transmit(*batch);
  for (StreamSender::Told& told : sender_.take_told()) {
    Peer& peer = peers_[told.receiver];
    const PayloadSlice bytes = payload_of(told.message);
    Payload copy = bytes.length > 0 ? Payload::copy_of(bytes.bytes()) : Payload{};
    const auto heard = decode(encode(told.message), copy);
    if (!heard) return fail("a message cannot be read: " + heard.error().message);
    queue(peer,
          {.header = {}, .reference = {}, .control = std::get<FromSender>(*heard), .payload = {}},
          100 + bytes.length);
  }
  for (const StreamSender::Change& change : sender_.take_changes()) {
    changes_ +=
        fmt::format("{:.3f} s: receiver {} {}\n", std::chrono::duration<double>(now_).count(),
                    change.receiver, change.admitted ? "takes part" : change.reason);
  }
  for (Peer& peer : peers_) {
    peer.outgoing.flush([&](OutgoingFrames::Frame frame) {
      const bool carried = !frame.reference && frame.payload.length > 0;
      carried_ += carried ? 1 : 0;
      referring_ += frame.reference ? 1 : 0;
      const std::size_t bytes = 100 + (carried ? frame.payload.length : 0);
      queue(peer,
            {.header = std::move(frame.header),
             .reference = frame.reference,
             .control = {},
             .payload = carried ? frame.payload.payload : Payload{}},
            bytes);
    });
  }
}

void TrmNetwork::transmit(const StreamSender::Batch& batch) {
  DatagramHeader header = batch.first;
  for (std::size_t at = 0; at < batch.bytes.length; at += batch.body_bytes) {
    const std::size_t bytes = std::min<std::size_t>(batch.body_bytes, batch.bytes.length - at);
    std::vector<std::byte> datagram(bytes + kDatagramOverheadBytes);
    header.offset = batch.first.offset + static_cast<std::uint32_t>(at);
    sealer_.seal(header, batch.bytes.bytes().subspan(at, bytes), datagram);
    if (old_.size() < 100) old_.push_back(datagram);
    for (Peer& peer : peers_) deliver_datagram(peer, datagram);
  }
}

void TrmNetwork::deliver_datagram(Peer& peer, std::vector<std::byte> bytes) {
  const Path& path = peer.path;
  const auto at = [&] {
    const auto jitter =
        path.jitter.count() == 0 ? 0 : static_cast<std::int64_t>(random_() % path.jitter.count());
    return now_ + path.delay + Nanoseconds(jitter);
  };
  if (chance(path.forged)) {
    auto forged = random_() % 2 == 0 ? bytes : old_[random_() % old_.size()];
    switch (random_() % 4) {
      case 0:  // replayed as it was
        break;
      case 1:
        forged[random_() % forged.size()] ^= static_cast<std::byte>(1 + random_() % 255);
        break;
      case 2: forged.resize(random_() % (forged.size() + 1)); break;
      default:
        for (std::size_t i = 20; i < forged.size(); ++i)
          forged[i] = static_cast<std::byte>(random_());
    }
    peer.datagrams.emplace(at(), std::pair(std::move(forged), true));
  }
  if (path.blocked || chance(path.loss)) return;
  if (chance(path.doubled)) peer.datagrams.emplace(at(), std::pair(bytes, false));
  peer.datagrams.emplace(at(), std::pair(std::move(bytes), false));
}

void TrmNetwork::pump_receiver(ReceiverIndex index) {
  Peer& peer = peers_[index];
  if (peer.path.paused || !peer.connected) {
    // The socket's buffer is full soon.
    if (!peer.connected || peer.datagrams.size() > 200) peer.datagrams.clear();
    return;
  }
  while (!peer.datagrams.empty() && peer.datagrams.begin()->first <= now_) {
    const auto bytes = std::move(peer.datagrams.begin()->second.first);
    peer.datagrams.erase(peer.datagrams.begin());
    if (const auto parsed = parse(bytes)) (void)peer.incoming->datagram(*parsed, now_);
  }
  while (!peer.to_receiver.empty() && peer.to_receiver.front().at <= now_) {
    ToReceiver message = std::move(peer.to_receiver.front().what);
    peer.to_receiver.pop_front();
    Result<void> taken;
    if (message.control) {
      taken = peer.incoming->told(*message.control);
    } else if (message.reference) {
      taken = peer.incoming->frame(message.header, *message.reference, now_);
    } else {
      taken = peer.incoming->frame(message.header, message.payload);
    }
    if (!taken) return fail("a receiver ends the connection: " + taken.error().message);
  }
  take_frames(index);
  for (FromReceiver& answer : peer.incoming->take_answers(now_)) {
    peer.to_sender.push_back({now_ + peer.path.tcp_delay, std::move(answer)});
  }
}

void TrmNetwork::take_frames(ReceiverIndex index) {
  Peer& peer = peers_[index];
  for (;;) {
    Result<std::optional<IncomingFrames::Frame>> frame = peer.incoming->take();
    if (!frame) return fail("a frame is damaged: " + frame.error().message);
    if (!*frame) return;
    if (peer.expected.empty() || (*frame)->header != std::to_string(peer.expected.front().first)) {
      return fail("receiver " + std::to_string(index) + " gets frame " + (*frame)->header +
                  " out of order");
    }
    if (crc_of((*frame)->payload) != peer.expected.front().second) {
      return fail("frame " + (*frame)->header + " has another payload than was sent");
    }
    peer.expected.pop_front();
    peer.delivered_bytes += (*frame)->payload.size();
  }
}

std::string TrmNetwork::unfinished() const {
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    const Peer& peer = peers_[i];
    if (!peer.connected) continue;
    if (!peer.expected.empty()) {
      return fmt::format(
          "receiver {} still waits for frame {}: {} bytes of frames wait at the sender, {} frames "
          "at "
          "the receiver; {} messages on the way there, {} back; {} bytes are queued, {} kept, next "
          "{}\n{}",
          i, peer.expected.front().first, peer.outgoing.waiting_bytes(), peer.incoming->held(),
          peer.to_receiver.size(), peer.to_sender.size(), sender_.queued_bytes(),
          sender_.kept_bytes(), sender_.admitted(), changes_);
    }
  }
  if (sender_.queued_bytes() > 0) return "something waits to be sent";
  if (sender_.kept_bytes() > 0) return "something is kept that nobody needs";
  return {};
}

}  // namespace mariner::trm
