// What sender and receiver of a stream say to each other over the receiver's own connection
// (PROTOCOL.md 3). The bytes are control.h's.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "proto/error.h"
#include "proto/payload.h"
#include "trm-multicast/datagram.h"
#include "trm-multicast/sealer.h"

namespace mariner::trm {

// Stands in a frame for its payload, which comes, or came, by multicast.
struct Reference {
  StreamId stream;
  Position start;
  std::uint32_t length = 0;  // 1 to kPayloadBytesMax
  std::uint32_t crc = 0;     // CRC32C of the payload
  [[nodiscard]] Position end() const { return {start.value + length}; }
  friend bool operator==(const Reference&, const Reference&) = default;
};

// Bytes [offset, offset + length) of the payload at `start`.
struct Part {
  Position start;
  std::uint32_t offset = 0;
  std::uint32_t length = 0;
  friend bool operator==(const Part&, const Part&) = default;
};

// ---- from the sender

// From one node to another. Who is asked to take part in more refuses.
inline constexpr std::size_t kStreamsMax = 64;

// Listen to this stream. Until Admit nothing but probes is for this receiver.
struct OpenStream {
  StreamId stream;
  std::string group;  // an IPv4 address of 224.0.0.0/4
  std::uint16_t port = 0;
  StreamKey key;
  bool encrypted = false;
  std::uint64_t window_bytes = 0;  // between what is through and what is sent, at most
};
// From `begin` on payloads of the stream may be referred to.
struct Admit {
  StreamId stream;
  Position begin;
};
// From here on, until Admit, nothing is sent for this receiver; what was sent before may still be
// referred to.
struct Dismiss {
  StreamId stream;
};
// Nothing of it is referred to any more.
struct CloseStream {
  StreamId stream;
};
// What was missing; the bytes come with the message.
struct Repair {
  StreamId stream;
  Part part;
  PayloadSlice bytes;
};

// ---- from the receiver

// It does not listen, for this reason: it has no such interface, is not allowed to, ...
struct CannotListen {
  StreamId stream;
  std::string reason;
};
inline constexpr std::size_t kPartsMax = 4096;  // of one Missing
struct Missing {
  StreamId stream;
  std::vector<Part> parts;
};
struct Report {
  StreamId stream;
  Position through;                 // everything below that was referred to is here
  Position highest;                 // end of the highest datagram that came by multicast
  std::uint64_t bytes = 0;          // of bodies that came by multicast, ever
  std::chrono::nanoseconds clock;   // of the receiver, whatever it counts from
  std::uint64_t probes = 0;         // that came, ever
  std::uint32_t largest_probe = 0;  // body, in bytes, of those that came in the last second
  std::uint64_t unsealed = 0;       // datagrams that nobody has sealed with the key, ever
  std::uint64_t frames =
      0;  // of the connection, handed on, whichever way their payloads came, ever
  friend bool operator==(const Report&, const Report&) = default;
};

using FromSender = std::variant<OpenStream, Admit, Dismiss, CloseStream, Repair>;
using FromReceiver = std::variant<CannotListen, Missing, Report>;

// Of which stream it speaks.
template <typename... Messages>
[[nodiscard]] StreamId stream_of(const std::variant<Messages...>& message) {
  return std::visit([](const auto& each) { return each.stream; }, message);
}

}  // namespace mariner::trm
