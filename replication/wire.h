// The nodes' messages as bytes: a header (proto/replication.proto) and, behind it, a write's
// payload.
//
// Parsed once, here, into the checked types that the roles take: what decode() returns is
// consistent in itself (a write's payload fits its extent, ranges ascend, lengths and numbers are
// bounded), whatever was received. What it means in the conversation, the roles judge.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "proto/error.h"
#include "proto/payload.h"
#include "replication/cluster_messages.h"

namespace mariner::replication {

// The largest payload of a write: what a log record takes.
inline constexpr std::size_t kWirePayloadBytesMax = 4u << 20;
// No volume has more blocks, and an entry of an index has no room for a larger number of them.
inline constexpr std::uint64_t kWireBlocksMax = (std::uint64_t{1} << 40) - 1;
// Numbers, epochs and times (ns) are not above: so none of them, and no sum of a few, overflows.
inline constexpr std::uint64_t kWireNumberMax = INT64_MAX;
inline constexpr std::size_t kWireHolesMax = 1024;
inline constexpr std::size_t kWireTextBytesMax = 1024;

// The conversation is over.
struct CloseChannel {};

// From a coordinator. Both kinds of participants take writes and voids: to whom they go, the
// channel says, which began with the one opening or the other.
using FromCoordinator =
    std::variant<OpenLog, OpenStorage, Resume, WriteMessage, VoidMessage, FrontierMessage,
                 RaiseFloor, CommitMessage, Harden, BeginAnew, LogLost, CloseChannel>;
using ToCoordinator = std::variant<LogOpened, Logged, LogFailed, FloorRaised, RoomWanted,
                                   StorageOpened, CaughtUp, StorageProgress, Hardened, Refused>;

struct Envelope {
  std::uint64_t channel = 0;
  VolumeId volume;
  std::variant<FromCoordinator, ToCoordinator> message;
};

// The header. The payload of a write is to follow as it is (payload_of()). WriteRequest::changed
// does not travel.
[[nodiscard]] std::string encode(const Envelope& envelope);
[[nodiscard]] PayloadSlice payload_of(const Envelope& envelope);

// kProtocol, with what was expected and what was found.
[[nodiscard]] Result<Envelope> decode(std::string_view header, Payload payload);

// The same message for the one participant or the other; kProtocol when it is none of his.
[[nodiscard]] Result<ToLogger> to_logger(FromCoordinator message);
[[nodiscard]] Result<ToStorage> to_storage(FromCoordinator message);
[[nodiscard]] Result<FromLogger> from_logger(ToCoordinator message);
[[nodiscard]] Result<FromStorage> from_storage(ToCoordinator message);
[[nodiscard]] FromCoordinator widen(ToLogger message);
[[nodiscard]] FromCoordinator widen(ToStorage message);
[[nodiscard]] ToCoordinator widen(FromLogger message);
[[nodiscard]] ToCoordinator widen(FromStorage message);

}  // namespace mariner::replication
