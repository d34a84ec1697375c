// The words of a volume's version index: which versions exist, when they were written, and where in
// the log they stand (design.md section 2). The index itself: stored_index.h.
//
// Moments are sequence numbers here: a view at S is exactly the writes with sequence <= S, and S 0
// is the base (what the volume held before its first write). A rollback to T at sequence R means: a
// block whose newest write at or before R is after T reads as at T until it is written again.
#pragma once

#include <cstdint>
#include <vector>

#include "logging/log_location.h"
#include "logging/record.h"
#include "proto/units.h"

namespace mariner::index {

// Where the bytes of a run of blocks are, as of some moment.
struct LocatedRun {
  enum class Source {
    kBase,  // nothing was written: the base holds it (zero, or what was imported into the image)
    kZero,
    kLog,
  };
  BlockRange range;
  Source source = Source::kBase;
  // Of kLog: the record, and the payload block of the run's first block. A repeated run has that
  // one payload block for all its blocks.
  logging::LogLocation location;
  std::uint32_t payload_block = 0;
  bool repeated = false;
  SequenceNumber sequence;         // of the write (or 0 with kBase and what was logged again)
  std::uint64_t base_ordinal = 0;  // of what was logged again, a before-image or for a kept moment:
                                   // its record's
  bool for_kept = false;           // that is where a kept moment finds it
};

// A write as the TL index remembers it.
struct IndexedWrite {
  logging::RecordType type = logging::RecordType::kWrite;
  std::uint16_t flags = 0;
  std::uint32_t payload_blocks = 0;
  SequenceNumber sequence;
  VersionTime time;
  Epoch epoch;
  BlockRange extent;
  SequenceNumber target_sequence;  // of a rollback
  logging::LogLocation location;
};

// The part of a run that lies in `range`; empty if none does.
LocatedRun part_of(const LocatedRun& run, BlockRange range);
// Adds a run behind those before it: to the last one, if it goes on where that ends.
void append_run(const LocatedRun& run, std::vector<LocatedRun>& out);
// Sorts and merges overlapping and adjacent extents.
std::vector<BlockRange> merge_extents(std::vector<BlockRange> extents);

struct IndexMoment {
  SequenceNumber sequence;
  VersionTime time;
  friend bool operator==(const IndexMoment&, const IndexMoment&) = default;
};

// A moment before the horizon that can still be opened: what the blocks held then is kept, and
// nothing of what was between such moments.
struct KeptMoment {
  IndexMoment moment;
  VersionTime through;  // no write came behind the moment up to this time
  friend bool operator==(const KeptMoment&, const KeptMoment&) = default;
};

}  // namespace mariner::index
