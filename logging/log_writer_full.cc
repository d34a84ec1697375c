// The log writer when the log is full: what waits, what fails, and what is withdrawn.
#include <algorithm>
#include <string>
#include <utility>

#include "logging/log_writer.h"
#include "proto/check.h"

namespace mariner::logging {
namespace {

// The track that before-images leave (Urgency), and those that are begun or end early.
constexpr std::uint64_t kBesideSetAside = 3;

}  // namespace

bool LogWriter::is_full(Time now) const {
  if (waiting_.empty()) return false;
  // First what went before.
  if (std::ranges::any_of(arms_, [](const std::unique_ptr<Arm>& arm) {
        return arm->in_flight || arm->positioning || (arm->policy && arm->gated);
      })) {
    return false;
  }
  if (reserved()) return true;
  return !policy_.may_take_later(waiting_.front().batch_bytes(), now);
}

std::uint64_t LogWriter::kept_beside(std::uint64_t set_aside_bytes) const {
  std::uint64_t for_release = 0;
  for (const auto& arm : arms_) {
    if (arm->policy && !arm->removed) for_release += arm->disk->kept_tracks();
  }
  const bool waits = !waiting_.empty() && waiting_.front().record.ordinal == 0;
  const std::uint64_t wanted_bytes = waits ? waiting_.front().sets_aside : 0;
  if (set_aside_bytes + wanted_bytes == 0) return options_.reserve_tracks + for_release;
  std::uint64_t tracks = 0;
  std::uint64_t track_bytes = UINT64_MAX;
  for (const auto& arm : arms_) {
    if (!arm->policy || arm->removed) continue;
    tracks += arm->disk->superblock().place_count();
    track_bytes = std::min(track_bytes, arm->disk->superblock().track_bytes());
  }
  // The end of a track is left where the next record is longer.
  const std::uint64_t usable = track_bytes - std::min(kSetsAsideInPieces, track_bytes / 2);
  // What is logged has all that it may need. What is to be logged yet would never be, if it had to
  // find more than there is.
  const std::uint64_t in_hand = std::min(in_hand_bytes_, set_aside_bytes);
  const std::uint64_t logged = (set_aside_bytes - in_hand + usable - 1) / usable;
  const std::uint64_t coming = (in_hand + wanted_bytes) / usable + kBesideSetAside;
  return for_release +
         std::max(std::uint64_t{options_.reserve_tracks}, logged + std::min(coming, tracks / 2));
}

void LogWriter::give_back(std::uint64_t bytes) {
  CHECK(bytes <= set_aside_bytes_);
  set_aside_bytes_ -= bytes;
  if (bytes > 0 && !waiting_.empty()) pump_soon();
}

// What is at the queue's front has no room. Whether something else may have.
bool LogWriter::make_way() {
  const bool ordinary = waiting_.front().urgency == Urgency::kOrdinary;
  // A before-image may be what the release waits for: it cannot wait for the release, but it has no
  // place in the order.
  if (full_gate_ && full_gate_() && !is_base(waiting_.front())) {
    return waiting_.base_first();
  }
  std::uint64_t tracks = 0;
  for (const auto& arm : arms_) tracks += arm->disk->superblock().place_count();
  const Error full{ErrorCode::kNoSpace,
                   "the log is full: " + std::to_string(tracks) +
                       " tracks are in use; raise [log] max_size or delete what pins history"};
  if (ordinary) {
    fail_ordinary(full);
  } else {
    PendingRecord pending = std::move(waiting_.front());
    waiting_.pop_front();
    fail(pending, full);
  }
  return !waiting_.empty();
}

void LogWriter::fail(PendingRecord& pending, const Error& error) {
  // What becomes of records when no disk is left, the next recovery finds out.
  const std::uint64_t ordinal = pending.record.ordinal;
  if (ordinal != 0) {
    set_aside_bytes_ -= pending.sets_aside;
    in_hand_bytes_ -= pending.sets_aside;
  }
  const bool counts = ordinal != 0 && !failed_ && pending.record.type != RecordType::kWithdrawal;
  if (counts && pending.dispatched) return withdraw(pending, error);
  if (counts) ordinals_.settle(ordinal);  // it waited for a disk, and stands nowhere
  pending.done(error);
}

// A disk was told to write it, and may hold it although it said that it failed, or may write it
// yet. Nobody is told that it failed before the log says that it does not count.
void LogWriter::withdraw(PendingRecord& pending, const Error& error) {
  const std::uint64_t ordinal = pending.record.ordinal;
  PendingRecord withdrawal;
  withdrawal.record.type = RecordType::kWithdrawal;
  withdrawal.record.target_sequence.value = ordinal;
  withdrawal.urgency = Urgency::kEssential;
  withdrawal.arrived = executor_.monotonic_time();
  withdrawal.done = [this, ordinal, error,
                     done = std::move(pending.done)](const Result<LoggedAt>& logged) mutable {
    if (logged) {
      withdrawn_.add(ordinal);
      ordinals_.settle(ordinal);
    } else if (!failed_) {
      // Nothing may be logged that builds on a failure which the log may forget.
      failed_ = true;
      why_failed_ = {ErrorCode::kIo, "the log cannot say that a write has failed (" +
                                         logged.error().message +
                                         "); nothing is written any more before a restart"};
      pump_soon();
    }
    done(error);
  };
  // Before what has no place in the order yet, which may be what there is no room for.
  waiting_.push_before_new(std::move(withdrawal));
}

void LogWriter::fail_ordinary(const Error& error) {
  for (PendingRecord& pending : waiting_.take_ordinary()) fail(pending, error);
}

void LogWriter::fail_all(const Error& error) {
  for (PendingRecord& pending : waiting_.take_all()) fail(pending, error);
}

}  // namespace mariner::logging
