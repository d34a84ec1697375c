// The version index of one volume: which versions exist, when they were written, and where in the
// log they stand. The interface of the TL and LT indexes (design.md section 2).
//
// Moments are sequence numbers here: a view at S is exactly the writes with sequence <= S, and S 0
// is the base (what the volume held before its first write). Times become sequence numbers through
// moment_at(). A rollback to T at sequence R means: a block whose newest write at or before R is
// after T reads as at T until it is written again. locate() resolves that.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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
  SequenceNumber sequence;  // of the write (or 0 with kBase and before-images)
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

// Adds a run behind those before it: to the last one, if it goes on where that ends.
void append_run(const LocatedRun& run, std::vector<LocatedRun>& out);
// Sorts and merges overlapping and adjacent extents.
std::vector<BlockRange> merge_extents(std::vector<BlockRange> extents);

struct IndexMoment {
  SequenceNumber sequence;
  VersionTime time;
};

struct IndexStatistics {
  std::uint64_t writes = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t memory_bytes = 0;  // an estimate
};

class VersionIndex {
 public:
  virtual ~VersionIndex() = default;

  // Adds a durable record. Writes, zeros, rollbacks and voids come in the order of their sequence
  // numbers, with times that increase strictly; before-images at any time.
  virtual void insert(const logging::Record& record, const logging::LogLocation& location) = 0;

  // The newest version of every block of `range` at or before `at`: runs in order, without gaps.
  [[nodiscard]] virtual std::vector<LocatedRun> locate(BlockRange range,
                                                       SequenceNumber at) const = 0;

  // The distinct extents that may differ between the views at `from` and `to` (from <= to), in
  // order, merged: blocks written in (from, to], and what rollbacks in between moved.
  [[nodiscard]] virtual std::vector<BlockRange> changed(SequenceNumber from,
                                                        SequenceNumber to) const = 0;

  // The sequence numbers of the writes that changed `block` in (from, to], in order.
  [[nodiscard]] virtual std::vector<SequenceNumber> versions(Lbn block, SequenceNumber from,
                                                             SequenceNumber to) const = 0;

  // Forgets a version that was inserted and whose record is about to be freed. No moment from the
  // horizon on may need it: there its blocks have been replaced, or the base holds the same.
  virtual void forget(const logging::Record& record, const logging::LogLocation& location) = 0;

  // Moments before `horizon` can no longer be opened. It stands for a write that may be forgotten:
  // moment_at(), moment_of(), oldest() and newest() know it all the same. Never goes back.
  virtual void set_horizon(IndexMoment horizon) = 0;

  // The targets of the rollbacks after `after`.
  [[nodiscard]] virtual std::vector<SequenceNumber> rollback_targets(
      SequenceNumber after) const = 0;
  // The newest rollback; 0 when there is none.
  [[nodiscard]] virtual SequenceNumber last_rollback() const = 0;

  // The last write at or before `time`; sequence 0 when there is none.
  [[nodiscard]] virtual IndexMoment moment_at(VersionTime time) const = 0;
  // The write `sequence` or, if that was voided, the last one before it.
  [[nodiscard]] virtual IndexMoment moment_of(SequenceNumber sequence) const = 0;
  // The horizon; sequence 0 as long as nothing was forgotten.
  [[nodiscard]] virtual IndexMoment oldest() const = 0;
  [[nodiscard]] virtual IndexMoment newest() const = 0;

  // Visits the writes in (from, to] in order until `visit` returns false.
  virtual void for_each(SequenceNumber from, SequenceNumber to,
                        const std::function<bool(const IndexedWrite&)>& visit) const = 0;

  [[nodiscard]] virtual IndexStatistics statistics() const = 0;
};

}  // namespace mariner::index
