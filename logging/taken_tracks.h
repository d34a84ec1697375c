// Finds the tracks of a log disk that have been taken, in the order in which they were: what the
// allocation list plans, less what never came about. FORMAT.md sections 2 and 5. Blocking.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "logging/disk.h"
#include "logging/track.h"
#include "logging/track_list.h"

namespace mariner::logging {

// A youngest track may follow one that a failed write has left without a header: so many tracks
// behind the last one may have been written to.
inline constexpr std::uint64_t kLookAheadTracks = 2;

// The list as its pages say; rebuilt from the tracks themselves, and written again, when pages are
// lost.
Result<TrackList> read_track_list(Disk& disk, const Superblock& superblock);

// The end of the taken tracks, found by a binary search over the allocation list: no allocation
// from `end` to `end` + 2 has a track that says it is its own, or that stands in a pack that is
// damaged: `end` may be too high then. At most 3 track reads a step.
struct TakenEnd {
  std::uint64_t end = 0;
  std::uint64_t track_reads = 0;
};
Result<TakenEnd> find_taken_end(Disk& disk, const Superblock& superblock, const TrackList& tracks);

// All of them, in the order of their allocations.
Result<std::vector<TrackHeader>> taken_tracks(Disk& disk, const Superblock& superblock,
                                              const TrackList& tracks);

// A place in the allocation list.
struct Allocated {
  std::uint64_t allocation = 0;
  std::uint64_t track = 0;
};
// The allocations from `allocation` on that have a track, at most `count`.
std::vector<Allocated> allocated_from(const TrackList& tracks, std::uint64_t allocation,
                                      std::size_t count);

// The header of a track that may have been taken; from its batches if it is damaged.
Result<std::optional<TrackHeader>> header_of_taken(Disk& disk, const Superblock& superblock,
                                                   const Allocated& place);

}  // namespace mariner::logging
