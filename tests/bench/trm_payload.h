// The payloads of mariner-trm-load: each block says which write it belongs to, so that whoever
// receives one that was joined wrongly notices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "proto/bytes.h"
#include "proto/payload.h"

namespace mariner::bench {

// How much of each block is written, and looked at.
enum class TrmContent : std::uint8_t { kStamps, kEveryWord };

namespace trm_payload {

inline std::uint64_t word(std::uint64_t write, std::size_t at) {
  return (write * 0x9e3779b97f4a7c15u) ^ (at * 0xc2b2ae3d27d4eb4fu);
}
inline std::size_t step(TrmContent content) {
  return content == TrmContent::kStamps ? kBlockBytes : sizeof(std::uint64_t);
}

}  // namespace trm_payload

// Of a multiple of 8 bytes.
[[nodiscard]] inline Payload make_trm_payload(std::uint64_t write, std::size_t bytes,
                                              TrmContent content) {
  Payload payload = Payload::allocate(bytes);
  for (std::size_t at = 0; at < bytes; at += trm_payload::step(content)) {
    store_le(payload.data() + at, trm_payload::word(write, at));
  }
  return payload;
}

[[nodiscard]] inline bool is_trm_payload(std::uint64_t write, std::span<const std::byte> bytes,
                                         TrmContent content) {
  for (std::size_t at = 0; at < bytes.size(); at += trm_payload::step(content)) {
    if (load_le<std::uint64_t>(bytes.data() + at) != trm_payload::word(write, at)) return false;
  }
  return true;
}

}  // namespace mariner::bench
