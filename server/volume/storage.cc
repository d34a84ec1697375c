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
      leaving_(executor),
      committed_(found.last),
      durable_(found.frontier),
      applied_(found.frontier),
      kept_(found.frontier),
      fetch_portion_(kFetchPortionFirst, options.portion_bytes_max),
      order_({parts.history, parts.worker, executor}),
      headway_(std::move(found.headway)) {
  CHECK(found.frontier <= found.last);
  active_.runs = std::make_shared<SplitTable>();
  active_.last = found.last;
  // What the image lacks is remembered as "what the history says now".
  if (found.restores) {
    restore(found.unapplied, found.last);
    resume_restoring();
  } else {
    put_history(found.unapplied, found.last);
  }
  if (!found.unapplied.empty()) active_.since = found.unapplied_since;
  if (found.spilled) take(*std::move(found.spilled));
  granted_bytes_ = governor_.room(waiting_bytes(), executor_.monotonic_time());
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
    active_.behind += extent.count.bytes();
  }
}

// It does not count as lag.
void Storage::restore(std::span<const BlockRange> extents, SequenceNumber at) {
  if (extents.empty()) return;
  if (!restoring_) restoring_ = Unhurried{executor_.monotonic_time()};
  const std::uint64_t before = active_.runs->past().cost_bytes();
  active_.runs->put_past(extents, content_as_of(at));
  restoring_->bytes += active_.runs->past().cost_bytes() - before;
  active_.restores = true;
}

void Storage::prepare(const WriteMessage& message) {
  CHECK(prepared_.empty() || message.stamp.sequence > prepared_.back().stamp.sequence);
  prepared_.push_back(message);
  const std::uint64_t bytes = replication::lag_bytes(message.write);
  prepared_bytes_ += bytes;
  prepared_bytes_total_ += bytes;
  ++host_operations_;
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
  if (large() && !applier_.running() && !retrying_) {
    apply_now();
  } else if (durable_ < settled) {
    apply_later(options_.apply_delay);  // also voids alone: nothing is to be written; that is told
  }
  update_grant();
}

std::uint64_t Storage::memory_bytes() const {
  const auto of = [](const Table& table) {
    return table.runs ? table.runs->memory()->memory_bytes() : 0;
  };
  const PendingTable* const frozen = frozen_.runs ? frozen_.runs->memory().get() : nullptr;
  return of(active_) + of(frozen_) + leaving_.memory_bytes_beside(frozen);
}

// Worth applying without waiting for more: what a rollback changed, half of what may be pending at
// all, or, when somebody waits for the image to get on, a portion.
bool Storage::large() const {
  if (active_.runs->empty()) return false;
  return active_.restores ||
         active_.runs->memory()->memory_bytes() >= options_.pending_memory_max / 2 ||
         active_.bytes >= options_.lag_bytes_max / 2 ||
         (governor_.sustained() && active_.bytes >= governor_.portion_bytes());
}

void Storage::put(const WriteMessage& message) {
  const replication::WriteRequest& write = message.write;
  if (!active_.since) active_.since = message.stamp.time;
  if (write.kind == WriteKind::kRollback) {
    CHECK(write.changed != nullptr);
    return restore(*write.changed, write.target);
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
      active_.behind += bytes;
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
      governor_.room(waiting_bytes() + prepared_bytes_, executor_.monotonic_time());
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
  if (!punching_ && std::exchange(apply_waits_, false)) go_on();
  punch.done(result);
}

void Storage::drain(Done done) {
  if (durable_ >= committed_ || nothing_pending()) return done({});
  drains_.push_back({committed_, std::move(done)});
  apply_now();
}

void Storage::hurry() {
  if (durable_ < committed_ && !nothing_pending() && !retrying_) apply_now();
}

void Storage::stop() {
  stopped_ = true;
  keep_headway();
  stop_applier();
  order_.stop();
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
  if (const auto since = backlog_.since()) return since;
  return frozen_.since ? frozen_.since : active_.since;
}

}  // namespace mariner::volume
