#include "trm-multicast/control.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/trm.pb.h"

namespace mariner::trm {
namespace {

constexpr std::size_t kTextBytesMax = 1024;
// The stream is that of the reference before, or follows.
constexpr std::uint8_t kOtherStream = 1;
// The start is the end of the one before, or follows.
constexpr std::uint8_t kOtherStart = 2;

Error bad(const std::string& what) {
  return {ErrorCode::kProtocol, "a message about a multicast stream " + what};
}

Error bad_reference() { return bad("stands in a frame's header where a reference does"); }

template <typename Bytes>
std::string text_of(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void fill(wire::TrmMessage& to, const OpenStream& message) {
  wire::OpenStream& open = *to.mutable_open();
  open.set_group(message.group);
  open.set_port(message.port);
  open.set_key(text_of(message.key.key));
  open.set_salt(text_of(message.key.salt));
  open.set_encrypted(message.encrypted);
  open.set_window_bytes(message.window_bytes);
}
void fill(wire::TrmMessage& to, const Admit& message) {
  to.mutable_admit()->set_begin(message.begin.value);
}
void fill(wire::TrmMessage& to, const Dismiss& /*message*/) { to.mutable_dismiss(); }
void fill(wire::TrmMessage& to, const CloseStream& /*message*/) { to.mutable_close(); }
void fill(wire::TrmMessage& to, const Repair& message) {
  to.mutable_repair()->set_start(message.part.start.value);
  to.mutable_repair()->set_offset(message.part.offset);
}
void fill(wire::TrmMessage& to, const CannotListen& message) {
  to.mutable_cannot_listen()->set_reason(message.reason.substr(0, kTextBytesMax));
}
void fill(wire::TrmMessage& to, const Missing& message) {
  for (const Part& part : message.parts) {
    wire::Missing::Part& one = *to.mutable_missing()->add_parts();
    one.set_start(part.start.value);
    one.set_offset(part.offset);
    one.set_length(part.length);
  }
}
void fill(wire::TrmMessage& to, const Report& message) {
  wire::Report& report = *to.mutable_report();
  report.set_through(message.through.value);
  report.set_highest(message.highest.value);
  report.set_bytes(message.bytes);
  report.set_clock_ns(static_cast<std::uint64_t>(message.clock.count()));
  report.set_probes(message.probes);
  report.set_largest_probe(message.largest_probe);
  report.set_unsealed(message.unsealed);
  report.set_frames(message.frames);
}

template <typename Message>
std::string encode_any(const Message& message) {
  wire::TrmMessage out;
  std::visit(
      [&](const auto& each) {
        out.set_stream(each.stream.value);
        fill(out, each);
      },
      message);
  return out.SerializeAsString();
}

Result<Control> open_of(StreamId stream, const wire::OpenStream& from) {
  OpenStream open{.stream = stream,
                  .group = from.group(),
                  .port = static_cast<std::uint16_t>(from.port()),
                  .key = {},
                  .encrypted = from.encrypted(),
                  .window_bytes = from.window_bytes()};
  if (from.key().size() != open.key.key.size() || from.salt().size() != open.key.salt.size()) {
    return bad("opens it with a key of " + std::to_string(from.key().size()) + " and a salt of " +
               std::to_string(from.salt().size()) + " bytes, not 16 and 4");
  }
  if (from.port() == 0 || from.port() > 65'535 || from.group().empty() ||
      from.group().size() > kTextBytesMax) {
    return bad("opens it on port " + std::to_string(from.port()) + " of a group of " +
               std::to_string(from.group().size()) + " characters");
  }
  if (open.window_bytes == 0 || open.window_bytes > kWindowBytesMax) {
    return bad("opens it with a window of " + std::to_string(open.window_bytes) +
               " bytes, not 1 to " + std::to_string(kWindowBytesMax));
  }
  std::memcpy(open.key.key.data(), from.key().data(), open.key.key.size());
  std::memcpy(open.key.salt.data(), from.salt().data(), open.key.salt.size());
  return Control(FromSender(std::move(open)));
}

Result<Control> repair_of(StreamId stream, const wire::Repair& from, Payload payload) {
  const std::size_t bytes = payload.size();
  if (bytes == 0 || bytes > kPayloadBytesMax || from.offset() > kPayloadBytesMax - bytes) {
    return bad("repairs " + std::to_string(bytes) + " bytes from " + std::to_string(from.offset()) +
               " on of a payload, beyond " + std::to_string(kPayloadBytesMax));
  }
  return Control(
      FromSender(Repair{stream,
                        {{from.start()}, from.offset(), static_cast<std::uint32_t>(bytes)},
                        PayloadSlice{std::move(payload), 0, bytes}}));
}

Result<Control> missing_of(StreamId stream, const wire::Missing& from) {
  if (from.parts_size() == 0 || static_cast<std::size_t>(from.parts_size()) > kPartsMax) {
    return bad("misses " + std::to_string(from.parts_size()) + " parts, not 1 to " +
               std::to_string(kPartsMax));
  }
  Missing missing{stream, {}};
  for (const wire::Missing::Part& part : from.parts()) {
    missing.parts.push_back({{part.start()}, part.offset(), part.length()});
  }
  return Control(FromReceiver(std::move(missing)));
}

Control report_of(StreamId stream, const wire::Report& from) {
  return FromReceiver(Report{
      .stream = stream,
      .through = {from.through()},
      .highest = {from.highest()},
      .bytes = from.bytes(),
      .clock = std::chrono::nanoseconds(static_cast<std::int64_t>(from.clock_ns() & INT64_MAX)),
      .probes = from.probes(),
      .largest_probe = from.largest_probe(),
      .unsealed = from.unsealed(),
      .frames = from.frames()});
}

// LEB128, as protobuf has it.
void append_number(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

std::optional<std::uint64_t> take_number(std::string_view& from) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(from.front());
    from.remove_prefix(1);
    if (shift == 63 && byte > 1) return std::nullopt;
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> take_word(std::string_view& from) {
  if (from.size() < 4) return std::nullopt;
  const auto value = load_le<std::uint32_t>(from.data());
  from.remove_prefix(4);
  return value;
}

void append_word(std::string& to, std::uint32_t value) {
  char bytes[4];
  store_le(bytes, value);
  to.append(bytes, sizeof bytes);
}

}  // namespace

std::string encode(const FromSender& message) { return encode_any(message); }
std::string encode(const FromReceiver& message) { return encode_any(message); }

PayloadSlice payload_of(const FromSender& message) {
  const auto* repair = std::get_if<Repair>(&message);
  return repair == nullptr ? PayloadSlice{} : repair->bytes;
}

Result<Control> decode(std::string_view header, Payload payload) {
  wire::TrmMessage message;
  if (!message.ParseFromArray(header.data(), static_cast<int>(header.size()))) {
    return bad("is not one: " + std::to_string(header.size()) + " bytes that cannot be parsed");
  }
  const StreamId stream{message.stream()};
  if (payload && message.body_case() != wire::TrmMessage::kRepair) {
    return bad("that is no repair comes with " + std::to_string(payload.size()) + " bytes");
  }
  switch (message.body_case()) {
    case wire::TrmMessage::kOpen: return open_of(stream, message.open());
    case wire::TrmMessage::kAdmit:
      return Control(FromSender(Admit{stream, {message.admit().begin()}}));
    case wire::TrmMessage::kDismiss: return Control(FromSender(Dismiss{stream}));
    case wire::TrmMessage::kClose: return Control(FromSender(CloseStream{stream}));
    case wire::TrmMessage::kRepair: return repair_of(stream, message.repair(), std::move(payload));
    case wire::TrmMessage::kCannotListen:
      return Control(FromReceiver(
          CannotListen{stream, message.cannot_listen().reason().substr(0, kTextBytesMax)}));
    case wire::TrmMessage::kMissing: return missing_of(stream, message.missing());
    case wire::TrmMessage::kReport: return report_of(stream, message.report());
    case wire::TrmMessage::BODY_NOT_SET: break;
  }
  return bad("says nothing that is known");
}

void append(std::string& to, const Reference& reference, ReferenceCoder& coder) {
  CHECK(reference.length >= 1 && reference.length <= kPayloadBytesMax);
  const bool other_stream = reference.stream != coder.before.stream;
  const bool other_start = reference.start != coder.before.end();
  to += static_cast<char>((other_stream ? kOtherStream : 0) | (other_start ? kOtherStart : 0));
  if (other_stream) append_word(to, reference.stream.value);
  if (other_start) append_number(to, reference.start.value);
  append_number(to, reference.length);
  append_word(to, reference.crc);
  coder.before = reference;
}

Result<Reference> take_reference(std::string_view& from, ReferenceCoder& coder) {
  if (from.empty()) return bad_reference();
  const auto flags = static_cast<std::uint8_t>(from.front());
  from.remove_prefix(1);
  if ((flags & ~(kOtherStream | kOtherStart)) != 0) return bad_reference();
  Reference reference = coder.before;
  reference.start = coder.before.end();
  if ((flags & kOtherStream) != 0) {
    const auto stream = take_word(from);
    if (!stream) return bad_reference();
    reference.stream = {*stream};
  }
  if ((flags & kOtherStart) != 0) {
    const auto start = take_number(from);
    if (!start) return bad_reference();
    reference.start = {*start};
  }
  const auto length = take_number(from);
  const auto crc = take_word(from);
  if (!length || !crc || *length == 0 || *length > kPayloadBytesMax ||
      reference.start.value > UINT64_MAX - 2 * std::uint64_t{kPayloadBytesMax}) {
    return bad_reference();
  }
  reference.length = static_cast<std::uint32_t>(*length);
  reference.crc = *crc;
  coder.before = reference;
  return reference;
}

}  // namespace mariner::trm
