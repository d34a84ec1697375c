// The frames of the simulated bus: a kind, for questions and answers their conversation, and what
// follows.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "proto/check.h"
#include "proto/payload.h"

namespace mariner::test {

// As the PeerBus has them.
enum class FrameKind : char {
  kMessage = 'M',
  kQuestion = 'Q',
  kAnswer = 'A',
  kReferring = 'R',
  kStream = 'T',
};

inline std::string header_of(FrameKind kind, std::string_view text) {
  std::string header;
  header.reserve(text.size() + 1);
  header += static_cast<char>(kind);
  return header.append(text);
}

// A question, or an answer, goes with its conversation.
inline std::string header_of(FrameKind kind, std::uint64_t channel, std::string_view text) {
  std::string header(1, static_cast<char>(kind));
  header.append(reinterpret_cast<const char*>(&channel), sizeof channel);
  return header.append(text);
}

inline std::uint64_t take_channel(std::string_view& text) {
  std::uint64_t channel = 0;
  CHECK(text.size() >= sizeof channel);
  std::memcpy(&channel, text.data(), sizeof channel);
  text.remove_prefix(sizeof channel);
  return channel;
}

inline PayloadSlice whole(Payload payload) {
  const std::size_t bytes = payload.size();
  return {std::move(payload), 0, bytes};
}

}  // namespace mariner::test
