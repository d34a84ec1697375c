#include "logging/track_initialiser.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "logging/superblock_store.h"
#include "proto/check.h"

namespace mariner::logging {
namespace {

constexpr std::chrono::microseconds kAlone{50};
constexpr std::chrono::microseconds kBesideWriter{4000};

}  // namespace

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
  const bool at_it = slots_ == nullptr ? track == superblock_.initialised_tracks
                                       : ahead_ && ahead_->track == track;
  if (!in_flight_ || !at_it) return true;
  writer_waits_ = true;
  return false;
}

bool TrackInitialiser::find_next() {
  if (slots_ != nullptr) {
    if (!find_slot()) {
      again_in(kBesideWriter);
      return false;
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

bool TrackInitialiser::find_slot() {
  std::uint64_t& slot = superblock_.initialised_tracks;
  if (ahead_ && ahead_->allocation <= disk_.taken_allocation()) {
    // The writer has begun with it: the rest is the writer's, too.
    ahead_.reset();
    offset_ = 0;
    ++slot;
  }
  if (held_ || ahead_) return true;
  const std::vector<Ahead> given = given_ahead();
  for (; !done(); ++slot) {
    if ((held_ = slots_->hold(slot))) return true;
    if (slots_->is_promised(slot)) return false;
    // It is in use; but a track that has not been begun has not been written to.
    const auto ahead = std::ranges::find(given, slot, &Ahead::slot);
    if (ahead == given.end()) continue;
    ahead_ = *ahead;
    return true;
  }
  return true;
}

std::vector<TrackInitialiser::Ahead> TrackInitialiser::given_ahead() const {
  std::vector<Ahead> given;
  const TrackList& tracks = disk_.tracks();
  for (std::uint64_t a = std::max(disk_.taken_allocation() + 1, tracks.oldest()); a < tracks.end();
       ++a) {
    const std::optional<std::uint64_t> track = tracks.track(a);
    if (!track) break;
    const TrackPlace place = slots_->map().place_of(*track);
    if (place.kind != TrackPlace::Kind::kSlot) break;
    given.push_back({a, *track, place.number});
  }
  return given;
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
  ahead_.reset();
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
  again_in(writer_.idle() ? kAlone : kBesideWriter);
}

void TrackInitialiser::again_in(std::chrono::microseconds pause) {
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
