#include "server/peer/frame.h"

#include <fmt/format.h>

#include "proto/bytes.h"

namespace mariner::peer {

FramePrefix pack_prefix(const FrameLengths& lengths) {
  FramePrefix prefix;
  store_le(prefix.data(), lengths.header_bytes);
  store_le(prefix.data() + 4, lengths.payload_bytes);
  return prefix;
}

Result<FrameLengths> parse_prefix(std::span<const std::byte, kFramePrefixBytes> bytes,
                                  const FrameBounds& bounds) {
  const FrameLengths lengths{.header_bytes = load_le<std::uint32_t>(bytes.data()),
                             .payload_bytes = load_le<std::uint32_t>(bytes.data() + 4)};
  if (lengths.header_bytes > bounds.header_bytes_max) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("a frame's header: at most {} bytes are taken, {} were announced",
                             bounds.header_bytes_max, lengths.header_bytes)};
  }
  if (lengths.payload_bytes > bounds.payload_bytes_max) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("a frame's payload: at most {} bytes are taken, {} were announced",
                             bounds.payload_bytes_max, lengths.payload_bytes)};
  }
  if (lengths.header_bytes == 0 && lengths.payload_bytes > 0) {
    return Error{ErrorCode::kProtocol, fmt::format("a frame with {} bytes of payload has no header",
                                                   lengths.payload_bytes)};
  }
  return lengths;
}

}  // namespace mariner::peer
