#include "logging/track_packer.h"

#include <pthread.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "logging/beside.h"
#include "logging/cpu_share.h"
#include "proto/check.h"

namespace mariner::logging {

TrackPacker::TrackPacker(Parts parts, Reporter report)
    : parts_(std::move(parts)), report_(std::move(report)) {}

TrackPacker::~TrackPacker() {
  *alive_ = false;
  CHECK_MSG(idle(), "a track packer is destroyed in use");
}

void TrackPacker::set_options(const PackingOptions& options) {
  options_ = options;
  cpu_share_.store(options.cpu_share, std::memory_order_relaxed);
  too_young_until_ = {};
  // A pack that takes more is not worth reading it back; and one slot is always left. A small log
  // has nothing to spare.
  const double room = static_cast<double>(tracks_at_once(1)) * PackingJob{}.packed_part_max;
  const auto slots = std::min(static_cast<std::uint64_t>(std::ceil(room)) + 1,
                              parts_.disk->superblock().slot_count / 8);
  parts_.slots.keep_for_packing(options.enabled ? slots : 0);
  look();
}

void TrackPacker::pack_now(Done done) {
  if (stopping_) return done(Error{ErrorCode::kUnavailable, "the log is being closed"});
  now_.push_back(std::move(done));
  tracks_max_ = SIZE_MAX;
  look();
}

void TrackPacker::stop() {
  stopping_ = true;
  cancelled_ = true;
  if (!packing_) tell_done(Error{ErrorCode::kAborted, "packing was stopped"});
}

void TrackPacker::tell_done(const Result<void>& result) {
  for (Done& done : std::exchange(now_, {})) done(result);
}

// ---- what to pack -------------------------------------------------------------------------------

// A quarter of the disk is left, or little more than ordinary records may not have anyway.
bool TrackPacker::pressed() const {
  return parts_.log_disk.free_tracks() * 4 <= parts_.disk->superblock().slot_count ||
         parts_.writer.free_tracks() <= parts_.writer.kept_tracks() + kSpareTracks;
}

bool TrackPacker::short_of_room() const {
  const std::uint64_t slots = parts_.disk->superblock().slot_count;
  return parts_.writer.free_tracks() < parts_.writer.kept_tracks() + slots / 16;
}

// How much shorter than its tracks the youngest pack is: so many times as many then take no more
// of the disk, and what they have in common is kept once. (A log that goes round has small ones all
// the same, whose room it has back sooner.)
std::uint64_t TrackPacker::packs_saved() const {
  const auto& packs = parts_.disk->map().packs();
  if (packs.empty()) return 1;
  const PackPlace& pack = packs.rbegin()->second;
  const std::uint64_t bytes = pack.tracks.size() * parts_.disk->superblock().track_bytes();
  return std::clamp<std::uint64_t>(bytes / std::max<std::uint64_t>(pack.bytes(), 1), 1, kSavedMax);
}

std::uint64_t TrackPacker::tracks_at_once(std::uint64_t saved) const {
  const Superblock& superblock = parts_.disk->superblock();
  const std::uint64_t wanted = options_.pack_bytes / superblock.track_bytes();
  const std::uint64_t part = superblock.slot_count * saved / 32;
  return std::max<std::uint64_t>(std::min<std::uint64_t>(wanted, part), 1);
}

LiveTracks TrackPacker::live() const {
  LiveTracks live{.disk = parts_.disk,
                  .superblock = parts_.disk->superblock(),
                  .oldest = parts_.tracks.kept_from(),
                  .current = parts_.log_disk.current_allocation(),
                  .current_first_batch = parts_.log_disk.track_first_batch(),
                  .finished = parts_.log_disk.finished(),
                  .tracks = {}};
  if (live.oldest <= live.current) {
    live.tracks = allocated_from(parts_.tracks, live.oldest, live.current - live.oldest + 1);
    std::erase_if(live.tracks, [&](const Allocated& a) { return a.allocation > live.current; });
  }
  return live;
}

PackingJob TrackPacker::choose() const {
  const std::uint64_t at_once =
      std::min<std::uint64_t>(tracks_at_once(pressed() ? 1 : packs_saved()), tracks_max_);
  // What is about to go is left alone.
  const std::uint64_t going =
      now_.empty() && short_of_room() ? parts_.disk->superblock().slot_count / 16 : 0;
  PackingJob job{.disk = parts_.disk, .live = live(), .tracks = {}, .level = options_.level};
  for (std::size_t i = going; i < job.live.tracks.size() && job.tracks.size() < at_once; ++i) {
    const Allocated& track = job.live.tracks[i];
    if (track.allocation >= job.live.current || left_.contains(track.allocation)) continue;
    if (parts_.disk->map().place_of(track.track).kind == TrackPlace::Kind::kSlot) {
      job.tracks.push_back(i);
    }
  }
  // What would be packed by itself later had less in common with anything.
  const bool at_any_rate = !now_.empty() || pressed();
  // Short of room, soon is better than small.
  if (pressed() && now_.empty()) job.level = kQuickLevel;
  if (!at_any_rate && job.tracks.size() < at_once) job.tracks.clear();
  if (!at_any_rate) {
    const auto cold = static_cast<std::uint64_t>(options_.cold_after.count());
    const std::uint64_t now = parts_.executor.wall_time().ns;
    job.cold_before = {now - std::min(now, cold)};
  }
  // Of the tracks that are to be left, those that have slots already take no other.
  const std::uint64_t kept = parts_.writer.kept_tracks();
  const std::uint64_t free = parts_.log_disk.free_tracks();
  const std::uint64_t ahead = free - std::min(free, parts_.disk->usable_slots());
  const std::uint64_t used = parts_.slots.kept_for_packing() + ahead;
  job.leave_slots = std::max<std::uint64_t>(1, kept - std::min(kept, used));
  return job;
}

void TrackPacker::look_again(std::chrono::nanoseconds delay) {
  if (std::exchange(waiting_, true)) return;
  parts_.executor.after(delay, [this, alive = alive_] {
    if (!*alive) return;
    waiting_ = false;
    look();
  });
}

void TrackPacker::look() {
  if (packing_ || stopping_) return;
  if (!options_.enabled && now_.empty()) return;
  std::erase_if(left_, [&](std::uint64_t a) { return a < parts_.tracks.kept_from(); });
  PackingJob job = choose();
  if (job.tracks.empty()) tell_done({});
  if (!job.tracks.empty() && job.cold_before.ns >= too_young_until_.ns) {
    return begin(std::move(job));
  }
  if (options_.enabled) look_again(kLookEvery);
}

// ---- packing ------------------------------------------------------------------------------------

void TrackPacker::begin(PackingJob job) {
  packing_ = true;
  if (thread_.joinable()) thread_.join();
  thread_ = std::jthread([this, job = std::move(job)]() mutable {
    ::pthread_setname_np(::pthread_self(), "compact");
    Beside beside("compact-io");
    CpuShare share(cpu_share_, cancelled_, &beside);
    PackingResult result = pack_tracks(
        job, [&share] { return share.pause(); }, &beside);
    parts_.executor.post([this, job = std::move(job), result = std::move(result)]() mutable {
      ended(job, std::move(result));
    });
  });
}

bool TrackPacker::any_freed(const PackingJob& job) const {
  return job.live.tracks[job.tracks.front()].allocation < parts_.tracks.kept_from();
}

// What the pack took, or did not take in the end, may be what records wait for.
void TrackPacker::end_building() {
  parts_.disk->end_building();
  packing_ = false;
  parts_.writer.retry();
}

void TrackPacker::ended(const PackingJob& job, PackingResult result) {
  if (!result) {
    end_building();
    failed(job, result.error());
    return;
  }
  // A track that was freed may have been taken anew since.
  for (std::size_t i = 0; i < job.tracks.size(); ++i) {
    if (job.live.tracks[job.tracks[i]].allocation < parts_.tracks.oldest()) {
      result->place.tracks[i] = PackPlace::kFreed;
    }
  }
  PackingReport report{job.tracks.size(), result->used_bytes, result->place.bytes(), {}};
  parts_.slots.add_pack(std::move(result->place),
                        [this, report = std::move(report)](const Result<void>& added) mutable {
                          end_building();
                          if (stopping_) return stop();
                          if (added) {
                            tracks_max_ = SIZE_MAX;
                            report_(report);
                            return look();
                          }
                          if (added.error().code == ErrorCode::kNotFound) return look();
                          report.trouble = added.error().message;
                          report_(report);
                          tell_done(added.error());
                          look_again(kLookEvery * 60);
                        });
}

void TrackPacker::failed(const PackingJob& job, const PackingFailure& failure) {
  if (stopping_) return stop();
  if (any_freed(job)) return look();  // what was read may have been another track already
  const std::size_t count = job.tracks.size();
  const auto leave = [&](std::size_t number) { left_.insert(job.live.tracks[number].allocation); };
  switch (failure.what) {
    case PackingFailure::What::kTooYoung: too_young_until_ = {failure.until.ns + 1}; return look();
    case PackingFailure::What::kDamaged:
      leave(failure.track);
      report_({1, 0, 0, failure.error.message});
      return look();
    case PackingFailure::What::kNotSmaller: std::ranges::for_each(job.tracks, leave); return look();
    case PackingFailure::What::kError: break;
  }
  if (failure.error.code == ErrorCode::kNoSpace) {
    if (count > 1) {
      tracks_max_ = count / 2;
      return look();
    }
    tell_done(failure.error);
    return look_again(kLookEvery);
  }
  std::ranges::for_each(job.tracks, leave);
  report_({count, 0, 0, failure.error.message});
  look();
}

}  // namespace mariner::logging
