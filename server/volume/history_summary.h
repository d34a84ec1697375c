// What happened in a part of a volume's history: counted, drawn up in columns of time, and listed.
//
// It is put together where the index is, so that who asks from another machine gets an answer and
// not the writes. Owner's thread only.
#pragma once

#include <cstdint>
#include <vector>

#include "index/stored_index.h"
#include "proto/error.h"
#include "proto/unique_function.h"
#include "proto/units.h"

namespace mariner::volume {

struct HistorySummary {
  // More is not answered: what was left out, `truncated` says.
  static constexpr std::uint32_t kColumnsMax = 10'000;
  static constexpr std::uint32_t kWritesMax = 1'000'000;
  static constexpr std::uint32_t kRollbacksMax = 10'000;

  struct Question {
    SequenceNumber from;  // exclusive
    SequenceNumber to;    // inclusive
    // Of the columns: the first one begins at `start`. No columns: 0.
    VersionTime start{};
    std::uint64_t width_ns = 0;
    std::uint32_t columns = 0;
    std::uint32_t writes_max = 0;  // to be listed
  };
  struct Column {
    std::uint64_t writes = 0;
    std::uint64_t bytes = 0;
  };
  struct Write {
    logging::RecordType type = logging::RecordType::kWrite;
    SequenceNumber sequence;
    VersionTime time;
    Epoch epoch;
    BlockRange extent;
    SequenceNumber target;  // of a rollback
  };

  std::uint64_t writes = 0;          // of all kinds
  std::uint64_t bytes = 0;           // written
  std::uint64_t distinct_bytes = 0;  // that differ between `from` and `to`
  std::vector<Column> columns;       // what lies before the first is in none, behind the last in it
  std::vector<Write> list;           // the first ones, in order
  std::vector<Write> rollbacks;      // in order
  bool truncated = false;            // the list, or the rollbacks
};

// The index outlives it. `done` may run before this returns.
void summarize(index::StoredIndex& index, const HistorySummary::Question& question,
               UniqueFunction<void(Result<HistorySummary>)> done);

}  // namespace mariner::volume
