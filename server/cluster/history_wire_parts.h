// What questions about the history and their answers have in common on the wire.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "proto/history.pb.h"
#include "server/cluster/history_wire.h"

namespace mariner::cluster::history_wire {

inline Error wrong(std::string what) {
  return Error{ErrorCode::kProtocol, "a message about the history " + std::move(what)};
}

inline void put(const BlockRange& range, wire::Blocks& out) {
  out.set_first(range.first.value);
  out.set_count(range.count.value);
}

// Nothing: it is empty, or no volume has such blocks.
inline std::optional<BlockRange> range_of(const wire::Blocks& from) {
  constexpr std::uint64_t kBlocksMax = UINT64_MAX / kBlockBytes;
  if (from.count() == 0 || from.count() > kBlocksMax || from.first() > kBlocksMax - from.count()) {
    return std::nullopt;
  }
  return BlockRange{{from.first()}, {from.count()}};
}

// `body` sets of the message, and of the bytes behind it, what one of the alternatives is.
template <typename Message, typename What, typename Body>
HistoryFrame encoded(VolumeId volume, std::uint64_t id, const What& what, const Body& body) {
  Message out;
  HistoryFrame frame;
  out.set_volume(volume.value);
  out.set_id(id);
  std::visit([&](const auto& each) { body(each, out, frame.payload); }, what);
  frame.header = out.SerializeAsString();
  return frame;
}

// kProtocol: it cannot be read.
template <typename Message>
Result<Message> parsed(std::string_view header) {
  Message from;
  if (from.ParseFromArray(header.data(), static_cast<int>(header.size()))) return from;
  return wrong("cannot be read (" + std::to_string(header.size()) + " bytes)");
}

}  // namespace mariner::cluster::history_wire
