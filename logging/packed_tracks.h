// Whether a track of a pack reads back as what it is: a track of the log, whose every header
// area and block has the checksum that the log wrote for it. Cheaper than to compare it with what
// stands in its slot, which would have to be read again for that; and it tells whether that was
// read rightly in the first place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "logging/pack_reader.h"
#include "logging/pack_source.h"
#include "logging/track.h"
#include "proto/error.h"

namespace mariner::logging {

// What a track of a pack must be.
struct PackedTrack {
  std::uint64_t track = 0;
  std::uint64_t allocation = 0;
  std::uint64_t end_batch = 0;  // one behind its last; 0: it has none, and nothing stands in it
  std::uint64_t used = 0;       // bytes, up to the end of that
};

// Reads all that stands in the pack's track `in_pack`, 256 KiB at a time; behind that the pack must
// have nothing. kCorrupt, naming the track and its first damage; the errors of `reader` and `pause`
// passed on. Requires TrackVerifier::can_verify().
[[nodiscard]] Result<void> verify_packed_track(const Superblock& superblock,
                                               const PackedTrack& packed, std::size_t in_pack,
                                               const PackReader& reader,
                                               const PackPause& pause = {});

}  // namespace mariner::logging
