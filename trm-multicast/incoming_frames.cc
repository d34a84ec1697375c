#include "trm-multicast/incoming_frames.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::trm {

Result<IncomingFrames::Stream*> IncomingFrames::stream(StreamId id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) {
    return Error{ErrorCode::kProtocol,
                 "multicast stream " + std::to_string(id.value) + " was not opened"};
  }
  return &found->second;
}

Result<void> IncomingFrames::check_room() const {
  if (frames_.size() < options_.held_frames_max && held_bytes_ <= options_.held_bytes_max) {
    return {};
  }
  return Error{ErrorCode::kLimit,
               std::to_string(frames_.size()) + " frames with " + std::to_string(held_bytes_) +
                   " bytes wait behind one whose payload has not come by multicast"};
}

Result<void> IncomingFrames::frame(std::string_view header, Payload payload) {
  if (const Result<void> room = check_room(); !room) return room;
  held_bytes_ += header.size() + payload.size();
  frames_.push_back({{std::string(header), std::move(payload)}, std::nullopt});
  return {};
}

Result<void> IncomingFrames::frame(std::string_view header, const Reference& reference,
                                   Nanoseconds now) {
  if (const Result<void> room = check_room(); !room) return room;
  const Result<Stream*> known = stream(reference.stream);
  if (!known) return known.error();
  if (const Result<void> referred = (*known)->receiver.refer(reference, now); !referred) {
    return referred;
  }
  held_bytes_ += header.size();
  frames_.push_back({{std::string(header), {}}, reference});
  return {};
}

Result<void> IncomingFrames::open(const OpenStream& message) {
  if (streams_.contains(message.stream)) {
    return Error{ErrorCode::kProtocol, "multicast stream " + std::to_string(message.stream.value) +
                                           " is opened a second time"};
  }
  if (streams_.size() >= options_.streams_max) {
    return Error{ErrorCode::kLimit, "more than " + std::to_string(options_.streams_max) +
                                        " multicast streams on one connection"};
  }
  streams_.try_emplace(message.stream, message, options_.stream);
  return {};
}

Result<void> IncomingFrames::told(const FromSender& message) {
  if (const auto* open_stream = std::get_if<OpenStream>(&message)) return open(*open_stream);
  const Result<Stream*> known = stream(stream_of(message));
  if (!known) return known.error();
  StreamReceiver& receiver = (*known)->receiver;
  if (const auto* admit = std::get_if<Admit>(&message)) {
    (*known)->changed = true;
    return receiver.admit(admit->begin);
  }
  if (std::holds_alternative<Dismiss>(message)) {
    receiver.dismiss();
    return {};
  }
  if (const auto* repair = std::get_if<Repair>(&message)) {
    (*known)->changed = true;
    return receiver.repair(*repair);
  }
  // Closed. A frame that still waits for its payload will have none.
  if (std::ranges::any_of(frames_, [&](const Held& held) {
        return held.reference && held.reference->stream == receiver.id();
      })) {
    return Error{ErrorCode::kProtocol, "multicast stream " + std::to_string(receiver.id().value) +
                                           " is closed while a frame waits for it"};
  }
  repaired_bytes_ += receiver.repaired_bytes();
  streams_.erase(receiver.id());
  return {};
}

std::optional<StreamReceiver::Taken> IncomingFrames::datagram(const SealedDatagram& datagram,
                                                              Nanoseconds now) {
  const auto found = streams_.find(datagram.header.stream);
  if (found == streams_.end()) return std::nullopt;
  const StreamReceiver::Taken taken = found->second.receiver.datagram(datagram, now);
  found->second.changed |=
      taken == StreamReceiver::Taken::kNew || taken == StreamReceiver::Taken::kProbe;
  return taken;
}

Result<std::optional<IncomingFrames::Frame>> IncomingFrames::take() {
  if (frames_.empty()) return std::optional<Frame>();
  Held& next = frames_.front();
  if (next.reference) {
    Stream& from = streams_.at(next.reference->stream);
    Result<Payload> payload = from.receiver.complete(*next.reference);
    if (!payload) return payload.error();
    if (!*payload) return std::optional<Frame>();
    from.changed = true;
    next.frame.payload = std::move(*payload);
  } else {
    held_bytes_ -= next.frame.payload.size();
  }
  held_bytes_ -= next.frame.header.size();
  std::optional<Frame> frame = std::move(next.frame);
  frames_.pop_front();
  ++handed_;
  return frame;
}

std::vector<FromReceiver> IncomingFrames::take_answers(Nanoseconds now) {
  std::vector<FromReceiver> answers;
  for (auto& [id, each] : streams_) {
    each.receiver.tidy(now);
    while (auto missing = each.receiver.missing(now)) answers.emplace_back(std::move(*missing));
    if (each.receiver.unreported_bytes() < options_.report_bytes &&
        !(each.changed && now - each.reported >= options_.report_interval)) {
      continue;
    }
    Report report = each.receiver.report(now);
    report.frames = handed_;
    answers.emplace_back(report);
    each.receiver.reported();
    each.changed = false;
    each.reported = now;
  }
  return answers;
}

std::optional<IncomingFrames::Nanoseconds> IncomingFrames::deadline() const {
  std::optional<Nanoseconds> first;
  const auto note = [&](std::optional<Nanoseconds> at) {
    if (at && (!first || *at < *first)) first = at;
  };
  for (const auto& [id, each] : streams_) {
    note(each.receiver.deadline());
    if (each.changed) note(each.reported + options_.report_interval);
  }
  return first;
}

std::uint64_t IncomingFrames::repaired_bytes() const {
  std::uint64_t bytes = repaired_bytes_;
  for (const auto& [id, each] : streams_) bytes += each.receiver.repaired_bytes();
  return bytes;
}

}  // namespace mariner::trm
