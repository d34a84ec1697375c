#include "server/volume/storage.h"

#include <cstring>
#include <string>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {

using replication::WriteKind;
using replication::WriteMessage;

Storage::Storage(ImageApplier::Parts parts, Executor& executor, Options options, Found found,
                 Events events, Spill* spill)
    : parts_(parts),
      base_(parts.image),
      history_(parts.history, base_),
      executor_(executor),
      options_(options),
      events_(std::move(events)),
      spill_(spill),
      applier_(parts),
      governor_({options.lag_bytes_max, options.pending_memory_max, options.portion_bytes_max}),
      committed_(found.last),
      durable_(found.frontier),
      kept_(found.frontier) {
  CHECK(found.frontier <= found.last);
  active_.runs = std::make_shared<PendingTable>();
  active_.last = found.last;
  // What the image lacks is remembered as "what the history says now".
  put_history(found.unapplied, found.last);
  if (!found.unapplied.empty()) active_.since = found.unapplied_since;
  if (found.spilled) take(*std::move(found.spilled));
  granted_bytes_ = governor_.room(lag_bytes(), executor_.monotonic_time());
  if (durable_ < committed_)
    apply_later(large() ? std::chrono::nanoseconds(0) : options_.apply_delay);
}

Storage::~Storage() {
  *alive_ = false;
  CHECK_MSG(idle(), "storage is destroyed in use");
}

PendingContent Storage::content_as_of(SequenceNumber at) {
  PendingContent content;
  content.kind = PendingContent::Kind::kHistory;
  content.at = at;
  return content;
}

void Storage::put_history(std::span<const BlockRange> extents, SequenceNumber at) {
  for (const BlockRange& extent : extents) {
    active_.runs->put(extent, content_as_of(at));
    active_.bytes += extent.count.bytes();
  }
}

void Storage::prepare(const WriteMessage& message) {
  CHECK(prepared_.empty() || message.stamp.sequence > prepared_.back().stamp.sequence);
  prepared_.push_back(message);
  const std::uint64_t bytes = replication::lag_bytes(message.write);
  prepared_bytes_ += bytes;
  prepared_bytes_total_ += bytes;
  governor_.admitted(bytes);
  update_grant();
}

void Storage::drop(const replication::VoidMessage& message) {
  std::erase_if(prepared_, [&](const WriteMessage& write) {
    const bool lost = write.stamp.sequence >= message.first && write.stamp.sequence <= message.last;
    if (lost) prepared_bytes_ -= replication::lag_bytes(write.write);
    return lost;
  });
  update_grant();
}

void Storage::forget() {
  prepared_.clear();
  prepared_bytes_ = 0;
  update_grant();
}

void Storage::commit(SequenceNumber settled) {
  CHECK(settled >= committed_);
  while (!prepared_.empty() && prepared_.front().stamp.sequence <= settled) {
    put(prepared_.front());
    prepared_bytes_ -= replication::lag_bytes(prepared_.front().write);
    prepared_.pop_front();
  }
  committed(settled);
}

void Storage::committed(SequenceNumber settled) {
  committed_ = settled;
  active_.last = settled;
  if (!active_.runs->empty()) {
    if (large() && !applier_.running() && !retrying_) {
      apply_now();
    } else {
      apply_later(options_.apply_delay);
    }
  } else if (!frozen_.runs && durable_ < settled) {
    apply_later(options_.apply_delay);  // voids alone: nothing is to be written, and that is told
  }
  update_grant();
}

std::uint64_t Storage::memory_bytes() const {
  return active_.runs->memory_bytes() + (frozen_.runs ? frozen_.runs->memory_bytes() : 0);
}

// Worth applying without waiting for more: half of what may be pending at all, or, when somebody
// waits for the image to get on, a portion.
bool Storage::large() const {
  if (active_.runs->empty()) return false;
  return active_.runs->memory_bytes() >= options_.pending_memory_max / 2 ||
         active_.bytes >= options_.lag_bytes_max / 2 ||
         (governor_.sustained() && active_.bytes >= governor_.portion_bytes());
}

