// A moment soon after another one, at which what was under way is done: where operations are
// completed from (completion.h).
//
// (Dissertation 4.4: T + UB, how long a kernel takes to write back what is connected.)
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "ifsck/baseline_file.h"
#include "ifsck/finding.h"
#include "ifsck/moment.h"
#include "ifsck/past.h"
#include "ifsck/recheck_memory.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::ifsck {

struct LaterMoment {
  // Null: there is none, because of `why_not`.
  std::unique_ptr<Moment> moment;
  std::string why_not;
  std::unique_ptr<Overlay> overlay;  // of the moment: its journal's replay, descriptors
  std::vector<BlockRange> changed;   // since the known one, with overlays; ascending
  std::vector<Finding> findings;     // what is wrong with it, bitmaps and counts apart
  RecheckMemory memory;              // of that check
  std::uint64_t looks = 0;           // moments that were checked

  // The first that is sound within `after` of `at`, or the one with the least wrong; not behind a
  // rollback or a gap. `then` is open, and outlives it. Errors: of the past alone.
  [[nodiscard]] static Result<LaterMoment> find(Past& past, SequenceNumber at,
                                                std::chrono::nanoseconds after, Moment& then,
                                                const KeptBaseline& known);
};

}  // namespace mariner::ifsck
