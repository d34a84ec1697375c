#include "replication/wire.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "proto/replication.pb.h"

namespace mariner::replication {
namespace {

using wire::NodeMessage;

// ---- to bytes

void put_failure(const Error& error, wire::Failure& out) {
  out.set_code(static_cast<std::uint32_t>(error.code));
  out.set_message(error.message.substr(0, kWireTextBytesMax));
}

void put(const OpenLog& m, NodeMessage& out) {
  out.mutable_open_log()->set_epoch(m.epoch.value);
  out.mutable_open_log()->set_begin(m.begin.value);
}
void put(const OpenStorage& m, NodeMessage& out) {
  out.mutable_open_storage()->set_epoch(m.epoch.value);
  if (m.away_since) out.mutable_open_storage()->set_away_since(m.away_since->value);
}
void put(const Resume& m, NodeMessage& out) {
  out.mutable_resume()->set_epoch(m.epoch.value);
  out.mutable_resume()->set_settled(m.settled.value);
  out.mutable_resume()->set_start_over(m.start_over);
}
void put(const WriteMessage& m, NodeMessage& out) {
  wire::Write& write = *out.mutable_write();
  write.set_epoch(m.stamp.epoch.value);
  write.set_sequence(m.stamp.sequence.value);
  write.set_time(m.stamp.time.ns);
  write.set_settled_behind(static_cast<std::int64_t>(m.stamp.sequence.value - m.settled.value));
  write.set_frontier_behind(static_cast<std::int64_t>(m.stamp.sequence.value - m.frontier.value));
  write.set_kind(static_cast<wire::Write::Kind>(m.write.kind));
  write.set_has_head(m.write.has_head);
  write.set_has_tail(m.write.has_tail);
  write.set_first_block(m.write.extent.first.value);
  write.set_blocks(m.write.extent.count.value);
  write.set_target(m.write.target.value);
  write.set_target_time(m.write.target_time.ns);
}
void put(const VoidMessage& m, NodeMessage& out) {
  out.mutable_void_()->set_epoch(m.epoch.value);
  out.mutable_void_()->set_first(m.first.value);
  out.mutable_void_()->set_last(m.last.value);
}
void put(const FrontierMessage& m, NodeMessage& out) {
  out.mutable_frontier()->set_epoch(m.epoch.value);
  out.mutable_frontier()->set_frontier(m.frontier.value);
  out.mutable_frontier()->set_in_an_image(m.in_an_image.value);
}
void put(const RaiseFloor& m, NodeMessage& out) {
  out.mutable_raise_floor()->set_epoch(m.epoch.value);
  out.mutable_raise_floor()->set_time(m.time.ns);
}
void put(const CommitMessage& m, NodeMessage& out) {
  out.mutable_commit()->set_epoch(m.epoch.value);
  out.mutable_commit()->set_settled(m.settled.value);
}
void put(const Harden& m, NodeMessage& out) {
  out.mutable_harden()->set_epoch(m.epoch.value);
  out.mutable_harden()->set_settled(m.settled.value);
}
void put(const BeginAnew& m, NodeMessage& out) {
  out.mutable_begin_anew()->set_epoch(m.epoch.value);
  out.mutable_begin_anew()->set_at(m.at.value);
  out.mutable_begin_anew()->set_time(m.time.ns);
}
void put(const LogLost& m, NodeMessage& out) {
  out.mutable_log_lost()->set_epoch(m.epoch.value);
  out.mutable_log_lost()->set_settled(m.since.value);
}
void put(const CloseChannel& /*m*/, NodeMessage& out) { out.set_close(true); }
void put(const LogOpened& m, NodeMessage& out) {
  wire::LogOpened& opened = *out.mutable_log_opened();
  opened.set_epoch(m.epoch.value);
  opened.set_last(m.last.value);
  for (const SequenceRange& hole : m.holes) {
    wire::Range& range = *opened.add_holes();
    range.set_first(hole.first.value);
    range.set_last(hole.last.value);
  }
  opened.set_floor(m.floor.ns);
  opened.set_frontier(m.frontier.value);
  opened.set_end(m.end.value);
}
void put(const Logged& m, NodeMessage& out) {
  out.mutable_logged()->set_epoch(m.epoch.value);
  out.mutable_logged()->set_through(m.through.value);
}
void put(const LogFailed& m, NodeMessage& out) {
  out.mutable_log_failed()->set_epoch(m.epoch.value);
  out.mutable_log_failed()->set_sequence(m.sequence.value);
  put_failure(m.error, *out.mutable_log_failed()->mutable_failure());
}
void put(const FloorRaised& m, NodeMessage& out) {
  out.mutable_floor_raised()->set_epoch(m.epoch.value);
  out.mutable_floor_raised()->set_time(m.time.ns);
}
void put(const RoomWanted& m, NodeMessage& out) {
  out.mutable_room_wanted()->set_epoch(m.epoch.value);
}
void put(const StorageOpened& m, NodeMessage& out) {
  out.mutable_storage_opened()->set_epoch(m.epoch.value);
  out.mutable_storage_opened()->set_committed(m.committed.value);
  out.mutable_storage_opened()->set_durable(m.durable.value);
  if (m.failed) put_failure(*m.failed, *out.mutable_storage_opened()->mutable_failure());
}
void put(const CaughtUp& m, NodeMessage& out) {
  out.mutable_caught_up()->set_epoch(m.epoch.value);
  out.mutable_caught_up()->set_through(m.through.value);
}
void put(const StorageProgress& m, NodeMessage& out) {
  wire::Progress& progress = *out.mutable_progress();
  progress.set_epoch(m.epoch.value);
  progress.set_resumed(m.resumed.value);
  progress.set_durable(m.durable.value);
  progress.set_granted(m.granted);
  if (m.failed) put_failure(*m.failed, *progress.mutable_failure());
  if (m.catch_up == CatchUpProgress{}) return;
  progress.set_missed_total_bytes(m.catch_up.total_bytes);
  progress.set_missed_left_bytes(m.catch_up.left_bytes);
  progress.set_missed_bytes_per_second(m.catch_up.bytes_per_second);
}
void put(const Hardened& m, NodeMessage& out) {
  out.mutable_hardened()->set_epoch(m.epoch.value);
  out.mutable_hardened()->set_settled(m.settled.value);
  if (m.failed) put_failure(*m.failed, *out.mutable_hardened()->mutable_failure());
}
void put(const Refused& m, NodeMessage& out) {
  out.mutable_refused()->set_promised(m.promised.value);
  put_failure(m.error, *out.mutable_refused()->mutable_failure());
}

// ---- and back

Error wrong(std::string what) {
  return Error{ErrorCode::kProtocol, "a node's message " + std::move(what)};
}

// Nothing: there is no such code.
std::optional<Error> failure_of(const wire::Failure& from) {
  if (from.code() > static_cast<std::uint32_t>(ErrorCode::kMiscompare)) return std::nullopt;
  return Error{static_cast<ErrorCode>(from.code()), from.message().substr(0, kWireTextBytesMax)};
}

Result<WriteMessage> write_of(VolumeId volume, const wire::Write& from, Payload payload) {
  WriteMessage out;
  out.volume = volume;
  out.stamp = {{from.epoch()}, {from.sequence()}, {from.time()}};
  out.settled = {from.sequence() - static_cast<std::uint64_t>(from.settled_behind())};
  out.frontier = {from.sequence() - static_cast<std::uint64_t>(from.frontier_behind())};
  if (!wire::Write::Kind_IsValid(from.kind())) {
    return wrong("has a write of kind " + std::to_string(from.kind()) + ", which there is not");
  }
  out.write.kind = static_cast<WriteKind>(from.kind());
  out.write.has_head = from.has_head();
  out.write.has_tail = from.has_tail();
  out.write.extent = {{from.first_block()}, {from.blocks()}};
  out.write.target = {from.target()};
  out.write.target_time = {from.target_time()};
  const std::size_t bytes = payload.size();
  if (from.blocks() > kWireBlocksMax || from.first_block() > kWireBlocksMax - from.blocks()) {
    return wrong("writes blocks that no volume has");
  }
  if (out.frontier >= out.stamp.sequence) return wrong("has a write that was applied before it");
  // [head] body [tail]: what travels of the body, in blocks.
  const std::uint64_t edges = (from.has_head() ? 1 : 0) + (from.has_tail() ? 1 : 0);
  std::uint64_t expected = 0;
  bool shaped = edges == 0;
  switch (out.write.kind) {
    case WriteKind::kData:
      expected = from.blocks();
      shaped = shaped && from.blocks() > 0;
      break;
    case WriteKind::kRepeated:
      expected = edges + 1;
      shaped = from.blocks() > edges;
      break;
    case WriteKind::kZero:
      expected = edges;
      shaped = from.blocks() > edges;
      break;
    case WriteKind::kRollback:
      shaped = shaped && from.blocks() == 0 && from.target() < from.sequence();
      break;
  }
  if (!shaped || expected > kWirePayloadBytesMax / kBlockBytes || bytes != expected * kBlockBytes) {
    return wrong("has a write of " + std::to_string(from.blocks()) + " blocks with " +
                 std::to_string(bytes) + " bytes of payload: expected " +
                 std::to_string(expected * kBlockBytes));
  }
  out.write.payload = {std::move(payload), 0, bytes};
  return out;
}

Result<LogOpened> opened_of(VolumeId volume, const wire::LogOpened& from) {
  LogOpened out{volume,         {from.epoch()},    {from.last()}, {},
                {from.floor()}, {from.frontier()}, {from.end()}};
  if (from.end() > from.last()) return wrong("tells of an end behind the log's last number");
  if (static_cast<std::size_t>(from.holes_size()) > kWireHolesMax) {
    return wrong("tells of " + std::to_string(from.holes_size()) + " holes: expected " +
                 std::to_string(kWireHolesMax) + " at most");
  }
  std::uint64_t above = 0;
  for (const wire::Range& hole : from.holes()) {
    if (hole.first() <= above || hole.last() < hole.first() || hole.last() > from.last()) {
      return wrong("tells of holes that do not ascend to the end");
    }
    above = hole.last();
    out.holes.push_back({{hole.first()}, {hole.last()}});
  }
  return out;
}

// ---- what can be counted on

bool fit(SequenceNumber sequence) { return sequence.value <= kWireNumberMax; }
bool fit(Epoch epoch) { return epoch.value <= kWireNumberMax; }
bool fit(VersionTime time) { return time.ns <= kWireNumberMax; }
template <typename... Numbers>
bool fit(Epoch epoch, Numbers... numbers) {
  return fit(epoch) && (fit(numbers) && ...);
}

bool counted(const OpenLog& m) { return fit(m.epoch, m.begin); }
bool counted(const OpenStorage& m) { return fit(m.epoch, m.away_since.value_or(SequenceNumber{})); }
bool counted(const Resume& m) { return fit(m.epoch, m.settled); }
bool counted(const WriteMessage& m) {
  return fit(m.stamp.epoch, m.stamp.sequence, m.stamp.time, m.settled, m.frontier, m.write.target,
             m.write.target_time);
}
bool counted(const VoidMessage& m) { return fit(m.epoch, m.first, m.last); }
bool counted(const FrontierMessage& m) { return fit(m.epoch, m.frontier, m.in_an_image); }
bool counted(const RaiseFloor& m) { return fit(m.epoch, m.time); }
bool counted(const CommitMessage& m) { return fit(m.epoch, m.settled); }
bool counted(const Harden& m) { return fit(m.epoch, m.settled); }
bool counted(const BeginAnew& m) { return fit(m.epoch, m.at, m.time); }
bool counted(const LogLost& m) { return fit(m.epoch, m.since); }
bool counted(const CloseChannel& /*m*/) { return true; }
// (Holes and the end are not above the last one.)
bool counted(const LogOpened& m) { return fit(m.epoch, m.last, m.floor, m.frontier); }
bool counted(const Logged& m) { return fit(m.epoch, m.through); }
bool counted(const LogFailed& m) { return fit(m.epoch, m.sequence); }
bool counted(const FloorRaised& m) { return fit(m.epoch, m.time); }
bool counted(const RoomWanted& m) { return fit(m.epoch); }
bool counted(const StorageOpened& m) { return fit(m.epoch, m.committed, m.durable); }
bool counted(const CaughtUp& m) { return fit(m.epoch, m.through); }
bool counted(const StorageProgress& m) { return fit(m.epoch, m.resumed, m.durable); }
bool counted(const Hardened& m) { return fit(m.epoch, m.settled); }
bool counted(const Refused& m) { return fit(m.promised); }

Result<Envelope> parsed(std::string_view header, Payload payload) {
  NodeMessage from;
  if (!from.ParseFromArray(header.data(), static_cast<int>(header.size()))) {
    return wrong("cannot be read (" + std::to_string(header.size()) + " bytes)");
  }
  if (!from.has_write() && payload.size() != 0) {
    return wrong("has " + std::to_string(payload.size()) + " bytes of payload and is no write");
  }
  const VolumeId volume{from.volume()};
  if (volume.value == 0) return wrong("names no volume");
  Envelope out{from.channel(), volume, {}};
  FromCoordinator& forth = out.message.emplace<FromCoordinator>();
  ToCoordinator back;
  switch (from.body_case()) {
    case NodeMessage::kOpenLog:
      forth = OpenLog{volume, {from.open_log().epoch()}, {from.open_log().begin()}};
      return out;
    case NodeMessage::kOpenStorage: {
      OpenStorage open{volume, {from.open_storage().epoch()}};
      if (from.open_storage().has_away_since()) {
        open.away_since = SequenceNumber{from.open_storage().away_since()};
      }
      forth = open;
      return out;
    }
    case NodeMessage::kResume:
      forth = Resume{
          volume, {from.resume().epoch()}, {from.resume().settled()}, from.resume().start_over()};
      return out;
    case NodeMessage::kWrite: {
      Result<WriteMessage> write = write_of(volume, from.write(), std::move(payload));
      if (!write) return write.error();
      forth = std::move(*write);
      return out;
    }
    case NodeMessage::kVoid:
      forth = VoidMessage{
          volume, {from.void_().epoch()}, {from.void_().first()}, {from.void_().last()}};
      return out;
    case NodeMessage::kFrontier:
      forth = FrontierMessage{volume,
                              {from.frontier().epoch()},
                              {from.frontier().frontier()},
                              {from.frontier().in_an_image()}};
      return out;
    case NodeMessage::kRaiseFloor:
      forth = RaiseFloor{volume, {from.raise_floor().epoch()}, {from.raise_floor().time()}};
      return out;
    case NodeMessage::kBeginAnew:
      forth = BeginAnew{volume,
                        {from.begin_anew().epoch()},
                        {from.begin_anew().at()},
                        {from.begin_anew().time()}};
      return out;
    case NodeMessage::kLogLost:
      forth = LogLost{volume, {from.log_lost().epoch()}, {from.log_lost().settled()}};
      return out;
    case NodeMessage::kCommit:
      forth = CommitMessage{volume, {from.commit().epoch()}, {from.commit().settled()}};
      return out;
    case NodeMessage::kHarden:
      forth = Harden{volume, {from.harden().epoch()}, {from.harden().settled()}};
      return out;
    case NodeMessage::kClose: forth = CloseChannel{}; return out;
    case NodeMessage::kLogOpened: {
      Result<LogOpened> opened = opened_of(volume, from.log_opened());
      if (!opened) return opened.error();
      back = std::move(*opened);
      break;
    }
    case NodeMessage::kLogged:
      back = Logged{volume, {from.logged().epoch()}, {from.logged().through()}};
      break;
    case NodeMessage::kLogFailed: {
      const std::optional<Error> failure = failure_of(from.log_failed().failure());
      if (!failure) return wrong("has an error code that there is not");
      back =
          LogFailed{volume, {from.log_failed().epoch()}, {from.log_failed().sequence()}, *failure};
      break;
    }
    case NodeMessage::kFloorRaised:
      back = FloorRaised{volume, {from.floor_raised().epoch()}, {from.floor_raised().time()}};
      break;
    case NodeMessage::kRoomWanted: back = RoomWanted{volume, {from.room_wanted().epoch()}}; break;
    case NodeMessage::kStorageOpened: {
      StorageOpened opened{volume,
                           {from.storage_opened().epoch()},
                           {from.storage_opened().committed()},
                           {from.storage_opened().durable()}};
      if (from.storage_opened().has_failure()) {
        opened.failed = failure_of(from.storage_opened().failure());
        if (!opened.failed) return wrong("has an error code that there is not");
      }
      back = std::move(opened);
      break;
    }
    case NodeMessage::kCaughtUp:
      back = CaughtUp{volume, {from.caught_up().epoch()}, {from.caught_up().through()}};
      break;
    case NodeMessage::kProgress: {
      StorageProgress progress{
          volume,
          {from.progress().epoch()},
          {from.progress().resumed()},
          {from.progress().durable()},
          from.progress().granted(),
          {from.progress().missed_total_bytes(), from.progress().missed_left_bytes(),
           from.progress().missed_bytes_per_second()}};
      if (from.progress().has_failure()) {
        progress.failed = failure_of(from.progress().failure());
        if (!progress.failed) return wrong("has an error code that there is not");
      }
      back = std::move(progress);
      break;
    }
    case NodeMessage::kHardened: {
      Hardened hardened{
          volume, {from.hardened().epoch()}, {from.hardened().settled()}, std::nullopt};
      if (from.hardened().has_failure()) {
        hardened.failed = failure_of(from.hardened().failure());
        if (!hardened.failed) return wrong("has an error code that there is not");
      }
      back = std::move(hardened);
      break;
    }
    case NodeMessage::kRefused: {
      const std::optional<Error> failure = failure_of(from.refused().failure());
      if (!failure) return wrong("has an error code that there is not");
      back = Refused{volume, {from.refused().promised()}, *failure};
      break;
    }
    case NodeMessage::BODY_NOT_SET: return wrong("says nothing that is understood here");
  }
  out.message = std::move(back);
  return out;
}

template <typename Narrow, typename Wide>
Result<Narrow> narrow(Wide message, const char* for_whom) {
  return std::visit(
      [&](auto& each) -> Result<Narrow> {
        if constexpr (std::is_constructible_v<Narrow, decltype(std::move(each))>) {
          return Narrow(std::move(each));
        } else {
          return wrong(std::string("is none for ") + for_whom);
        }
      },
      message);
}

template <typename Wide, typename Narrow>
Wide widened(Narrow message) {
  return std::visit([](auto& each) -> Wide { return std::move(each); }, message);
}

}  // namespace

std::string encode(const Envelope& envelope) {
  NodeMessage out;
  out.set_channel(envelope.channel);
  out.set_volume(envelope.volume.value);
  std::visit([&](const auto& side) { std::visit([&](const auto& m) { put(m, out); }, side); },
             envelope.message);
  return out.SerializeAsString();
}

PayloadSlice payload_of(const Envelope& envelope) {
  const auto* side = std::get_if<FromCoordinator>(&envelope.message);
  const auto* write = side == nullptr ? nullptr : std::get_if<WriteMessage>(side);
  return write == nullptr ? PayloadSlice{} : write->write.payload;
}

Result<Envelope> decode(std::string_view header, Payload payload) {
  Result<Envelope> envelope = parsed(header, std::move(payload));
  if (!envelope) return envelope;
  const auto is_counted = [](const auto& message) { return counted(message); };
  const bool good =
      std::visit([&](const auto& side) { return std::visit(is_counted, side); }, envelope->message);
  if (!good) return wrong("has a number that nobody has counted to");
  return envelope;
}

Result<ToLogger> to_logger(FromCoordinator message) {
  return narrow<ToLogger>(std::move(message), "a logger");
}
Result<ToStorage> to_storage(FromCoordinator message) {
  return narrow<ToStorage>(std::move(message), "a storage node");
}
Result<FromLogger> from_logger(ToCoordinator message) {
  return narrow<FromLogger>(std::move(message), "who coordinates, of a logger");
}
Result<FromStorage> from_storage(ToCoordinator message) {
  return narrow<FromStorage>(std::move(message), "who coordinates, of a storage node");
}
FromCoordinator widen(ToLogger message) { return widened<FromCoordinator>(std::move(message)); }
FromCoordinator widen(ToStorage message) { return widened<FromCoordinator>(std::move(message)); }
ToCoordinator widen(FromLogger message) { return widened<ToCoordinator>(std::move(message)); }
ToCoordinator widen(FromStorage message) { return widened<ToCoordinator>(std::move(message)); }

}  // namespace mariner::replication