void Storage::put(const WriteMessage& message) {
  const replication::WriteRequest& write = message.write;
  if (!active_.since) active_.since = message.stamp.time;
  if (write.kind == WriteKind::kRollback) {
    CHECK(write.changed != nullptr);
    put_history(*write.changed, write.target);
    active_.restores = !active_.runs->empty();
    return;
  }
  BlockRange body = write.extent;
  std::size_t offset = write.payload.offset;
  const auto stored = [&](BlockRange range, bool repeated) {
    PendingContent content;
    const std::uint64_t bytes = repeated ? kBlockBytes : range.count.bytes();
    const bool fits = memory_bytes() + bytes <= options_.pending_memory_max;
    content.kind = fits ? PendingContent::Kind::kMemory : PendingContent::Kind::kHistory;
    content.repeated = repeated;
    if (fits) {
      content.payload = write.payload.payload;
      content.offset = offset;
    } else {
      content.at = message.stamp.sequence;
    }
    offset += bytes;
    active_.bytes += bytes;
    active_.runs->put(range, std::move(content));
  };
  if (write.has_head) {
    stored({body.first, {1}}, false);
    body = BlockRange::between(body.first + BlockCount{1}, body.end());
  }
  if (write.has_tail) body.count.value -= 1;
  if (write.kind == WriteKind::kZero) {
    active_.runs->put(body, {});
    active_.bytes += kBlockBytes;
  } else {
    stored(body, write.kind == WriteKind::kRepeated);
  }
  if (write.has_tail) stored({body.end(), {1}}, false);
}

void Storage::bound_lag(std::uint64_t bytes) {
  options_.lag_bytes_max = bytes;
  governor_.bound_lag(bytes, options_.pending_memory_max);
  update_grant();
}

// What is on its way here counts as lag already: nothing is granted twice.
void Storage::update_grant() {
  const std::uint64_t room =
      governor_.room(lag_bytes() + prepared_bytes_, executor_.monotonic_time());
  const std::uint64_t granted = prepared_bytes_total_ + room;
  if (room == 0 && governor_.wait().count() > 0) update_grant_later();
  if (granted == granted_bytes_) return;
  granted_bytes_ = granted;
  if (events_.granted) events_.granted(granted);
}

void Storage::update_grant_later() {
  if (grant_timer_set_ || stopped_) return;
  grant_timer_set_ = true;
  executor_.after(governor_.wait(), [this, alive = alive_] {
    if (!*alive) return;
    grant_timer_set_ = false;
    update_grant();
  });
}

void Storage::apply_later(std::chrono::nanoseconds delay) {
  if (timer_set_ || stopped_) return;
  timer_set_ = true;
  executor_.after(delay, [this, alive = alive_] {
    if (!*alive) return;
    timer_set_ = false;
    apply_now();
  });
}

void Storage::apply_now() {
  if (stopped_ || applier_.running() || starting_over_ || putting_) return;
  if (punching_) {
    apply_waits_ = true;
    return;
  }
  if (!frozen_.runs) {
    if (active_.runs->empty()) {
      // Nothing to write (voids only): the image is as good as the newest write.
      durable_ = active_.last;
      active_.since.reset();
      if (events_.durable) events_.durable(durable_);
      return;
    }
    freeze();
  }
  portion_begun_ = executor_.monotonic_time();
  rested_ = {};
  applier_.set_portion({governor_.portion_bytes() >> kBlockShift});
  applier_.start({frozen_.runs, [this](Lbn end) { flushed(end); }, may_fetch(),
                  [this](Result<void> result) { applied(std::move(result)); }});
}

void Storage::freeze() {
  frozen_ = std::exchange(active_, Table{});
  frozen_.bytes_frozen = frozen_.bytes;
  frozen_.cost_frozen = frozen_.runs->cost_bytes();
  ++frozen_count_;
  active_.runs = std::make_shared<PendingTable>();
  active_.last = frozen_.last;
}

// What was overwritten in the table leaves it in proportion.
void Storage::flushed(Lbn end) {
  const std::uint64_t cost_before = frozen_.runs->cost_bytes();
  const std::uint64_t bytes_before = frozen_.bytes;
  frozen_.runs->erase_before(end);
  const std::uint64_t cost = frozen_.runs->cost_bytes();
  frozen_.bytes = static_cast<std::uint64_t>(static_cast<double>(frozen_.bytes_frozen) *
                                             static_cast<double>(cost) /
                                             static_cast<double>(frozen_.cost_frozen));
  const std::chrono::nanoseconds now = executor_.monotonic_time();
  governor_.written(
      {.lag_bytes = bytes_before - frozen_.bytes,
       .image_bytes = cost_before - cost,
       .took = now - std::exchange(portion_begun_, now) - std::exchange(rested_, {})});
  applier_.set_portion({governor_.portion_bytes() >> kBlockShift});
  tell_fetched();
  update_grant();
}

