#include "logging/track_initialiser.h"

#include <algorithm>

#include "logging/superblock_store.h"
#include "proto/check.h"

namespace mariner::logging {

TrackInitialiser::TrackInitialiser(LogDisk& disk, Executor& executor, Superblock& superblock,
                                   LogWriter& writer)
    : disk_(disk),
      executor_(executor),
      superblock_(superblock),
      writer_(writer),
      last_update_(superblock.initialised_tracks) {}

TrackInitialiser::~TrackInitialiser() {
  *alive_ = false;
  CHECK_MSG(!in_flight_, "a track initialiser is destroyed with a write in flight");
}

void TrackInitialiser::start() {
  if (done()) return;
  zeros_ = Payload::zeroed(kChunkBytes);
  next();
}

// The writer wants its first write in `track`. Only the write in flight can be in its way.
bool TrackInitialiser::may_write(std::uint64_t track) {
  if (in_flight_ && track == superblock_.initialised_tracks) {
    writer_waits_ = true;
    return false;
  }
  return true;
}

void TrackInitialiser::next() {
  if (stopping_ || in_flight_ || done()) return;
  // Tracks that have been taken belong to the writer, and so does the one that it waits for.
  const std::uint64_t fresh = disk_.next_fresh_track();
  if (superblock_.initialised_tracks < fresh) {
    superblock_.initialised_tracks = fresh;
    offset_ = 0;
    if (done()) return finished_track();
  }
  const std::uint64_t track_bytes = superblock_.track_bytes();
  const std::uint64_t piece = std::min(kChunkBytes, track_bytes - offset_);
  const std::uint64_t at =
      superblock_.track_first_sector(superblock_.initialised_tracks) * superblock_.sector_bytes +
      offset_;
  in_flight_ = true;
  disk_.disk().async_write(
      at, {ConstBytes(zeros_.bytes()).first(piece)}, Durability::kVolatile,
      [this, piece, track_bytes](Result<void> result) {
        in_flight_ = false;
        if (std::exchange(writer_waits_, false)) writer_.retry();
        if (!result) {
          stopping_ = true;  // the writer will meet the error itself, with somebody to tell
          return;
        }
        offset_ += piece;
        if (offset_ == track_bytes) {
          offset_ = 0;
          ++superblock_.initialised_tracks;
          if (superblock_.initialised_tracks >= last_update_ + kTracksPerUpdate || done()) {
            finished_track();
          }
        }
        // Yield to the foreground: at full speed only while nobody writes.
        const auto pause =
            writer_.idle() ? std::chrono::microseconds(50) : std::chrono::microseconds(4000);
        executor_.after(pause, [this, alive = alive_] {
          if (*alive) next();
        });
      });
}

void TrackInitialiser::finished_track() {
  last_update_ = superblock_.initialised_tracks;
  // Failure only means that the next start begins further back.
  static_cast<void>(update_superblock(disk_.disk(), superblock_).has_value());
}

}  // namespace mariner::logging
