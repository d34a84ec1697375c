// Packs some complete tracks of a log disk: reads them, builds the pack in free slots of the disk,
// and makes sure that it reads back as they were. PACK.md.
//
// Nothing counts yet when it is done: SlotKeeper::add_pack() says that they are packed. A crash
// before leaves the tracks where they were. Blocking; any thread; one at a time of each disk.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "logging/beside.h"
#include "logging/live_tracks.h"
#include "logging/pack_source.h"
#include "logging/slotted_disk.h"

namespace mariner::logging {

struct PackingJob {
  std::shared_ptr<SlottedDisk> disk;
  LiveTracks live;                  // of the disk
  std::vector<std::size_t> tracks;  // which of live.tracks; complete, in slots; ascending
  // Nothing is packed before all records of the tracks are older than this.
  VersionTime cold_before{UINT64_MAX};
  std::uint64_t leave_slots = 0;
  int level = 3;  // of zstd
  // A pack that is longer than this part of what it packs is not worth reading it back.
  double packed_part_max = 0.9;
};

struct Packed {
  PackPlace place;               // without its identity
  std::uint64_t used_bytes = 0;  // of the tracks, up to their last batches
};

struct PackingFailure {
  enum class What : std::uint8_t {
    kError,      // of the disk, or it was stopped
    kTooYoung,   // until `until`
    kDamaged,    // the track `track` of the job has damage: it stays as it is
    kNotSmaller  // the pack would not be much smaller than the tracks
  };
  What what = What::kError;
  Error error;
  std::size_t track = 0;  // of live.tracks
  VersionTime until{};
};

using PackingResult = boost::system::result<Packed, PackingFailure>;

// `pause` and `beside`: as PackOptions'. Ends SlottedDisk's building when it fails.
PackingResult pack_tracks(const PackingJob& job, const PackPause& pause, Beside* beside = nullptr);

}  // namespace mariner::logging