void Storage::applied(Result<void> result) {
  if (starting_over_) return empty_image();
  punch_next();
  if (!result) {
    if (!stopped_) apply_again(result.error());
    return;
  }
  told_unavailable_ = false;
  // With nothing more pending, what came since (voids, or a rollback that moved nothing) is in the
  // image as well.
  durable_ = std::max(durable_, active_.runs->empty() ? active_.last : frozen_.last);
  if (active_.runs->empty()) active_.since.reset();
  frozen_ = Table{};
  tell_fetched();
  if (events_.durable) events_.durable(durable_);
  while (!drains_.empty() && drains_.front().until <= durable_) {
    Done done = std::move(drains_.front().done);
    drains_.pop_front();
    done({});
  }
  update_grant();
  if (active_.runs->empty()) return;
  if (large() || !drains_.empty()) {
    apply_now();
  } else {
    apply_later(options_.apply_delay);
  }
}

// One retry is under way at most, however often something else begins to apply meanwhile.
void Storage::apply_again(const Error& error) {
  const bool unavailable = error.code == ErrorCode::kUnavailable;
  const bool told = std::exchange(told_unavailable_, unavailable) && unavailable;
  if (!told && events_.apply_failed) events_.apply_failed(error);
  if (std::exchange(retrying_, true)) return;
  executor_.after(kRetryDelay, [this, alive = alive_] {
    if (!*alive) return;
    retrying_ = false;
    apply_now();
  });
}

void Storage::punch(std::vector<BlockRange> ranges, Done done) {
  if (stopped_) return done(Error{ErrorCode::kAborted, "the server is stopping"});
  punches_.push_back({std::move(ranges), std::move(done)});
  if (!applier_.running()) punch_next();
}

// While the applier rests, which it does until this is done.
void Storage::punch_next() {
  if (punching_ || punches_.empty()) return;
  punching_ = true;
  auto punch = std::make_shared<Punch>(std::move(punches_.front()));
  punches_.pop_front();
  // What has been written since must not be wiped out. What is committed from here on waits in the
  // table until this is done, so that the image holds nothing newer than what is asked about.
  std::vector<History::Lookup> lookups;
  for (const BlockRange& range : punch->ranges) lookups.push_back({range, committed_});
  locate_all(parts_.history, std::move(lookups),
             [this, punch](const Result<History::Located>& found) {
               if (!found) return punched(*punch, found.error());
               std::vector<BlockRange> zeros;
               for (const PastRun& run : found->runs) {
                 if (run.source == PastRun::Source::kZero) zeros.push_back(run.range);
               }
               parts_.worker.run(
                   [image = &parts_.image, zeros = std::move(zeros)]() -> Result<void> {
                     for (const BlockRange& range : zeros) {
                       if (Result<void> r = image->discard(to_bytes(range)); !r) return r;
                     }
                     return image->flush();
                   },
                   [this, punch](const Result<void>& result) { punched(*punch, result); });
             });
}

void Storage::punched(Punch& punch, const Result<void>& result) {
  punching_ = false;
  punch_next();
  if (!punching_ && std::exchange(apply_waits_, false)) apply_now();
  punch.done(result);
}

void Storage::drain(Done done) {
  if (durable_ >= committed_ || (active_.runs->empty() && !frozen_.runs)) return done({});
  drains_.push_back({committed_, std::move(done)});
  apply_now();
}

void Storage::stop() {
  stopped_ = true;
  stop_applier();
  for (Punch& punch : std::exchange(punches_, {})) {
    punch.done(Error{ErrorCode::kAborted, "the server is stopping"});
  }
  while (!drains_.empty()) {
    Done done = std::move(drains_.front().done);
    drains_.pop_front();
    done(Error{ErrorCode::kAborted, "the server is stopping"});
  }
}

std::optional<VersionTime> Storage::oldest_unapplied() const {
  return frozen_.since ? frozen_.since : active_.since;
}

}  // namespace mariner::volume
