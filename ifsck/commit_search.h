// The moments at which transactions of a file system's journal were complete: their commit records,
// as they stand in the stream of writes.
//
// (Dissertation 4.4: a moment behind a commit needs no more than the journal's replay.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ifsck/past.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::ifsck {

struct CommitSearch {
  struct Commit {
    SequenceNumber at;  // the write of the record
    VersionTime time;
    std::uint32_t transaction = 0;
    friend bool operator==(const Commit&, const Commit&) = default;
  };

  bool journal = false;         // the file system has one, within itself
  std::vector<Commit> commits;  // in (from, to], ascending
  bool some_skipped = false;    // there was more to read than `versions_max`; the newest were read

  // In the journal as it lies at `to`. kNotFound, kCorrupt, kInvalidArgument: there is no file
  // system, or none that is understood. Others: as the past says.
  [[nodiscard]] static Result<CommitSearch> run(Past& past, SequenceNumber from, SequenceNumber to,
                                                std::size_t versions_max = 4096);
};

}  // namespace mariner::ifsck
