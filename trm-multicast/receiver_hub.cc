#include "trm-multicast/receiver_hub.h"

#include <utility>

#include "proto/check.h"

namespace mariner::trm {
namespace {

// Streams of one connection that were refused and are not closed: more than volumes there can be.
constexpr std::size_t kRefusedMax = 4096;

}  // namespace

void ReceiverHub::connected(ConnectionNumber connection) {
  CHECK(connections_.try_emplace(connection, std::make_unique<Connection>(options_)).second);
}

void ReceiverHub::disconnected(ConnectionNumber connection) {
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return;
  repaired_bytes_ += found->second->frames.repaired_bytes();
  while (!found->second->streams.empty()) {
    close(connection, *found->second, found->second->streams.begin()->first);
  }
  connections_.erase(found);
}

// ---- what comes over a connection

void ReceiverHub::frame(ConnectionNumber from, std::string_view header, Payload payload) {
  Connection& connection = *connections_.at(from);
  if (connection.ended) return;
  if (connection.frames.held() == 0) {
    connection.frames.passed();
    return wires_.deliver(from, header, std::move(payload));
  }
  pump(from, connection, connection.frames.frame(header, std::move(payload)));
}

void ReceiverHub::frame(ConnectionNumber from, std::string_view header, const Reference& reference,
                        Nanoseconds now) {
  Connection& connection = *connections_.at(from);
  if (connection.ended) return;
  pump(from, connection, connection.frames.frame(header, reference, now));
}

void ReceiverHub::told(ConnectionNumber from, const FromSender& message) {
  Connection& connection = *connections_.at(from);
  if (connection.ended) return;
  pump(from, connection, take(from, connection, message));
}

Result<void> ReceiverHub::take(ConnectionNumber from, Connection& connection,
                               const FromSender& message) {
  if (const auto* opened = std::get_if<OpenStream>(&message)) {
    return open(from, connection, *opened);
  }
  const StreamId stream = stream_of(message);
  const bool closes = std::holds_alternative<CloseStream>(message);
  if (connection.refused.contains(stream)) {
    if (closes) connection.refused.erase(stream);
    return {};
  }
  const Result<void> taken = connection.frames.told(message);
  if (taken && closes) close(from, connection, stream);
  return taken;
}

Result<void> ReceiverHub::open(ConnectionNumber from, Connection& connection,
                               const OpenStream& message) {
  const Group group{message.group, message.port};
  const auto refuse = [&](const std::string& reason) {
    connection.refused.insert(message.stream);
    wires_.tell(from, CannotListen{message.stream, reason});
    return Result<void>{};
  };
  const auto known = streams_.find(message.stream);
  const bool elsewhere = known != streams_.end() && known->second.connection != from;
  if (elsewhere && known->second.key != message.key) {
    return refuse("a stream of another node has this number");
  }
  if (connection.refused.size() >= kRefusedMax) {
    return Error{ErrorCode::kLimit, "more than " + std::to_string(kRefusedMax) +
                                        " multicast streams that cannot be listened to"};
  }
  if (connection.streams.size() >= options_.streams_max) {
    return refuse("it takes part in " + std::to_string(options_.streams_max) +
                  " streams of one node, which is the most");
  }
  if (!groups_.contains(group)) {
    if (const Result<void> listens = wires_.listen(group); !listens) {
      return refuse(listens.error().message);
    }
    groups_[group] = 0;
  }
  ++groups_.at(group);
  const Result<void> opened = connection.frames.told(FromSender(message));
  if (opened) {
    // (What an older connection still says comes too late.)
    if (!elsewhere || known->second.connection < from) {
      streams_[message.stream] = {from, message.key};
    }
    connection.streams[message.stream] = group;
  } else if (--groups_.at(group) == 0) {
    groups_.erase(group);
    wires_.leave(group);
  }
  return opened;
}

void ReceiverHub::close(ConnectionNumber from, Connection& connection, StreamId stream) {
  const auto found = connection.streams.find(stream);
  const Group group = found->second;
  connection.streams.erase(found);
  const auto owner = streams_.find(stream);
  if (owner != streams_.end() && owner->second.connection == from) streams_.erase(owner);
  if (--groups_.at(group) > 0) return;
  groups_.erase(group);
  wires_.leave(group);
}

// ---- what comes by multicast

void ReceiverHub::datagram(std::span<const std::byte> bytes, Nanoseconds now) {
  const auto parsed = parse(bytes);
  if (!parsed) {
    ++strange_.malformed;
    return;
  }
  const auto found = streams_.find(parsed->header.stream);
  if (found == streams_.end()) {
    ++strange_.unknown;
    return;
  }
  const ConnectionNumber from = found->second.connection;
  Connection& connection = *connections_.at(from);
  if (connection.ended) return;
  const auto taken = connection.frames.datagram(*parsed, now);
  if (taken == StreamReceiver::Taken::kUnsealed) ++strange_.unsealed;
  if (taken == StreamReceiver::Taken::kNew && connection.frames.held() > 0) {
    pump(from, connection, {});
  }
}

// ---- what goes out

void ReceiverHub::pump(ConnectionNumber from, Connection& connection, const Result<void>& taken) {
  Result<void> good = taken;
  while (good) {
    Result<std::optional<IncomingFrames::Frame>> frame = connection.frames.take();
    if (!frame) {
      good = frame.error();
    } else if (*frame) {
      wires_.deliver(from, (*frame)->header, std::move((*frame)->payload));
    } else {
      return;
    }
  }
  connection.ended = true;
  wires_.end(from, good.error());
}

void ReceiverHub::flush(Nanoseconds now) {
  for (auto& [number, connection] : connections_) {
    if (connection->ended || connection->streams.empty()) continue;
    for (const FromReceiver& answer : connection->frames.take_answers(now)) {
      wires_.tell(number, answer);
    }
  }
}

std::optional<ReceiverHub::Nanoseconds> ReceiverHub::next_at() const {
  std::optional<Nanoseconds> first;
  for (const auto& [number, connection] : connections_) {
    if (connection->ended || connection->streams.empty()) continue;
    const auto at = connection->frames.deadline();
    if (at && (!first || *at < *first)) first = at;
  }
  return first;
}

bool ReceiverHub::unused(ConnectionNumber connection) const {
  const auto found = connections_.find(connection);
  return found == connections_.end() || (!found->second->ended && found->second->streams.empty() &&
                                         found->second->frames.held() == 0);
}

std::uint64_t ReceiverHub::repaired_bytes() const {
  std::uint64_t bytes = repaired_bytes_;
  for (const auto& [number, connection] : connections_) {
    bytes += connection->frames.repaired_bytes();
  }
  return bytes;
}

}  // namespace mariner::trm
