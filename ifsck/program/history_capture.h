// A stretch of a volume's history becomes files: the image that it begins with, and a trace of the
// writes that followed (ifsck/FORMAT.md), for TracePast.
//
// The trace numbers its records from 1 on: they are in the order of the history's sequence numbers,
// but numbers differ, since not every one of those is a write that is still to be seen. Times are
// kept. A write becomes one record, unless it left several pieces (a rollback does) or is longer
// than a record may be: then the second piece is a nanosecond later than the first, and so on, and
// between them the trace has moments that the volume never had.
#pragma once

#include <cstdint>
#include <string>

#include "ifsck/past.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::ifsck {

struct CaptureOptions {
  // The writes in (from, to]; `from` is what the image holds.
  SequenceNumber from;
  SequenceNumber to;
  std::string image;  // raw and sparse; both files are made anew
  std::string trace;
};

struct Capture {
  std::uint64_t image_blocks = 0;  // that are not zeros
  std::uint64_t records = 0;
  std::uint64_t written_blocks = 0;  // in records
  std::uint64_t pieces = 0;          // records more than writes
};

// Keeps 40 bytes in memory for each block written. kOutsideWindow; kNoSpace, kIo: of the
// files; others, as the past says.
[[nodiscard]] Result<Capture> capture_history(Past& past, const CaptureOptions& options);

}  // namespace mariner::ifsck
