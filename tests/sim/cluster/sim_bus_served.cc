// The half of the bus that other nodes speak to.
#include <utility>

#include "proto/check.h"
#include "tests/sim/cluster/sim_bus.h"
#include "tests/sim/cluster/sim_frames.h"
#include "tests/sim/cluster/sim_payload.h"

namespace mariner::test {

using replication::Envelope;
using replication::FromCoordinator;
using replication::ToCoordinator;
using Side = SimConnection::Side;

trm::ConnectionNumber SimBus::accept(SimConnectionPtr connection, SimBus& from,
                                     std::uint64_t there_number) {
  const trm::ConnectionNumber number{++last_accepted_};
  connection->on_closed(Side::kAccepted, [this, number] { ended(number); });
  Accepted& accepted = accepted_[number];
  accepted.connection = std::move(connection);
  accepted.there = &from;
  accepted.there_number = there_number;
  hubs_.receiver().connected(number);
  return number;
}

void SimBus::ended(trm::ConnectionNumber number) {
  const auto found = accepted_.find(number);
  if (found == accepted_.end()) return;
  const auto channels = std::move(found->second.channels);
  accepted_.erase(found);
  hubs_.receiver().disconnected(number);
  for (const auto& [channel, spoken] : channels) close(spoken);
}

// Nobody here breaks the protocol.
void SimBus::end(trm::ConnectionNumber connection, const Error& reason) {
  wrong("ends a connection: " + to_string(reason));
  const auto found = accepted_.find(connection);
  if (found == accepted_.end() || std::exchange(found->second.ending, true)) return;
  node_.post([this, connection] {
    const auto still = accepted_.find(connection);
    if (still == accepted_.end()) return;
    still->second.connection->close(Side::kAccepted);
    ended(connection);
  });
}

// ---- frames

void SimBus::arrived(trm::ConnectionNumber from, std::string_view header, Payload payload) {
  const auto found = accepted_.find(from);
  if (found == accepted_.end() || found->second.ending) return;
  const SimHubs::Turn turn(hubs_);
  const auto kind = static_cast<FrameKind>(header.front());
  const std::string_view text = header.substr(1);
  delivered_ = false;
  if (kind == FrameKind::kStream) {
    const auto message = trm::decode(text, std::move(payload));
    if (!message) return wrong(to_string(message.error()));
    const auto* told = std::get_if<trm::FromSender>(&*message);
    if (told == nullptr) return wrong("a sender speaks as a receiver");
    hubs_.receiver().told(from, *told);
  } else if (kind == FrameKind::kReferring) {
    std::string_view behind = text;
    const auto reference = trm::take_reference(behind, found->second.heard);
    if (!reference) return wrong(to_string(reference.error()));
    hubs_.receiver().frame(from, behind, *reference, hubs_.now());
    if (delivered_ || cluster_.planted != Planted::kHandedOnIncomplete) return;
    hand_on_early(from, behind, Payload::zeroed(reference->length));
  } else {
    hubs_.receiver().frame(from, header, payload);
    if (delivered_ || cluster_.planted != Planted::kHandedOnIncomplete) return;
    hand_on_early(from, header, std::move(payload));
  }
}

void SimBus::hand_on_early(trm::ConnectionNumber from, std::string_view header, Payload payload) {
  const auto found = accepted_.find(from);
  if (found == accepted_.end()) return;
  ++found->second.handed_on_early;
  take(from, header, std::move(payload));
}

void SimBus::deliver(trm::ConnectionNumber from, std::string_view header, Payload payload) {
  delivered_ = true;
  const auto found = accepted_.find(from);
  if (found == accepted_.end() || found->second.ending) return;
  if (found->second.handed_on_early > 0) {
    --found->second.handed_on_early;
    return;
  }
  take(from, header, std::move(payload));
}

// A frame with all that belongs to it.
void SimBus::take(trm::ConnectionNumber from, std::string_view header, Payload payload) {
  const auto kind = static_cast<FrameKind>(header.front());
  std::string_view text = header.substr(1);
  if (kind == FrameKind::kQuestion) {
    const std::uint64_t channel = take_channel(text);
    return asked(from, channel, {std::string(text), whole(std::move(payload))});
  }
  auto envelope = replication::decode(text, std::move(payload));
  if (!envelope) return wrong(to_string(envelope.error()));
  auto* message = std::get_if<FromCoordinator>(&envelope->message);
  if (message == nullptr) return wrong("a coordinator speaks as a participant");
  if (const auto* write = std::get_if<replication::WriteMessage>(message)) {
    if (const auto fault = payload_fault(write->write)) wrong(*fault);
  }
  take(from, envelope->channel, envelope->volume, std::move(*message));
}

// ---- conversations

void SimBus::take(trm::ConnectionNumber from, std::uint64_t channel, VolumeId volume,
                  FromCoordinator message) {
  auto& channels = accepted_.at(from).channels;
  const bool logger = std::holds_alternative<replication::OpenLog>(message);
  if (logger || std::holds_alternative<replication::OpenStorage>(message)) {
    if (!channels.contains(channel)) open(from, channel, volume, logger);
  }
  const auto found = channels.find(channel);
  const bool closes = std::holds_alternative<replication::CloseChannel>(message);
  if (found == channels.end()) {
    if (!closes) wrong("somebody goes on with what was not begun");
    return;
  }
  const Spoken spoken = found->second;
  if (!closes) return tell(spoken, std::move(message));
  channels.erase(found);
  close(spoken);
}

void SimBus::open(trm::ConnectionNumber from, std::uint64_t channel, VolumeId volume, bool logger) {
  const Directory& directory = cluster_.directory(volume);
  const auto answer = [this, from, channel, volume](const auto& told) {
    const Envelope envelope{channel, volume, replication::widen(told)};
    this->answer(from, header_of(FrameKind::kMessage, replication::encode(envelope)), {});
  };
  const auto id = logger ? directory.log(node_.id())->accept(answer)
                         : directory.storage(node_.id())->host.accept(answer);
  accepted_.at(from).channels[channel] = {volume, logger, id, false};
}

void SimBus::tell(const Spoken& spoken, FromCoordinator message) {
  const Directory& directory = cluster_.directory(spoken.volume);
  if (spoken.logger) {
    auto told = replication::to_logger(std::move(message));
    if (!told) return wrong(to_string(told.error()));
    directory.log(node_.id())->received(spoken.id, std::move(*told));
  } else {
    auto told = replication::to_storage(std::move(message));
    if (!told) return wrong(to_string(told.error()));
    directory.storage(node_.id())->received(spoken.id, std::move(*told));
  }
}

void SimBus::close(const Spoken& spoken) {
  const Directory& directory = cluster_.directory(spoken.volume);
  if (spoken.logger) {
    directory.log(node_.id())->closed(spoken.id);
  } else {
    directory.storage(node_.id())->host.closed(spoken.id);
  }
}

void SimBus::asked(trm::ConnectionNumber from, std::uint64_t channel,
                   const cluster::HistoryFrame& question) {
  auto& channels = accepted_.at(from).channels;
  const auto found = channels.find(channel);
  // Questions overtake what waits for multicast: it may not have been begun.
  if (found == channels.end() || found->second.logger) return;
  Spoken& spoken = found->second;
  SimReads& reads = cluster_.directory(spoken.volume).storage(node_.id())->reads;
  if (!std::exchange(spoken.asks, true)) {
    reads.connected(spoken.id, [this, from, channel](const cluster::HistoryFrame& frame) {
      this->answer(from, header_of(FrameKind::kAnswer, channel, frame.header), frame.payload);
    });
  }
  reads.asked(spoken.id, question);
}

// ---- back

void SimBus::answer(trm::ConnectionNumber to, std::string header, const PayloadSlice& payload) {
  const auto found = accepted_.find(to);
  if (found == accepted_.end() || found->second.ending) return;
  const Accepted& accepted = found->second;
  accepted.connection->send(
      Side::kAccepted, [there = accepted.there, from = node_.id(), number = accepted.there_number,
                        header = std::move(header), payload = received_payload(payload)]() mutable {
        there->answered(from, number, header, std::move(payload));
      });
}

void SimBus::tell(trm::ConnectionNumber to, const trm::FromReceiver& message) {
  const auto* cannot = std::get_if<trm::CannotListen>(&message);
  if (cannot != nullptr && cannot->reason != SimHubs::kDeaf) wrong("refuses: " + cannot->reason);
  answer(to, header_of(FrameKind::kStream, trm::encode(message)), {});
}

}  // namespace mariner::test
