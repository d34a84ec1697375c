#include "tests/bench/cleaner_model.h"

#include <algorithm>
#include <numeric>

#include "proto/check.h"

namespace mariner::bench {

CleanerModel::CleanerModel(const CleanerLogOptions& options)
    : options_(options),
      versions_(options.volume_blocks),
      current_(options.volume_blocks),
      replaced_at_(1, kNone),
      slots_(std::size_t{options.tracks} * options.track_blocks, kNone),
      tracks_(options.tracks),
      free_(options.tracks),
      active_(kStreamsMax, kNone),
      tracks_of_(kStreamsMax) {
  std::iota(current_.begin(), current_.end(), 0u);
  for (std::uint32_t block = 0; block < options.volume_blocks; ++block) {
    versions_[block].block = block;
  }
  std::iota(free_.rbegin(), free_.rend(), 0u);
}

void CleanerModel::write(std::uint32_t block, StreamId stream, StreamId before_image) {
  ++now_;
  const VersionId old = current_[block];
  Version& version = versions_[old];
  version.replaced = now_;
  replaced_at_.push_back(old);
  if (version.place == kNone) {
    append(old, before_image);
    ++counts_.before_images;
  } else {
    CleanerTrack& track = track_of(version.place);
    --track.current;
    --current_in_log_;
    ++track.history;
    track.last_replaced = now_;
  }
  current_[block] = static_cast<VersionId>(versions_.size());
  versions_.push_back({.block = block});
  append(current_[block], stream);
  ++counts_.writes;
  if (now_ > options_.window) expire(now_ - options_.window);
}

void CleanerModel::append(VersionId id, StreamId stream) {
  if (active_[stream] == kNone) begin_track(stream);
  const std::uint32_t number = active_[stream];
  CleanerTrack& track = tracks_[number];
  Version& version = versions_[id];
  version.place = number * options_.track_blocks + track.used++;
  slots_[version.place] = id;
  if (version.replaced == 0) {
    ++track.current;
    ++current_in_log_;
    track.image_has = std::max(track.image_has, written(id) + options_.lag);
  } else {
    ++track.history;
    track.last_replaced = std::max(track.last_replaced, version.replaced);
  }
  if (track.used < options_.track_blocks) return;
  track.complete = true;
  active_[stream] = kNone;
}

void CleanerModel::begin_track(StreamId stream) {
  CHECK_MSG(!free_.empty(), "the cleaner left no track");
  const std::uint32_t number = free_.back();
  free_.pop_back();
  tracks_[number] = {.stream = stream, .ordinal = next_ordinal_++};
  active_[stream] = number;
  ++tracks_of_[stream];
}

// Gives up the moments before `horizon`.
void CleanerModel::expire(WriteTime horizon) {
  CHECK(horizon <= now_);
  for (; horizon_ < horizon; ++horizon_) {
    Version& version = versions_[replaced_at_[horizon_ + 1]];
    CHECK_MSG(version.place != kNone, "a version that is needed was lost");
    --track_of(version.place).history;
    version.place = kNone;
  }
}

void CleanerModel::clean(std::uint32_t number, bool drop_current,
                         const StreamOfSurvivor& stream_of) {
  CleanerTrack& track = tracks_[number];
  CHECK(can_clean(track));
  const std::uint32_t first = number * options_.track_blocks;
  for (std::uint32_t place = first; place < first + track.used; ++place) {
    const VersionId id = slots_[place];
    Version& version = versions_[id];
    if (version.place != place) continue;
    if (version.replaced == 0) --current_in_log_;
    if (version.replaced == 0 && drop_current) {
      version.place = kNone;
      ++counts_.dropped;
      continue;
    }
    append(id, stream_of(version.replaced));
    ++counts_.moved;
  }
  --tracks_of_[track.stream];
  track = {};
  free_.push_back(number);
}

void CleanerModel::adopt(std::uint32_t number, StreamId stream) {
  CleanerTrack& track = tracks_[number];
  CHECK(track.complete);
  --tracks_of_[track.stream];
  ++tracks_of_[stream];
  track.stream = stream;
  track.ordinal = next_ordinal_++;
}

std::uint32_t CleanerModel::oldest(StreamId stream) const {
  std::uint32_t found = kNone;
  for (std::uint32_t i = 0; i < tracks_.size(); ++i) {
    const CleanerTrack& track = tracks_[i];
    if (!track.complete || track.stream != stream) continue;
    if (found == kNone || track.ordinal < tracks_[found].ordinal) found = i;
  }
  return found;
}

VersionId CleanerModel::held_in(std::uint32_t track, std::uint32_t slot) const {
  CHECK(slot < tracks_[track].used);
  const std::uint32_t place = track * options_.track_blocks + slot;
  return versions_[slots_[place]].place == place ? slots_[place] : kNone;
}

}  // namespace mariner::bench
