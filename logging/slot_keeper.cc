#include "logging/slot_keeper.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <unordered_set>
#include <utility>

#include "proto/check.h"

namespace mariner::logging {
namespace {

// Until what is in the way of a slot has passed, or a map that could not be written is tried again.
constexpr std::chrono::milliseconds kAgainIn{20};

}  // namespace

SlotKeeper::SlotKeeper(Parts parts, std::uint64_t current)
    : parts_(parts),
      started_at_(current),
      next_generation_(parts.disk.generation()),
      first_copy_(parts.disk.first_copy()) {
  free_what_is_not_needed(current);
}

SlotKeeper::~SlotKeeper() {
  *alive_ = false;
  CHECK_MSG(idle(), "the slots of a log disk are let go of while their map is written");
}

// A crash may leave slots to tracks that have been freed, or that are not taken for long.
void SlotKeeper::free_what_is_not_needed(std::uint64_t current) {
  std::unordered_set<std::uint64_t> needed;
  const TrackList& list = parts_.tracks;
  for (std::uint64_t a = list.oldest(); a < std::min(current + 1, list.end()); ++a) {
    if (const auto track = list.track(a)) needed.insert(*track);
  }
  backed_end_ = std::max(current + 1, list.oldest());
  for (; backed_end_ < list.end(); ++backed_end_) {
    const auto track = list.track(backed_end_);
    if (!track || parts_.disk.map().place_of(*track).kind != TrackPlace::Kind::kSlot) break;
    needed.insert(*track);
  }
  for (std::uint64_t track = 0; track < parts_.disk.superblock().track_count; ++track) {
    if (!needed.contains(track)) parts_.disk.release(track);
  }
}

void SlotKeeper::start(const LogDisk& disk) {
  attach(disk);
  change();
}

std::uint64_t SlotKeeper::free_tracks(std::uint64_t current) const {
  const std::uint64_t end = std::max(backed_end_, next_backed_end_);
  return parts_.disk.usable_slots() + end - std::min(end, current + 1);
}

std::uint64_t SlotKeeper::kept_tracks() const {
  const std::uint64_t track_bytes = parts_.disk.superblock().track_bytes();
  return (parts_.disk.largest_pack_bytes() / 2 + track_bytes - 1) / track_bytes + for_packing_;
}

std::uint64_t SlotKeeper::wanted_ahead() const {
  return std::clamp<std::uint64_t>(free_tracks(current()) / 4, 2, kAheadMax);
}

bool SlotKeeper::may_write(std::uint64_t track) {
  const bool ready = parts_.disk.map().place_of(track).kind == TrackPlace::Kind::kSlot;
  writer_waits_ = writer_waits_ || !ready;
  // The writer takes it when this returns.
  if (!ready || ahead() <= wanted_ahead() / 2 + 1) change();
  return ready || failures_ >= kFailuresMax || (stopping_ && failures_ > 0);
}

void SlotKeeper::released(std::span<const std::uint64_t> tracks) {
  for (const std::uint64_t track : tracks) {
    parts_.disk.release(track);
    if (next_) released_meanwhile_.push_back(track);
  }
  change();
}

void SlotKeeper::keep_for_packing(std::uint64_t tracks) {
  const bool less = tracks < for_packing_;
  for_packing_ = tracks;
  if (less) retry_writer();
}

void SlotKeeper::add_pack(PackPlace pack, Done done) {
  new_packs_.push_back({std::move(pack), std::move(done)});
  if (stopping_) return stop();
  change();
}

// ---- one change after another -------------------------------------------------------------------

bool SlotKeeper::add_packs(SlotMap& next) {
  bool added = false;
  for (NewPack& fresh : std::exchange(new_packs_, {})) {
    PackPlace& pack = fresh.place;
    for (std::uint64_t& track : pack.tracks) {
      if (next.place_of(track).kind != TrackPlace::Kind::kSlot) track = PackPlace::kFreed;
    }
    if (std::ranges::all_of(pack.tracks, [](auto t) { return t == PackPlace::kFreed; })) {
      fresh.done(Error{ErrorCode::kNotFound, "all tracks of the pack have been freed"});
    } else if (!next.has_room(pack.tracks.size(), pack.extents.size())) {
      fresh.done(Error{ErrorCode::kLimit, "the map of the log's slots has no room for a pack"});
    } else {
      pack.id = next.next_pack();
      next.add_pack(std::move(pack));
      next_done_.push_back(std::move(fresh.done));
      added = true;
    }
  }
  return added;
}

bool SlotKeeper::give_slots(SlotMap& next) {
  const std::uint64_t wanted = wanted_ahead();
  bool given = false;
  next_backed_end_ = std::max(backed_end_, current() + 1);
  while (next_backed_end_ < parts_.tracks.end() && next_backed_end_ - (current() + 1) < wanted) {
    const auto track = parts_.tracks.track(next_backed_end_);
    if (!track) break;
    const std::optional<std::uint64_t> slot = parts_.disk.promise_slot();
    if (!slot) break;
    next.assign(*track, *slot);
    ++next_backed_end_;
    given = true;
  }
  return given;
}

void SlotKeeper::change() {
  if (next_ || log_disk_ == nullptr) return;
  SlotMap next = parts_.disk.map();
  const bool added = add_packs(next);
  const bool given = give_slots(next);
  if (!added && !given && !parts_.disk.has_gone()) {
    if (!writer_waits_ || std::exchange(asking_again_, true)) return;
    parts_.executor.after(kAgainIn, [this, alive = alive_] {
      if (!*alive) return;
      asking_again_ = false;
      retry_writer();
    });
    return;
  }
  bytes_ = Payload::copy_of(next.to_bytes(++next_generation_));
  next_ = std::move(next);
  copies_written_ = 0;
  write_copy();
}

void SlotKeeper::retry_writer() {
  if (std::exchange(writer_waits_, false)) parts_.writer.retry();
}

void SlotKeeper::write_copy() {
  writing_ = true;
  const std::uint32_t copy = copies_written_ == 0 ? first_copy_ : 1 - first_copy_;
  const std::uint64_t at = parts_.disk.superblock().map_first_block(copy) * kBlockBytes;
  parts_.disk.under().async_write(at, {bytes_.bytes()}, Durability::kDurable,
                                  [this, at](const Result<void>& result) {
                                    if (!result) return copy_failed();
                                    read_back(at);
                                  });
}

// The map decides where everything stands: a disk that has put it elsewhere, or nowhere, is found
// out while the map as it was is still good.
void SlotKeeper::read_back(std::uint64_t at) {
  found_ = Payload::allocate(bytes_.size());
  parts_.disk.under().async_read(at, found_.bytes(), [this](const Result<void>& result) {
    if (!result || !std::ranges::equal(found_.bytes(), bytes_.bytes())) return copy_failed();
    if (++copies_written_ == 2) return written();
    write_copy();
  });
}

// The other copy is whole, and stays so until this one is.
void SlotKeeper::copy_failed() {
  writing_ = false;
  ++failures_;
  if (stopping_) return give_up();
  if (failures_ >= kFailuresMax) retry_writer();
  parts_.executor.after(kAgainIn * 10, [this, alive = alive_] {
    if (*alive && next_ && !writing_) write_copy();
  });
}

void SlotKeeper::stop() {
  stopping_ = true;
  if (next_ && !writing_) return give_up();
  if (next_) return;
  for (NewPack& fresh : std::exchange(new_packs_, {})) {
    fresh.done(Error{ErrorCode::kAborted, "the log is being closed"});
  }
}

// What was promised stays so: the next map begins where this one has come to.
void SlotKeeper::give_up() {
  if (copies_written_ == 1) first_copy_ = 1 - first_copy_;
  parts_.disk.may_be_found(*next_);
  next_.reset();
  next_backed_end_ = 0;
  released_meanwhile_.clear();
  std::vector<Done> done = std::exchange(next_done_, {});
  for (NewPack& fresh : std::exchange(new_packs_, {})) done.push_back(std::move(fresh.done));
  for (Done& each : done) {
    each(Error{ErrorCode::kAborted, "the map of the log's slots could not be written"});
  }
  retry_writer();
}

void SlotKeeper::written() {
  writing_ = false;
  failures_ = 0;
  parts_.disk.adopt(*std::exchange(next_, std::nullopt), next_generation_);
  backed_end_ = std::exchange(next_backed_end_, 0);
  for (const std::uint64_t track : std::exchange(released_meanwhile_, {})) {
    parts_.disk.release(track);
  }
  for (Done& each : std::exchange(next_done_, {})) each({});
  retry_writer();
  change();
}

}  // namespace mariner::logging
