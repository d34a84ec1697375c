// What the oldest tracks of the log hold of each volume, as far as it matters for giving them up.
//
// Values; digesting reads the log: blocking, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "logging/live_tracks.h"
#include "logging/record.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::volume {

// Of one volume.
struct VolumeDigest {
  SequenceNumber last;      // the highest number that is used or named
  SequenceNumber highest;   // of a record itself
  SequenceNumber given_up;  // the last write
  bool has_rollback = false;
  std::uint64_t payload_bytes = 0;
  // The blocks of versions and before-images, in order; those of zeros apart, because they may be
  // very many. Neighbours are merged, zeros to some length.
  std::vector<BlockRange> written;
  std::vector<BlockRange> zeroed;

  void add(const logging::Record& record);
  // The same of both, in the order of the log.
  void add(const VolumeDigest& later);
  // After the last add().
  void complete();
};

struct TrackDigest {
  std::uint8_t disk = 0;
  std::uint64_t end_ordinal = 0;  // everything of the log below it, from the track before on
  std::map<VolumeId, VolumeDigest> volumes;
};

// At most `tracks_max` tracks, in the order in which they can be freed; none if none is complete.
// `from`: the lowest ordinal that has not been given up.
Result<std::vector<TrackDigest>> digest_oldest_tracks(const std::vector<logging::LiveTracks>& disks,
                                                      std::uint64_t from, std::size_t tracks_max);

}  // namespace mariner::volume
