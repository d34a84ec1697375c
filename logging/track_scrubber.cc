#include "logging/track_scrubber.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::logging {
namespace {

using std::chrono::nanoseconds;

nanoseconds time_for(std::uint64_t bytes, std::uint64_t bytes_per_second) {
  constexpr double kLongest = 365.0 * 24 * 3600;
  const double seconds = static_cast<double>(bytes) / static_cast<double>(bytes_per_second);
  return std::chrono::duration_cast<nanoseconds>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
}

}  // namespace

TrackScrubber::TrackScrubber(const Parts& parts, const Options& options, Owner owner)
    : parts_(parts), options_(options), owner_(std::move(owner)) {}

TrackScrubber::~TrackScrubber() {
  *alive_ = false;
  CHECK_MSG(!in_flight_, "a track scrubber is destroyed with a read in flight");
}

void TrackScrubber::start() {
  CHECK(!std::exchange(started_, true));
  if (!enabled()) return;
  buffer_ = Payload::allocate(std::size_t{TrackVerifier::kPieceBlocks} * kBlockBytes);
  round_began_ = due_ = parts_.executor.monotonic_time();
  wake_at(due_);
}

nanoseconds TrackScrubber::round_time() const {
  const std::uint64_t bytes = parts_.superblock.place_count() * parts_.superblock.track_bytes();
  return std::max(kRoundMin, time_for(bytes, options_.bytes_per_second));
}

void TrackScrubber::wake_at(nanoseconds time) {
  const nanoseconds now = parts_.executor.monotonic_time();
  parts_.executor.after(std::max(time - now, nanoseconds(0)), [this, alive = alive_] {
    if (*alive) step();
  });
}

void TrackScrubber::step() {
  if (stopping_) return;
  if (yielded_ < kYieldMax && owner_.busy()) {
    yielded_ += kYield;
    return wake_at(parts_.executor.monotonic_time() + kYield);
  }
  yielded_ = nanoseconds(0);
  proceed();
}

// To the next read.
void TrackScrubber::proceed() {
  for (;;) {
    // A track that has been released may have been filled anew under the reads, one that is being
    // released may have been discarded: what they gave is nothing to anybody.
    if (verifier_ && verifier_->allocation() < parts_.tracks.kept_from()) verifier_.reset();
    if (verifier_) {
      const TrackVerifier::Piece piece = verifier_->next();
      if (piece.count > 0) return read(piece.block, piece.count, &TrackScrubber::piece_read);
      finish_track();
    }
    if (!begin_track()) return;
  }
}

// False: a read, or the next round, has been arranged.
bool TrackScrubber::begin_track() {
  const TrackList& tracks = parts_.tracks;
  const std::uint64_t current = owner_.current_allocation();
  if (next_ < tracks.kept_from()) {
    next_ = tracks.kept_from();
    expected_batch_ = 0;
  }
  while (next_ < current && !tracks.track(next_)) ++next_;  // a hole
  if (next_ >= current) {
    end_round();
    return false;
  }
  if (!next_header_ || next_header_->allocation <= next_) {
    next_header_.reset();
    // Where the track ends cannot be told yet, nor where those behind it do.
    if (!look_for_end(next_ + 1, current)) end_round();
    return false;
  }
  verifier_.emplace(parts_.superblock,
                    TrackVerifier::Request{.track = *tracks.track(next_),
                                           .allocation = next_,
                                           .expected_batch = expected_batch_,
                                           .end_batch = next_header_->first_batch,
                                           .ends_here = next_header_->allocation == next_ + 1,
                                           .last_time = last_time_});
  return true;
}

// Reads the next header from `allocation` to `current` that has not been looked at.
bool TrackScrubber::look_for_end(std::uint64_t allocation, std::uint64_t current) {
  looked_ = std::max(looked_ + 1, allocation);
  while (looked_ <= current && !parts_.tracks.track(looked_)) ++looked_;
  if (looked_ > current) return false;
  read(parts_.superblock.track_first_sector(*parts_.tracks.track(looked_)), 1,
       &TrackScrubber::header_read);
  return true;
}

void TrackScrubber::header_read(const Result<void>& result) {
  if (!result || looked_ < parts_.tracks.kept_from()) return;
  const std::optional<TrackHeader> header =
      unpack_track_header(std::span<const std::byte, kBlockBytes>(buffer_.data(), kBlockBytes),
                          parts_.superblock.log, *parts_.tracks.track(looked_));
  if (header && header->allocation == looked_) next_header_ = {looked_, header->first_batch};
}

void TrackScrubber::piece_read(const Result<void>& result) {
  if (!result) return verifier_->unreadable();
  const std::size_t bytes = std::size_t{verifier_->next().count} * kBlockBytes;
  progress_.bytes += bytes;
  verifier_->take(buffer_.bytes().first(bytes));
}

void TrackScrubber::finish_track() {
  const std::vector<TrackDamage>& damage = verifier_->damage();
  const auto before = found_.find(verifier_->allocation());
  for (const TrackDamage& each : damage) {
    const bool known = before != found_.end() &&
                       std::find(before->second.damage.begin(), before->second.damage.end(),
                                 each) != before->second.damage.end();
    if (!known) owner_.report(each);
  }
  if (damage.empty()) {
    if (before != found_.end()) found_.erase(before);
  } else if (before != found_.end() || found_.size() < kDamagedTracksMax) {
    found_[verifier_->allocation()] = {damage, verifier_->damaged_blocks()};
  }
  ++progress_.tracks;
  expected_batch_ = verifier_->next_batch();
  last_time_ = verifier_->last_time();
  next_ = verifier_->allocation() + 1;
  verifier_.reset();
}

void TrackScrubber::end_round() {
  ++progress_.rounds;
  progress_.last_round = parts_.executor.wall_time();
  found_.erase(found_.begin(), found_.lower_bound(parts_.tracks.oldest()));
  next_ = 0;
  expected_batch_ = 0;
  last_time_ = {};
  next_header_.reset();
  looked_ = 0;
  const nanoseconds now = parts_.executor.monotonic_time();
  round_began_ = std::max(now, round_began_ + round_time());
  due_ = std::max(due_, round_began_);
  wake_at(due_);
}

void TrackScrubber::read(std::uint64_t block, std::uint32_t count,
                         void (TrackScrubber::*then)(const Result<void>&)) {
  const std::size_t bytes = std::size_t{count} * kBlockBytes;
  due_ =
      std::max(due_, parts_.executor.monotonic_time()) + time_for(bytes, options_.bytes_per_second);
  in_flight_ = true;
  parts_.disk.async_read(block * kBlockBytes, buffer_.bytes().first(bytes),
                         [this, then](const Result<void>& result) {
                           in_flight_ = false;
                           if (stopping_) return;
                           (this->*then)(result);
                           wake_at(due_);
                         });
}

TrackScrubber::Progress TrackScrubber::progress() const {
  Progress progress = progress_;
  for (auto it = found_.lower_bound(parts_.tracks.oldest()); it != found_.end(); ++it) {
    progress.damaged_blocks += it->second.blocks;
  }
  return progress;
}

std::vector<TrackDamage> TrackScrubber::damage() const {
  std::vector<TrackDamage> out;
  for (auto it = found_.lower_bound(parts_.tracks.oldest()); it != found_.end(); ++it) {
    out.insert(out.end(), it->second.damage.begin(), it->second.damage.end());
  }
  return out;
}

}  // namespace mariner::logging
