// Whether a pack reads back as the tracks from which it was built.
#pragma once

#include <span>

#include "logging/pack_reader.h"
#include "logging/pack_source.h"
#include "proto/error.h"

namespace mariner::logging {

// Reads every byte of the tracks through `reader` and compares it with `source` (behind `used`,
// with zeros), about 1 MiB at a time. kCorrupt, naming track and offset, at the first difference;
// the errors of all three passed on. Give the reader a cache of its own, so that this does not
// empty the one that serves reads.
[[nodiscard]] Result<void> verify_pack(std::span<const PackTrack> tracks, PackSource& source,
                                       const PackReader& reader, const PackPause& pause = {});

}  // namespace mariner::logging
