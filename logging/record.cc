#include "logging/record.h"

#include <cstring>

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::logging {
namespace {

// FORMAT.md section 4.
enum Offset : std::size_t {
  kType = 0,
  kReserved = 1,
  kFlags = 2,
  kCodec = 4,
  kPreviousSlot = 6,
  kVolume = 8,
  kPayloadBlocks = 12,
  kEpoch = 16,
  kSequence = 24,
  kTime = 32,
  kFirst = 40,
  kCount = 48,
  kPayloadOffset = 56,
  kReserved2 = 60,
  kTargetSequence = 64,
  kTargetTime = 72,
  kPreviousSector = 80,
  kFrontier = 88,
  kSettled = 96,
  kOrdinal = 104,
  kEnd = 112,
};
static_assert(kEnd == kRecordHeaderBytes);

std::uint32_t edge_blocks(std::uint16_t flags) {
  return ((flags & kHasHead) != 0 ? 1u : 0u) + ((flags & kHasTail) != 0 ? 1u : 0u);
}

}  // namespace

std::string_view record_type_name(RecordType type) noexcept {
  switch (type) {
    case RecordType::kWrite: return "write";
    case RecordType::kZero: return "zero";
    case RecordType::kBeforeImage: return "before-image";
    case RecordType::kVoid: return "void";
    case RecordType::kRollback: return "rollback";
    case RecordType::kGap: return "gap";
    case RecordType::kMark: return "mark";
    case RecordType::kRelocated: return "relocated";
    case RecordType::kEncoded: return "encoded";
    case RecordType::kRebase: return "rebase";
    case RecordType::kWithdrawal: return "withdrawal";
  }
  return "unknown";
}

bool record_is_consistent(const Record& r) noexcept {
  if ((r.flags & ~kKnownFlags) != 0 || r.codec != 0) return false;
  if (r.payload_blocks > kRecordPayloadBlocksMax) return false;
  constexpr std::uint64_t kVolumeBlocksMax = UINT64_MAX / kBlockBytes;
  if (r.extent.count.value > kVolumeBlocksMax ||
      r.extent.first.value > kVolumeBlocksMax - r.extent.count.value) {
    return false;
  }
  const std::uint64_t extent = r.extent.count.value;
  const std::uint32_t edges = edge_blocks(r.flags);
  switch (r.type) {
    case RecordType::kWrite:
      if ((r.flags & kReplaces) != 0) return false;
      if ((r.flags & kRepeats) != 0) return r.payload_blocks == edges + 1 && extent > edges;
      return r.flags == 0 && extent > 0 && extent == r.payload_blocks;
    case RecordType::kBeforeImage:
      return (r.flags & ~kReplaces) == 0 && extent > 0 && extent == r.payload_blocks;
    case RecordType::kRelocated:
      return r.flags == 0 && extent > 0 && (r.payload_blocks == 0 || extent == r.payload_blocks) &&
             r.sequence.value == 0 && r.target_time.ns >= r.target_sequence.value;
    case RecordType::kZero:
      return (r.flags & (kRepeats | kReplaces)) == 0 && extent > edges && r.payload_blocks == edges;
    case RecordType::kVoid:
    case RecordType::kGap:
      return r.flags == 0 && r.payload_blocks == 0 && extent == 0 &&
             r.target_sequence >= r.sequence;
    case RecordType::kRollback:
      return r.flags == 0 && r.payload_blocks == 0 && extent == 0 && r.target_sequence < r.sequence;
    case RecordType::kMark: return r.flags == 0 && extent == 0 && r.payload_blocks == 1;
    case RecordType::kEncoded: return false;  // no codec is defined yet
    case RecordType::kRebase: return r.flags == 0 && r.payload_blocks == 0 && extent > 0;
    case RecordType::kWithdrawal:
      return r.flags == 0 && r.payload_blocks == 0 && extent == 0 && r.volume.value == 0 &&
             r.target_sequence.value > 0;
  }
  return false;
}

RecordPieces pieces_of(const Record& r) {
  RecordPieces pieces;
  if (r.extent.empty() || r.type == RecordType::kRebase) return pieces;
  if (r.type == RecordType::kRelocated && r.payload_blocks == 0) {
    pieces.piece[pieces.count++] = {RecordPiece::Kind::kZero, r.extent, 0};
    return pieces;
  }
  if ((r.flags & (kRepeats | kHasHead | kHasTail)) == 0 && r.type != RecordType::kZero) {
    pieces.piece[pieces.count++] = {RecordPiece::Kind::kPayload, r.extent, 0};
    return pieces;
  }
  const bool head = (r.flags & kHasHead) != 0;
  const bool tail = (r.flags & kHasTail) != 0;
  std::uint32_t payload = 0;
  Lbn at = r.extent.first;
  if (head) {
    pieces.piece[pieces.count++] = {RecordPiece::Kind::kPayload, {at, {1}}, payload++};
    at = at + BlockCount{1};
  }
  const Lbn body_end{r.extent.end().value - (tail ? 1 : 0)};
  const bool repeats = (r.flags & kRepeats) != 0;
  pieces.piece[pieces.count++] = {repeats ? RecordPiece::Kind::kRepeated : RecordPiece::Kind::kZero,
                                  BlockRange::between(at, body_end), payload};
  payload += repeats ? 1 : 0;
  if (tail) {
    pieces.piece[pieces.count++] = {RecordPiece::Kind::kPayload, {body_end, {1}}, payload};
  }
  return pieces;
}

void pack_record(const Record& r, std::span<const std::uint32_t> block_crcs, std::byte* to) {
  CHECK(record_is_consistent(r));
  CHECK(block_crcs.size() == r.payload_blocks);
  std::memset(to, 0, kRecordHeaderBytes);
  store_le(to + kType, static_cast<std::uint8_t>(r.type));
  store_le(to + kFlags, r.flags);
  store_le(to + kCodec, r.codec);
  store_le(to + kPreviousSlot, r.previous_slot);
  store_le(to + kVolume, r.volume.value);
  store_le(to + kPayloadBlocks, r.payload_blocks);
  store_le(to + kEpoch, r.epoch.value);
  store_le(to + kSequence, r.sequence.value);
  store_le(to + kTime, r.time.ns);
  store_le(to + kFirst, r.extent.first.value);
  store_le(to + kCount, r.extent.count.value);
  store_le(to + kPayloadOffset, r.payload_offset);
  store_le(to + kTargetSequence, r.target_sequence.value);
  store_le(to + kTargetTime, r.target_time.ns);
  store_le(to + kPreviousSector, r.previous_sector);
  store_le(to + kFrontier, r.frontier.value);
  store_le(to + kSettled, r.settled.value);
  store_le(to + kOrdinal, r.ordinal);
  if (!block_crcs.empty()) {
    std::memcpy(to + kRecordHeaderBytes, block_crcs.data(), block_crcs.size_bytes());
  }
}

std::optional<UnpackedRecord> unpack_record(std::span<const std::byte> from) {
  if (from.size() < kRecordHeaderBytes) return std::nullopt;
  const std::byte* p = from.data();
  UnpackedRecord out;
  Record& r = out.record;
  const auto type = load_le<std::uint8_t>(p + kType);
  if (type < static_cast<std::uint8_t>(RecordType::kWrite) ||
      type > static_cast<std::uint8_t>(RecordType::kWithdrawal)) {
    return std::nullopt;
  }
  r.type = static_cast<RecordType>(type);
  r.flags = load_le<std::uint16_t>(p + kFlags);
  r.codec = load_le<std::uint16_t>(p + kCodec);
  r.previous_slot = load_le<std::uint16_t>(p + kPreviousSlot);
  r.volume.value = load_le<std::uint32_t>(p + kVolume);
  r.payload_blocks = load_le<std::uint32_t>(p + kPayloadBlocks);
  r.epoch.value = load_le<std::uint64_t>(p + kEpoch);
  r.sequence.value = load_le<std::uint64_t>(p + kSequence);
  r.time.ns = load_le<std::uint64_t>(p + kTime);
  r.extent.first.value = load_le<std::uint64_t>(p + kFirst);
  r.extent.count.value = load_le<std::uint64_t>(p + kCount);
  r.payload_offset = load_le<std::uint32_t>(p + kPayloadOffset);
  r.target_sequence.value = load_le<std::uint64_t>(p + kTargetSequence);
  r.target_time.ns = load_le<std::uint64_t>(p + kTargetTime);
  r.previous_sector = load_le<std::uint64_t>(p + kPreviousSector);
  r.frontier.value = load_le<std::uint64_t>(p + kFrontier);
  r.settled.value = load_le<std::uint64_t>(p + kSettled);
  r.ordinal = load_le<std::uint64_t>(p + kOrdinal);
  if (!record_is_consistent(r)) return std::nullopt;
  out.packed_bytes = r.packed_bytes();
  if (from.size() < out.packed_bytes) return std::nullopt;
  out.block_crcs = from.subspan(kRecordHeaderBytes, 4 * std::size_t{r.payload_blocks});
  return out;
}

}  // namespace mariner::logging
