// What a storage node does about what it missed: the history says what changed, and the image gets
// it, at a rate that may be limited; or it starts over.
#include <algorithm>
#include <utility>

#include "proto/check.h"
#include "server/volume/storage.h"

namespace mariner::volume {

// What an answer that breaks off has put into the table already is right, and comes again.
void Storage::catch_up(SequenceNumber from, SequenceNumber to, SequenceNumber at,
                       UniqueFunction<void()> done) {
  behind_ = true;
  ++catching_up_;
  parts_.history.changed(
      from, to,
      [this, to, at, life = lives_](std::span<const BlockRange> extents) {
        if (life != lives_) return;
        if (!active_.since && !extents.empty()) active_.since = executor_.wall_time();
        if (at == to) {
          missed(extents, at);
        } else {
          restore(extents, at);
        }
      },
      [this, from, to, at, life = lives_, before = missed_ ? missed_->bytes : 0,
       done = std::move(done)](const Result<void>& looked) mutable {
        --catching_up_;
        if (stopped_ || life != lives_) return;
        if (!looked) {
          if (missed_) missed_->bytes = before;  // they come again
          if (looked.error().code == ErrorCode::kOutsideWindow && events_.outlived) {
            return events_.outlived();
          }
          return try_again([this, from, to, at, life, done = std::move(done)]() mutable {
            if (life == lives_) catch_up(from, to, at, std::move(done));
          });
        }
        behind_ = false;
        tell_fetched();
        committed(at);
        done();
      });
}

// It does not count as lag: what is written meanwhile goes on.
void Storage::missed(std::span<const BlockRange> extents, SequenceNumber at) {
  if (extents.empty()) return;
  if (!missed_) missed_ = Unhurried{executor_.monotonic_time()};
  active_.missed = true;
  for (const BlockRange& extent : extents) {
    active_.runs->put(extent, content_as_of(at));
    missed_->bytes += extent.count.bytes();
  }
}

replication::CatchUpProgress Storage::catch_up_progress() const {
  if (!missed_) return {};
  const std::uint64_t left = missed_left_bytes();
  const std::uint64_t total = std::max(missed_->bytes, left);
  const std::chrono::duration<double> took = executor_.monotonic_time() - missed_->since;
  const double done = static_cast<double>(total - left);
  return {total, left, took.count() > 0 ? static_cast<std::uint64_t>(done / took.count()) : 0};
}

std::uint64_t Storage::missed_left_bytes() const {
  const auto of = [](const Table& table) {
    return table.runs && table.missed ? table.runs->past().cost_bytes() : 0;
  };
  return backlog_.missed_bytes() + of(active_) + of(frozen_);
}

Storage::RestoreProgress Storage::restore_progress() const {
  if (!restoring_) return {};
  const std::uint64_t left = restoring_left_bytes();
  const std::uint64_t total = std::max(restoring_->bytes, left);
  const std::chrono::nanoseconds took = executor_.monotonic_time() - restoring_->since;
  const double seconds = std::chrono::duration<double>(took).count();
  const auto done = static_cast<double>(total - std::min(total, left + restoring_->bytes_before));
  return {total, left, took, seconds > 0 ? static_cast<std::uint64_t>(done / seconds) : 0};
}

// It had begun before the start.
void Storage::resume_restoring() {
  if (!restoring_ || headway_.restored_bytes_all() <= restoring_->bytes) return;
  restoring_->bytes_before = headway_.restored_bytes_all() - restoring_->bytes;
  restoring_->bytes = headway_.restored_bytes_all();
}

std::uint64_t Storage::restoring_left_bytes() const {
  const auto of = [](const Table& table) {
    return table.runs && table.restores ? table.runs->past().cost_bytes() : 0;
  };
  return backlog_.restoring_bytes() + of(active_) + of(frozen_);
}

void Storage::tell_restored() {
  if (!restoring_ || active_.restores || frozen_.restores || backlog_.restores()) return;
  const RestoreProgress progress = restore_progress();
  restoring_.reset();
  if (events_.restored) events_.restored(progress);
}

void Storage::tell_fetched() {
  if (!missed_) return;
  if (!active_.missed && !frozen_.missed && !backlog_.missed()) missed_.reset();
  if (events_.fetched) events_.fetched(catch_up_progress());
}

// What was missed, and what a rollback changed. What memory did not hold is fetched in time:
// whoever writes waits for that.
UniqueFunction<bool(std::uint64_t)> Storage::throttled() {
  Throttle* throttle = nullptr;
  if (backlog_.first_restores()) throttle = options_.restore;
  if (backlog_.first_was_missed()) throttle = options_.catch_up;
  if (throttle == nullptr) return nullptr;
  return [this, throttle](std::uint64_t bytes) {
    const std::chrono::nanoseconds now = executor_.monotonic_time();
    const std::chrono::nanoseconds wait = throttle->take(bytes, now);
    if (wait.count() == 0) return true;
    rested_ += wait;
    rests_until_ = now + wait;
    executor_.after(wait, [this, alive = alive_] {
      if (*alive) applier_.resume();
    });
    return false;
  };
}

void Storage::stop_applier() {
  applier_.stop();
  executor_.post([this, alive = alive_] {
    if (*alive) applier_.resume();
  });
}

void Storage::try_again(UniqueFunction<void()> what) {
  executor_.after(kRetryDelay, [this, alive = alive_, what = std::move(what)]() mutable {
    if (*alive && !stopped_) what();
  });
}

// From here on nobody is told that the image has anything, though the applier may still be at it.
void Storage::start_over(UniqueFunction<void()> done) {
  CHECK(!starting_over_);
  starting_over_ = std::move(done);
  ++lives_;
  durable_ = applied_ = committed_ = kept_ = SequenceNumber{};
  behind_ = false;
  remove_spill();
  forget();
  active_ = Table{};
  active_.runs = std::make_shared<SplitTable>();
  if (frozen_.runs) {  // nothing of it goes to the new backlog
    frozen_.runs->take_past();
    frozen_.behind = 0;
    frozen_.missed = frozen_.restores = false;
    frozen_.since.reset();
  }
  backlog_ = Backlog{};
  order_.stop();
  missed_.reset();
  restoring_.reset();
  headway_.forget();
  executor_.post([this, alive = alive_] {
    if (*alive && !stopped_) keep_start_over();
  });
}

void Storage::keep_start_over() {
  const auto kept = [this](const Result<void>& result) {
    if (stopped_) return;
    if (!result) return try_again([this] { keep_start_over(); });
    emptying_ = true;
    if (!applier_.running()) return empty_image();
    stop_applier();  // then ended() goes on
  };
  if (!events_.starts_over) return kept({});
  events_.starts_over(kept);
}

// Reads that have looked into the tables look again (frozen_count_): by then nothing is served
// here.
void Storage::empty_image() {
  frozen_ = Table{};
  ++frozen_count_;
  emptying_ = !stopped_;
  if (stopped_) return;
  parts_.worker.run(
      [image = &parts_.image]() -> Result<void> {
        if (Result<void> r = image->discard({0, image->size_bytes()}); !r) return r;
        return image->flush();
      },
      [this](const Result<void>& emptied) {
        emptying_ = false;
        if (stopped_) return;
        if (!emptied) {
          tell_image_failed(emptied.error());
          if (events_.apply_failed) events_.apply_failed(emptied.error());
          return try_again([this] { empty_image(); });
        }
        std::exchange(starting_over_, nullptr)();
        update_grant();
      });
}

}  // namespace mariner::volume
