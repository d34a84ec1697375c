// How many of the requests that wait for a disk make its next batch.
//
// All of them, on a disk where each place is as good as another. On a rotating disk a part may fit
// into a gap that the head is about to reach, while all together would have to wait for a longer
// gap, up to a revolution: then the part goes now and the rest right after it. This goes beyond the
// dissertation, which writes a queue in one piece; it is what keeps a nearly full track fast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "logging/placement.h"

namespace mariner::logging {

// The number of requests at the queue's front that gets the most onto the medium per time if they
// are dispatched together at `now`; of equally good numbers the largest. 0 if not even the first
// fits into the track. `batch_sectors`: of a batch of the first request, of the first two, and so
// on, with what a batch needs for itself.
[[nodiscard]] std::size_t batch_length(const Placement& placement,
                                       std::span<const std::uint32_t> batch_sectors,
                                       Placement::Time now);

}  // namespace mariner::logging
