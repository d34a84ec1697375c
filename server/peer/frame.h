// A frame: what nodes send each other. PROTOCOL.md 2 gives every byte.
//
//   u32 header bytes | u32 payload bytes | header | payload        (little endian)
//
// The header is a serialized message, the payload raw bytes: who receives it puts them where a disk
// can take them, without having looked at them. Eight zero bytes are a heartbeat.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "proto/error.h"

namespace mariner::peer {

inline constexpr std::size_t kFramePrefixBytes = 8;

inline constexpr std::uint32_t kFrameHeaderBytesMax = 64 * 1024;
// A record's payload has at most 4 MiB (logging/record.h), because a record fits into a track; who
// catches up is sent several in one frame, with what describes them in 64 KiB.
inline constexpr std::uint32_t kFramePayloadBytesMax = 16 * 1024 * 1024 + 64 * 1024;

struct FrameLengths {
  std::uint32_t header_bytes = 0;
  std::uint32_t payload_bytes = 0;

  [[nodiscard]] bool heartbeat() const { return header_bytes == 0 && payload_bytes == 0; }
  friend bool operator==(const FrameLengths&, const FrameLengths&) = default;
};

// What a receiver takes. It says so to nobody: what is larger ends the connection.
struct FrameBounds {
  std::uint32_t header_bytes_max = kFrameHeaderBytesMax;
  std::uint32_t payload_bytes_max = kFramePayloadBytesMax;
};

using FramePrefix = std::array<std::byte, kFramePrefixBytes>;

[[nodiscard]] FramePrefix pack_prefix(const FrameLengths& lengths);

// kProtocol for a frame that is beyond the bounds, or that has a payload and no header.
[[nodiscard]] Result<FrameLengths> parse_prefix(std::span<const std::byte, kFramePrefixBytes> bytes,
                                                const FrameBounds& bounds);

}  // namespace mariner::peer
