// A datagram of the multicast transport. PROTOCOL.md 2 gives every byte.
//
//   u8 version and kind | u24 length - 1 | u32 stream | u64 start | u32 offset | body | tag
//
// The stream is the sequence of all payloads that one sender has sent to one set of receivers, one
// after the other; a position is a byte of it. A datagram carries part of one payload and says
// where that begins and how long it is, so that whoever receives it first can make room for the
// whole. Numbers are little endian. Foreign input: parse() is where it is checked.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "proto/units.h"

namespace mariner::trm {

// A byte of a stream.
using Position = Ordinal<struct PositionTag>;

// Names a stream among those of its sender, at random. Never reused by it.
struct StreamId {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(const StreamId&, const StreamId&) = default;
};

inline constexpr std::size_t kDatagramHeaderBytes = 20;
inline constexpr std::size_t kDatagramTagBytes = 12;
inline constexpr std::size_t kDatagramOverheadBytes = kDatagramHeaderBytes + kDatagramTagBytes;
inline constexpr std::uint32_t kPayloadBytesMax = 16u << 20;
// What UDP takes over IPv4.
inline constexpr std::size_t kDatagramBytesMax = 65'507;

enum class DatagramKind : std::uint8_t {
  kPayload = 1,
  kProbe = 2,  // shows that multicast gets through; its positions are never referred to
};

struct DatagramHeader {
  StreamId stream;
  DatagramKind kind = DatagramKind::kPayload;
  Position start;            // of the payload
  std::uint32_t length = 0;  // of the payload, 1 to kPayloadBytesMax
  std::uint32_t offset = 0;  // of the body in the payload

  [[nodiscard]] Position position() const { return {start.value + offset}; }
  friend bool operator==(const DatagramHeader&, const DatagramHeader&) = default;
};

// What a received datagram says, in place: nothing of it is true before its tag is checked.
struct SealedDatagram {
  DatagramHeader header;
  std::span<const std::byte> header_bytes;
  std::span<const std::byte> body;  // as it was sent: encrypted, perhaps
  std::span<const std::byte> tag;
};

// Sealed datagrams one after the other, of `datagram_bytes` each, the last one maybe shorter.
struct DatagramBatch {
  std::span<const std::byte> bytes;
  std::size_t datagram_bytes = 0;
};

using DatagramHeaderBytes = std::array<std::byte, kDatagramHeaderBytes>;
[[nodiscard]] DatagramHeaderBytes pack(const DatagramHeader& header);

// Nothing: it is none of ours (too short, another version, beyond the bounds, an empty body, or one
// that goes beyond its payload's end). Cheap, whatever comes.
[[nodiscard]] std::optional<SealedDatagram> parse(std::span<const std::byte> datagram);

}  // namespace mariner::trm
