// How what is pending gets into the image: what memory holds as a table at a time, and in turn with
// it, a portion at a time, what has to be fetched from the history.
#include <algorithm>
#include <utility>

#include "server/volume/storage.h"

namespace mariner::volume {
namespace {

// Of fetching what was missed while hosts write, and what a rollback changed while they read or
// write a good deal: so many times as long as a portion took.
constexpr int kRest = 3;
constexpr double kBusyPerSecond = 200;  // operations

}  // namespace

void Storage::apply_later(std::chrono::nanoseconds delay) {
  if (timer_set_ || stopped_) return;
  timer_set_ = true;
  executor_.after(delay, [this, alive = alive_] {
    if (!*alive) return;
    timer_set_ = false;
    if (frozen_.runs) return;  // what has come since waits anew when that is in the image
    apply_now();
  });
}

void Storage::rest(bool rests) {
  rests_ = rests;
  if (!rests) return go_on();
  interrupted_ = applier_.running();
  stop_applier();
}

void Storage::apply_now() {
  due_ = true;
  go_on();
}

// Whatever is next, unless something is under way: it goes on here when that ends.
void Storage::go_on() {
  if (stopped_ || rests_ || applier_.running() || starting_over_ || putting_) return;
  if (punching_) {
    apply_waits_ = true;
    return;
  }
  const bool fetch = may_fetch_now();
  if (wants_table() && !(fetch && std::exchange(fetches_next_, false))) {
    fetches_next_ = true;
    if (!frozen_.runs && !moving_) freeze();
    if (only_moves()) return;
    if (frozen_.runs) return apply_table();
    tell_durable();
    return go_on();
  }
  if (fetch) return fetch_next();
  if (std::exchange(due_, false)) tell_durable();  // of voids alone
  if (!active_.runs->empty()) apply_later(options_.apply_delay);
}

bool Storage::wants_table() const {
  if (frozen_.runs) return true;
  return !active_.runs->empty() && (due_ || large() || !drains_.empty());
}

// Whoever writes is to notice little of it when a node fetches what it missed: then that rests
// after each portion.
bool Storage::may_fetch_now() {
  if (backlog_.empty() || moving_ || order_.looking()) return false;
  const std::chrono::nanoseconds now = executor_.monotonic_time();
  if (now >= fetch_again_) return true;
  if (!std::exchange(fetch_timer_set_, true)) {
    executor_.after(fetch_again_ - now, [this, alive = alive_] {
      if (!*alive) return;
      fetch_timer_set_ = false;
      go_on();
    });
  }
  return false;
}

// What memory does not hold goes to the backlog.
void Storage::freeze() {
  CHECK(!moving_);
  due_ = false;
  ++frozen_count_;
  frozen_ = std::exchange(active_, Table{});
  active_.runs = std::make_shared<SplitTable>();
  active_.last = frozen_.last;
  const PendingTable& memory = *frozen_.runs->memory();
  if (frozen_.runs->past().empty()) {
    frozen_.behind = 0;  // overwritten since
    frozen_.missed = frozen_.restores = false;
  } else if (memory.empty()) {
    frozen_.behind = frozen_.bytes;
  }
  frozen_.bytes -= frozen_.behind;
  frozen_.bytes_frozen = frozen_.bytes;
  frozen_.cost_frozen = frozen_.cost = memory.cost_bytes();
  if (!frozen_.runs->past().empty()) move_to_backlog();
  if (memory.empty() && !moving_) image_has_table();
}

// (What stays counts as memory as it did: payloads of which a part has left are there in full.)
void Storage::move_to_backlog() {
  if (!backlog_.empty()) {
    moving_ = true;
    backlog_.added({0, frozen_.missed, frozen_.restores, frozen_.since});
    return move_later();
  }
  frozen_.runs->past().visit({Lbn{0}, {headway_.through().value}},
                             [&](BlockRange range, const PendingContent* content) {
                               if (content != nullptr) headway_.lacks(range);
                             });
  backlog_.add_all(frozen_.runs->take_past());
  moved();
}

void Storage::move_later() {
  executor_.in_next_turn([this, alive = alive_] {
    if (*alive) move_some();
  });
}

// It may be a great deal, and hosts wait meanwhile. The memory of the table is applied beside it;
// where there is none (any more, with nobody who waits to be heard), that was the table.
void Storage::move_some() {
  if (frozen_.runs && !stopped_) {
    const PendingTable& past = frozen_.runs->past();
    Lbn next{0};
    for (std::size_t i = SlowErase::runs_of_a_turn(past.size()); i > 0; --i) {
      const PendingTable::Run run = past.next_run(next);
      if (run.range.empty()) break;
      backlog_.add(run.range, run.content);
      headway_.lacks(run.range);
      next = run.range.end();
    }
    frozen_.runs->forget_past_before(next);
    if (!past.empty()) return move_later();
  }
  moving_ = false;
  if (!stopped_) {
    moved();
    const bool was_all =
        frozen_.runs && frozen_.runs->memory()->empty() && !applier_.running() && !starting_over_;
    if (was_all) {
      image_has_table();
      tell_durable();
      if (!active_.runs->empty()) apply_later(options_.apply_delay);
    }
  }
  for (auto& heard : std::exchange(heard_when_moved_, {})) heard();
  go_on();
}

void Storage::moved() {
  backlog_.added({frozen_.behind, frozen_.missed, frozen_.restores, frozen_.since});
  frozen_.behind = 0;
  frozen_.missed = frozen_.restores = false;
}

void Storage::image_has_table() {
  applied_ = frozen_.last;
  frozen_ = Table{};
}

// As much at a time as it takes to keep up, and no more.
void Storage::pace_applier() {
  applier_.set_portion({governor_.portion_bytes() >> kBlockShift});
  const bool behind = governor_.sustained() || waiting_bytes() > options_.lag_bytes_max / 4;
  applier_.set_begin(behind ? Begin::kMany : Begin::kFew);
}

void Storage::apply_table() {
  portion_begun_ = executor_.monotonic_time();
  pace_applier();
  // After a run that failed, or was to rest.
  leaving_.finish(*frozen_.runs->memory());
  frozen_.cost = std::min(frozen_.cost, frozen_.runs->memory()->cost_bytes());
  applier_.start(
      {.table = frozen_.runs->memory(),
       .flushed = [this](const auto& portion, auto heard) { flushed(portion, std::move(heard)); },
       .image_failed = [this](const Error& error) { tell_image_failed(error); },
       .done = [this](const Result<void>& result) { applied(result); }});
}

// What was overwritten in the table leaves it in proportion. What was to be fetched for the same
// blocks is older: the applier ends, and the table goes, when that has gone, and the backlog has
// what was not in memory.
void Storage::flushed(const ImageApplier::Flushed& portion, UniqueFunction<void()> heard) {
  const std::uint64_t bytes_before = frozen_.bytes;
  // (Zeros that are written in pieces cost more than they did in the table.)
  frozen_.cost -= std::min(frozen_.cost, portion.written.bytes());
  frozen_.bytes = static_cast<std::uint64_t>(static_cast<double>(frozen_.bytes_frozen) *
                                             static_cast<double>(frozen_.cost) /
                                             static_cast<double>(frozen_.cost_frozen));
  const std::chrono::nanoseconds now = executor_.monotonic_time();
  governor_.written({.lag_bytes = bytes_before - frozen_.bytes,
                     .image_bytes = portion.written.bytes(),
                     .took = now - std::exchange(portion_begun_, now)});
  pace_applier();
  update_grant();
  const Lbn end = portion.ranges.front().end();
  if (backlog_.empty() && !moving_) {
    leaving_.add({frozen_.runs->memory(), end});
    return heard();
  }
  leaving_.add({frozen_.runs->memory(), end,
                [this](std::span<const BlockRange> gone) {
                  for (const BlockRange& range : gone) {
                    backlog_.remove(range);
                    headway_.has(range);
                  }
                },
                [this, heard = std::move(heard)]() mutable {
                  if (!moving_) return heard();
                  heard_when_moved_.push_back(std::move(heard));
                }});
}

void Storage::applied(const Result<void>& result) {
  if (!ended()) return;
  if (std::exchange(interrupted_, false) && !result) return go_on();
  if (!result) {
    tell_failed(result.error(), told_unavailable_);
    return apply_again();
  }
  told_unavailable_ = false;
  image_has_table();
  tell_durable();
  if (!active_.runs->empty()) apply_later(options_.apply_delay);
  go_on();
}

void Storage::fetch_next() {
  if (backlog_.first()->empty()) {  // the newer part takes its place
    tell_durable();
    return go_on();
  }
  const std::span<const BlockRange> order = order_.rest(backlog_.first());
  if (!order.empty() || backlog_.first()->cost_bytes() <= options_.unordered_bytes_max) {
    if (order.empty()) reach(Lbn{UINT64_MAX});
    return fetch_portions(order);
  }
  const auto looked_at = [this, alive = alive_](Lbn through) {
    if (*alive && !stopped_ && !starting_over_) reach(through);
  };
  order_.look_up(backlog_.first(), looked_at, [this, alive = alive_](const Result<void>& looked) {
    if (!*alive || stopped_ || starting_over_) return;
    if (!looked) return fetching_ended(looked);
    go_on();
  });
}

void Storage::fetch_portions(std::span<const BlockRange> order) {
  begin_portion(executor_.monotonic_time());
  applier_.set_portion({fetch_portion_.bytes() >> kBlockShift});
  applier_.set_begin(Begin::kMany);
  applier_.start({.table = backlog_.first(),
                  .order = order,
                  .past_cache = !order.empty(),
                  .flushed = [this](const auto& portion,
                                    auto heard) { fetched(portion.ranges, std::move(heard)); },
                  .goes_on = [this] { return fetches_on(); },
                  .may_fetch = throttled(),
                  .image_failed = [this](const Error& error) { tell_image_failed(error); },
                  .done = [this](const Result<void>& result) { fetching_ended(result); }});
}

void Storage::begin_portion(std::chrono::nanoseconds now) {
  portion_begun_ = now;
  rested_ = std::max(std::chrono::nanoseconds(0), rests_until_ - now);
  written_before_fetch_ = prepared_bytes_total_;
  operations_before_fetch_ = host_operations_;
}

// Of one that ends `now`. (What comes next may have begun to rest already.)
std::chrono::nanoseconds Storage::portion_took(std::chrono::nanoseconds now) const {
  const auto ahead = std::max(std::chrono::nanoseconds(0), rests_until_ - now);
  return now - portion_begun_ - (rested_ - ahead);
}

// Nothing else is to have its turn.
bool Storage::fetches_on() const {
  const std::chrono::nanoseconds now = executor_.monotonic_time();
  return !wants_table() && punches_.empty() && now >= fetch_again_ && rest_after(now).count() == 0;
}

// For the sake of hosts, after a portion that ends `now`.
std::chrono::nanoseconds Storage::rest_after(std::chrono::nanoseconds now) const {
  const std::chrono::nanoseconds took = portion_took(now);
  if (backlog_.first_was_missed()) {
    return prepared_bytes_total_ > written_before_fetch_ ? kRest * took
                                                         : std::chrono::nanoseconds(0);
  }
  const auto operations = static_cast<double>(host_operations_ - operations_before_fetch_);
  const double seconds = std::chrono::duration<double>(took).count();
  const bool busy = backlog_.first_restores() && operations > seconds * kBusyPerSecond;
  return busy ? kRest * took : std::chrono::nanoseconds(0);
}

// Tables are applied meanwhile if the history cannot be asked now.
void Storage::fetching_ended(const Result<void>& result) {
  if (!ended()) return;
  if (std::exchange(interrupted_, false) && !result) return go_on();
  if (!result) {
    tell_failed(result.error(), told_unfetched_);
    fetch_again_ = executor_.monotonic_time() + kRetryDelay;
  } else {
    told_unfetched_ = false;
    tell_durable();
  }
  go_on();
}

// It leaves the backlog some runs in a turn, in the order in which it was flushed; of a few runs at
// once. (Until then it is the same there as in the image. No table comes to the backlog meanwhile:
// the applier ends behind it.)
void Storage::fetched(std::span<const BlockRange> ranges, UniqueFunction<void()> heard) {
  const std::chrono::nanoseconds now = executor_.monotonic_time();
  const std::chrono::nanoseconds took = portion_took(now);
  fetch_again_ = now + rest_after(now);
  begin_portion(now);
  fetched_.push_back({.ranges = {ranges.begin(), ranges.end()}, .took = took});
  fetched_.back().heard = std::move(heard);
  if (fetched_.size() == 1) forget_fetched();
}

void Storage::forget_fetched() {
  Fetched& first = fetched_.front();
  const std::uint64_t cost_before = backlog_.first()->cost_bytes();
  const std::uint64_t bytes_before = backlog_.bytes();
  const bool all = forget_some(first);
  first.image_bytes += cost_before - backlog_.first()->cost_bytes();
  first.lag_bytes += bytes_before - backlog_.bytes();
  if (!all) return forget_fetched_later();
  Fetched done = std::move(first);
  fetched_.pop_front();
  if (!fetched_.empty()) forget_fetched_later();
  fetch_portion_.written(done.image_bytes, done.took);
  applier_.set_portion({fetch_portion_.bytes() >> kBlockShift});
  if (!backlog_.first_was_missed() && !backlog_.first_restores()) {
    governor_.fetched({done.lag_bytes, done.image_bytes, done.took});
  }
  tell_headway();
  tell_fetched();
  update_grant();
  done.heard();
}

void Storage::forget_fetched_later() {
  executor_.in_next_turn([this, alive = alive_] {
    if (*alive) forget_fetched();
  });
}

// What the newer part of the backlog has there is still left. True: that was all.
bool Storage::forget_some(Fetched& portion) {
  for (std::size_t i = 0; i < kForgetEachTurn; ++i) {
    if (portion.next == portion.ranges.size()) return true;
    BlockRange& range = portion.ranges[portion.next];
    const BlockRange run = backlog_.first()->next_run(range.first).range.intersect(range);
    if (!run.empty()) {
      headway_.has(run);
      backlog_.remove_first(run);
      range = BlockRange::between(run.end(), range.end());
    }
    if (run.empty() || range.empty()) ++portion.next;
  }
  return portion.next == portion.ranges.size();
}

// The applier rests. False: and so it will. (It may end before it is kept that the image holds
// nothing: then it is not emptied yet.)
bool Storage::ended() {
  if (starting_over_) {
    if (emptying_) empty_image();
    return false;
  }
  punch_next();
  return !stopped_;
}

// With nothing more pending, what came since (voids, or a rollback that moved nothing) is in the
// image as well.
void Storage::tell_durable() {
  SequenceNumber now = std::max(durable_, backlog_.advance(applied_));
  if (nothing_pending()) {
    now = std::max(now, active_.last);
    active_.since.reset();
  }
  tell_fetched();
  tell_restored();
  if (now > durable_) {
    durable_ = now;
    if (events_.durable) events_.durable(durable_);
  }
  if (backlog_.empty()) tell_headway();
  while (!drains_.empty() && drains_.front().until <= durable_) {
    Done done = std::move(drains_.front().done);
    drains_.pop_front();
    done({});
  }
  update_grant();
}

void Storage::tell_failed(const Error& error, bool& told_unavailable) {
  const bool unavailable = error.code == ErrorCode::kUnavailable;
  const bool told = std::exchange(told_unavailable, unavailable) && unavailable;
  if (!told && events_.apply_failed) events_.apply_failed(error);
}

void Storage::tell_image_failed(const Error& error) {
  if (!stopped_ && events_.image_failed) events_.image_failed(error);
}

// One retry is under way at most, however often something else begins to apply meanwhile.
void Storage::apply_again() {
  if (std::exchange(retrying_, true)) return;
  executor_.after(kRetryDelay, [this, alive = alive_] {
    if (!*alive) return;
    retrying_ = false;
    apply_now();
  });
}

}  // namespace mariner::volume
