#include "logging/track_initialiser.h"

#include <algorithm>

#include "logging/superblock_store.h"
#include "proto/check.h"

namespace mariner::logging {

TrackInitialiser::TrackInitialiser(LogDisk& disk, Executor& executor, Superblock& superblock,
                                   LogWriter& writer, SlottedDisk* slots)
    : disk_(disk),
      executor_(executor),
      superblock_(superblock),
      writer_(writer),
      slots_(slots),
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
  if (slots_ == nullptr && in_flight_ && track == superblock_.initialised_tracks) {
    writer_waits_ = true;
    return false;
  }
  return true;
}

bool TrackInitialiser::find_next() {
  if (slots_ != nullptr) {
    // Slots that are in use have been written, or will be.
    while (!held_ && !done() && !(held_ = slots_->hold(superblock_.initialised_tracks))) {
      ++superblock_.initialised_tracks;
    }
  } else if (const std::uint64_t fresh = disk_.next_fresh_track();
             superblock_.initialised_tracks < fresh) {
    // Tracks that have been taken belong to the writer, and so does the one that it waits for.
    superblock_.initialised_tracks = fresh;
    offset_ = 0;
  }
  if (done()) finished_track();
  return !done();
}

void TrackInitialiser::next() {
  if (stopping_ || in_flight_ || done() || !find_next()) return;
  const std::uint64_t piece = std::min(kChunkBytes, superblock_.track_bytes() - offset_);
  const std::uint64_t at =
      superblock_.track_first_sector(superblock_.initialised_tracks) * superblock_.sector_bytes +
      offset_;
  in_flight_ = true;
  Disk& disk = slots_ == nullptr ? disk_.disk() : slots_->under();
  disk.async_write(at, {ConstBytes(zeros_.bytes()).first(piece)}, Durability::kVolatile,
                   [this, piece](Result<void> result) {
                     in_flight_ = false;
                     if (std::exchange(writer_waits_, false)) writer_.retry();
                     if (result && !stopping_) return written(piece);
                     // The writer will meet an error itself, with somebody to tell.
                     stop();
                   });
}

void TrackInitialiser::let_go() {
  if (std::exchange(held_, false)) slots_->let_go_of_held(superblock_.initialised_tracks);
}

// What was held may be the last slot, for which the writer waits.
void TrackInitialiser::stop() {
  stopping_ = true;
  if (!in_flight_) let_go();
}

void TrackInitialiser::written(std::uint64_t bytes) {
  offset_ += bytes;
  if (offset_ == superblock_.track_bytes()) {
    let_go();
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
}

void TrackInitialiser::finished_track() {
  last_update_ = superblock_.initialised_tracks;
  // Failure only means that the next start begins further back.
  static_cast<void>(update_superblock(disk_.disk(), superblock_).has_value());
}

}  // namespace mariner::logging
