// The log record: the self-describing unit of the log. FORMAT.md section 4 gives every byte.
//
// In memory a Record is a checked value; on disk it is a packed header in its batch's header area,
// followed by one CRC32C for each 4 KiB block of its payload. pack and unpack stand between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "proto/units.h"

namespace mariner::logging {

enum class RecordType : std::uint8_t {
  kWrite = 1,        // payload replaces the extent
  kZero = 2,         // the extent reads as zero (UNMAP, WRITE SAME of zeros)
  kBeforeImage = 3,  // what the image alone held before its first overwrite; sequence 0 is the base
  kVoid = 4,         // sequence .. last_sequence never became durable
  kRollback = 5,   // from here on, blocks changed after target_sequence read as at target_sequence
  kGap = 6,        // the log was absent for sequence .. last_sequence
  kMark = 7,       // a named moment; the payload is one block: the name
  kRelocated = 8,  // written again: what kept moments show of the extent; without a payload: zeros
  kEncoded = 9,    // payload is compressed, a delta or a reference; `codec` says which
  kRebase = 10,  // the image is the base of the extent from here on: before-images so far are void
  kWithdrawal = 11,  // of no volume: the record with the ordinal target_sequence never came
};

// Name for users and JSON: "write", "zero", "before-image", ...
std::string_view record_type_name(RecordType type) noexcept;

// A payload may hold less than the extent. With kRepeats its layout is
//   [head block][pattern block][tail block]
// where the pattern fills the extent but for the head and tail. A kZero record may have a head and
// a tail too (edges of an unaligned range), without a pattern.
enum RecordFlags : std::uint16_t {
  kRepeats = 1u << 0,
  kHasHead = 1u << 1,
  kHasTail = 1u << 2,
  kReplaces = 1u << 3,  // of a before-image: earlier ones of its extent are void
  kKnownFlags = kRepeats | kHasHead | kHasTail | kReplaces,
};

inline constexpr std::uint32_t kRecordHeaderBytes = 112;
// A record's payload at most: keeps a record within a track. (MAXIMUM TRANSFER LENGTH is below.)
inline constexpr std::uint32_t kRecordPayloadBlocksMax = 1024;

struct Record {
  RecordType type = RecordType::kWrite;
  std::uint16_t flags = 0;
  std::uint16_t codec = 0;  // 0: none
  VolumeId volume;
  Epoch epoch;
  SequenceNumber sequence;
  VersionTime time;
  BlockRange extent;
  std::uint32_t payload_blocks = 0;  // stored blocks
  std::uint32_t payload_offset = 0;  // sectors from the batch's start; set by the writer
  // kRollback: restored moment; kVoid, kGap: the last one; kWithdrawal: an ordinal; kRelocated: the
  // first of the moments
  SequenceNumber target_sequence;
  VersionTime target_time;  // kRollback: time of that moment; kRelocated: number of the last one
  // Back pointer: the batch of this volume's previous record on this disk.
  std::uint64_t previous_sector = 0;
  std::uint16_t previous_slot = 0;
  std::uint64_t ordinal = 0;  // place in the order of the whole log, from 1; set by the writer
  SequenceNumber frontier;    // of the volume: every write at or below is in the image
  SequenceNumber settled;     // of the volume: all at or below was settled at dispatch

  friend bool operator==(const Record&, const Record&) = default;

  [[nodiscard]] std::uint32_t packed_bytes() const {
    return kRecordHeaderBytes + 4 * payload_blocks;
  }
};

// Whether two records of one log are the same one, written twice. Their ordinals alone do not say
// so: that of a record which no recovery has found is given again, and damage may bring it back.
[[nodiscard]] inline bool is_copy(const Record& a, const Record& b) {
  return a.ordinal == b.ordinal && a.volume == b.volume && a.sequence == b.sequence &&
         a.type == b.type && a.time == b.time;
}

// The order of the log, in which copies stand side by side.
[[nodiscard]] inline bool is_before(const Record& a, const Record& b) {
  return std::tuple(a.ordinal, a.volume, a.sequence, a.type, a.time) <
         std::tuple(b.ordinal, b.volume, b.sequence, b.type, b.time);
}

// How the blocks of a record's extent map to its payload: at most three pieces, in order, that
// cover the extent. A repeated piece has one payload block for all its blocks; a zero piece none.
struct RecordPiece {
  enum class Kind : std::uint8_t { kPayload, kRepeated, kZero };
  Kind kind = Kind::kPayload;
  BlockRange range;
  std::uint32_t payload_block = 0;  // index of the piece's first block in the payload
};
struct RecordPieces {
  RecordPiece piece[3];
  std::uint32_t count = 0;
  [[nodiscard]] const RecordPiece* begin() const { return piece; }
  [[nodiscard]] const RecordPiece* end() const { return piece + count; }
};
// None of a rebase, which has an extent and no contents. Of a record whose type, flags, extent and
// payload_blocks agree (record_is_consistent()).
RecordPieces pieces_of(const Record& record);

// Whether type, flags, extent and payload length agree with each other. Records from a disk that
// are not consistent are damage; ours always are.
[[nodiscard]] bool record_is_consistent(const Record& record) noexcept;

// Appends the packed header and `block_crcs` (payload_blocks of them) to `to`, which has room for
// packed_bytes().
void pack_record(const Record& record, std::span<const std::uint32_t> block_crcs, std::byte* to);

struct UnpackedRecord {
  Record record;
  std::span<const std::byte> block_crcs;  // payload_blocks little-endian CRC32Cs, within `from`
  std::uint32_t packed_bytes = 0;
};
// Nothing when the bytes are not a consistent record of a known type, or end too early.
std::optional<UnpackedRecord> unpack_record(std::span<const std::byte> from);

}  // namespace mariner::logging
