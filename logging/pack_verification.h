// Whether a pack reads back as the tracks from which it was built.
#pragma once

#include <span>

#include "logging/pack_builder.h"
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

// The same of those bytes alone, which ascend: for who has checksums of everything, but does not
// trust them with what somebody may have made to have equal ones.
[[nodiscard]] Result<void> verify_equal(std::span<const PackTrack> tracks, PackSource& source,
                                        const PackReader& reader,
                                        std::span<const TakenAsEqual> taken_as_equal,
                                        const PackPause& pause = {});

}  // namespace mariner::logging
