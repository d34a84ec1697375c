#include "index/record_entries.h"

#include "proto/bytes.h"

namespace mariner::index {
namespace {

using logging::RecordPiece;
using logging::RecordType;

PlacedRun place_of(const RecordPiece& piece, const logging::LogLocation& location) {
  switch (piece.kind) {
    case RecordPiece::Kind::kZero: return {};
    case RecordPiece::Kind::kRepeated:
      return {PlacedRun::Kind::kRepeated, location, piece.payload_block};
    case RecordPiece::Kind::kPayload: break;
  }
  return {PlacedRun::Kind::kLog, location, piece.payload_block};
}

}  // namespace

bool has_versions(const logging::Record& record) {
  return record.type == RecordType::kWrite || record.type == RecordType::kZero ||
         record.type == RecordType::kRollback;
}

bool has_base(const logging::Record& record) {
  return record.type == RecordType::kBeforeImage || record.type == RecordType::kRebase;
}

bool is_for_kept_moments(const logging::Record& record) {
  return record.type == RecordType::kRelocated;
}

KeptRun kept_run_of(const logging::Record& record, const logging::LogLocation& location) {
  const bool zeros = record.payload_blocks == 0;
  return {.range = record.extent,
          .from = record.target_sequence,
          .through = {record.target_time.ns},
          .ordinal = record.ordinal,
          .place = zeros ? PlacedRun{} : PlacedRun{PlacedRun::Kind::kLog, location, 0}};
}

void add_versions(const logging::Record& record, const logging::LogLocation& location,
                  LtIndex::Batch& to) {
  if (record.type == RecordType::kRollback) {
    LtIndex::Batch::Entry entry{{kRollbackKey, record.sequence.value}, record.ordinal, 0, {}};
    store_le(entry.value.data(), record.target_sequence.value);
    return to.add(entry);
  }
  for (const RecordPiece& piece : logging::pieces_of(record)) {
    to.add(piece.range, place_of(piece, location), record.sequence, record.ordinal);
  }
}

void add_base(const logging::Record& record, const logging::LogLocation& location,
              LtIndex::Batch& to) {
  PlacedRun place;
  if (record.type == RecordType::kRebase) {
    place.kind = PlacedRun::Kind::kBase;
  } else {
    const bool replaces = (record.flags & logging::kReplaces) != 0;
    place = {replaces ? PlacedRun::Kind::kReplacing : PlacedRun::Kind::kLog, location, 0};
  }
  to.add(record.extent, place, {record.ordinal}, record.ordinal);
}

}  // namespace mariner::index
