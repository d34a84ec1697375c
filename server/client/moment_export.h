// The contents of a volume as of a moment, read from the daemon and passed on.
#pragma once

#include <cstdint>
#include <functional>

#include "proto/error.h"
#include "proto/units.h"
#include "server/client/export_sink.h"
#include "server/client/past_client.h"

namespace mariner::client {

// Only what is stored is asked for, and only blocks that are not zeros are passed on; the next
// blocks are on their way while some are. The volume has the size that the reading says at the
// beginning. `progress` has bytes gone through and bytes in all. Answers how many bytes were passed
// on. Errors are those of the reading and of the sink.
[[nodiscard]] Result<std::uint64_t> export_moment(
    PastClient& past, SequenceNumber at, ExportSink& sink,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress);

}  // namespace mariner::client
