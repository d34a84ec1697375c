#include "logging/log_writer.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::logging {
namespace {

// A batch of one record may be longer than Options.batch_bytes_max.
constexpr std::uint32_t kRecordBytesMax =
    kRecordHeaderBytes + 4 * kRecordPayloadBlocksMax + kRecordPayloadBlocksMax * kBlockBytes;

// Those that came with the payload, and what is missing.
std::vector<std::uint32_t> crcs_of(const PayloadSlice& payload) {
  std::vector<std::uint32_t> crcs;
  const ConstBytes bytes = payload.bytes();
  crcs.reserve(bytes.size() / kBlockBytes);
  for (std::size_t at = 0; at < bytes.size(); at += kBlockBytes) {
    const auto known = payload.block_crc(at);
    crcs.push_back(known ? *known : crc32c(bytes.subspan(at, kBlockBytes)));
  }
  return crcs;
}

void count(LogWriter::Payloads& payloads, const Record& record) {
  const std::uint64_t bytes = std::uint64_t{record.payload_blocks} * kBlockBytes;
  if (record.type == RecordType::kWrite || record.type == RecordType::kZero) {
    payloads.written += bytes;
  } else if (record.type == RecordType::kRelocated) {
    payloads.kept += bytes;
  } else if (record.type == RecordType::kBeforeImage) {
    ((record.flags & kReplaces) != 0 ? payloads.moved : payloads.before_images) += bytes;
  }
}

}  // namespace

LogWriter::LogWriter(Executor& executor, std::uint64_t next_ordinal, Options options)
    : executor_(executor),
      options_(options),
      policy_({.t_wait = options.t_wait,
               .batch_bytes_max = std::max(options.batch_bytes_max, kRecordBytesMax),
               .overhead_bytes = kBatchHeaderBytes}),
      ordinals_(next_ordinal),
      records_of_a_batch_(2 * kFewRecords) {  // until more is known
}

LogWriter::~LogWriter() {
  *alive_ = false;
  for (const auto& arm : arms_) {
    CHECK_MSG(!arm->in_flight && !arm->positioning,
              "a log writer is destroyed with a batch in flight");
  }
}

void LogWriter::add(LogDisk& disk) {
  auto arm = std::make_unique<Arm>();
  arm->disk = &disk;
  arm->policy = policy_.add(disk.placement(), disk.superblock().sector_bytes);
  arms_.push_back(std::move(arm));
  pump_soon();
}

LogWriter::Arm* LogWriter::arm_of(std::size_t policy) {
  const auto found = std::ranges::find_if(
      arms_, [&](const std::unique_ptr<Arm>& arm) { return arm->policy == policy; });
  CHECK(found != arms_.end());
  return found->get();
}

// Disks that take records.
std::size_t LogWriter::usable() const {
  return static_cast<std::size_t>(std::ranges::count_if(
      arms_, [](const std::unique_ptr<Arm>& arm) { return arm->policy && !arm->removed; }));
}

void LogWriter::append(const Record& record, PayloadSlice payload, Urgency urgency, Appended done,
                       std::uint64_t sets_aside) {
  CHECK(record_is_consistent(record));
  CHECK(payload.length == std::size_t{record.payload_blocks} * kBlockBytes);
  PendingRecord pending{record, std::move(payload),        {}, urgency, std::move(done),
                        {},     executor_.monotonic_time()};
  count(payloads_, record);
  pending.record.ordinal = 0;
  pending.sets_aside = sets_aside;
  // While the disk is busy with the batch before.
  pending.block_crcs = crcs_of(pending.payload);
  rest_.arrived(is_base(pending), waiting_.empty(), pending.arrived);
  waiting_.push_back(std::move(pending));
  // A disk that is alone and busy takes it when it is done.
  if (arms_.size() == 1 && arms_.front()->in_flight) return;
  pump_soon();
}

// All that waits, for a write of a host. (Many of those at a time notice no batch between them, and
// what they wait for may be the image, which waits for this.)
bool LogWriter::rests(Time now) {
  if (!is_written_one_by_one() || arms_.size() != 1 || !arms_.front()->queue.empty() ||
      waiting_.empty())
    return false;
  const std::optional<Time> until = rest_.until(now);
  if (until) wake_at(*until);
  return until.has_value();
}

void LogWriter::retry() {
  for (const auto& arm : arms_) arm->gated = false;
  pump_soon();
}

void LogWriter::pump_soon() {
  if (std::exchange(pump_pending_, true)) return;
  executor_.defer([this, alive = alive_] {
    if (!*alive) return;
    pump_pending_ = false;
    pump();
  });
}

void LogWriter::pump() {
  finish_removals();
  if (failed_) {
    for (const auto& arm : arms_) take_queue(*arm);
    return fail_all(why_failed_);
  }
  const Time now = executor_.monotonic_time();
  if (rests(now)) return watch();
  bool dispatched = false;
  while (!failed_) {
    bool changed = assign_waiting(now);
    const bool due = dispatch_due(now);
    dispatched = dispatched || due;
    changed = due || changed;
    if (changed) continue;
    if (!is_full(now) || !make_way()) break;
  }
  // Before what else the turn has deferred.
  if (dispatched) submit();
  if (const auto time = policy_.wake()) wake_at(*time);
  watch();
}

void LogWriter::wake_at(Time time) {
  if (wake_ && *wake_ <= time) return;
  wake_ = time;
  const Time delay = std::max(Time{0}, time - executor_.monotonic_time());
  executor_.after(delay, [this, time, alive = alive_] {
    if (!*alive) return;
    if (wake_ == time) wake_.reset();
    pump();
  });
}

// ---- from the queue to a disk -------------------------------------------------------------------

std::uint64_t LogWriter::tracks_kept_from(Urgency urgency) const {
  switch (urgency) {
    case Urgency::kOrdinary: return kept_tracks();
    case Urgency::kBeforeImage: return std::min(options_.reserve_tracks, 1U);
    case Urgency::kEssential: break;
  }
  return 0;
}

bool LogWriter::reserved() const {
  return free_tracks() < tracks_kept_from(waiting_.front().urgency);
}

bool LogWriter::assign_waiting(Time now) {
  bool assigned = false;
  look_for_tracks();
  while (!waiting_.empty() && !reserved()) {
    PendingRecord& front = waiting_.front();
    const std::uint32_t bytes = front.batch_bytes();
    const bool too_long = std::ranges::none_of(arms_, [&](const std::unique_ptr<Arm>& arm) {
      return bytes <= arm->disk->record_bytes_max();
    });
    if (too_long) {
      PendingRecord refused = std::move(front);
      waiting_.pop_front();
      fail(refused, {ErrorCode::kInvalidArgument,
                     "a record of " + std::to_string(bytes) + " bytes is longer than a track"});
      continue;
    }
    const auto policy = policy_.assign(bytes, now);
    if (!policy) break;
    if (front.record.ordinal == 0) {
      front.record.ordinal = ordinals_.give();
      set_aside_bytes_ += front.sets_aside;
      in_hand_bytes_ += front.sets_aside;
    }
    arm_of(*policy)->queue.push_back(std::move(front));
    waiting_.pop_front();
    assigned = true;
  }
  if (waiting_.empty()) rest_.all_left();
  return assigned;
}

bool LogWriter::may_take_track(const Arm& arm) const {
  // Where no head has to move, there is no hurry.
  if (waiting_.empty() && arm.queue.empty() && !arm.disk->placement().moves_to_tracks()) {
    return false;
  }
  const Urgency urgency = waiting_.empty() ? Urgency::kOrdinary : waiting_.front().urgency;
  return !arm.gated && arm.disk->free_tracks() > 0 && free_tracks() > tracks_kept_from(urgency);
}

void LogWriter::look_for_tracks() {
  for (const auto& arm : arms_) {
    if (arm->policy) policy_.set_next_track(*arm->policy, may_take_track(*arm));
  }
}

bool LogWriter::take_tracks(Time now) {
  bool taken = false;
  for (;;) {
    look_for_tracks();
    const auto policy = policy_.next_switch();
    if (!policy) return taken;
    Arm& arm = *arm_of(*policy);
    if (track_gate_ && !track_gate_(arm.disk->number(), arm.disk->next_track())) {
      arm.gated = true;
      policy_.completed(*policy);
      taken = true;  // what waited for it may go elsewhere
      continue;
    }
    arm.disk->take_track(now);
    taken = true;
    if (arm.disk->placement().recalibration_sector(now)) {
      measure_position(arm, now);
    } else {
      policy_.completed(*policy);
    }
  }
}

// Whether anything was dispatched, or a track taken.
bool LogWriter::dispatch_due(Time now) {
  for (bool changed = false;; changed = true) {
    // First: what is queued may not fit into its track any more.
    changed = take_tracks(now) || changed;
    const auto policy = policy_.next_dispatch(now);
    if (!policy) return changed;
    dispatch(*arm_of(*policy), now);
  }
}

void LogWriter::dispatch(Arm& arm, Time now) {
  CHECK(!arm.in_flight);
  const std::size_t count = arm.disk->batch_length(arm.queue, options_.batch_bytes_max, now);
  if (count == 0) {
    // What is left of a queue may need a sector more than as a part of it, and there is no other
    // track.
    policy_.completed(*arm.policy);
    return waiting_.put_back(std::exchange(arm.queue, {}));
  }
  auto batch = std::make_shared<LogBatch>();
  const auto end = arm.queue.begin() + static_cast<std::ptrdiff_t>(count);
  batch->records.assign(std::make_move_iterator(arm.queue.begin()), std::make_move_iterator(end));
  arm.queue.erase(arm.queue.begin(), end);
  for (PendingRecord& pending : batch->records) pending.dispatched = true;
  if (!arm.queue.empty()) {
    ActiveDisk::Rest rest{0, arm.queue.front().batch_bytes(), arm.queue.front().arrived};
    for (const PendingRecord& pending : arm.queue) rest.bytes += pending.batch_bytes();
    policy_.put_back(*arm.policy, rest);
  }
  arm.disk->build(*batch, ordinals_.value(), now);
  batch->dispatched = now;
  arm.in_flight = std::move(batch);
  write(arm);
}

void LogWriter::write(Arm& arm) {
  LogBatch& batch = *arm.in_flight;
  arm.disk->disk().async_write(batch.first_sector * arm.disk->superblock().sector_bytes,
                               std::move(batch.parts), Durability::kDurable,
                               [this, &arm, batch = arm.in_flight](Result<void> result) {
                                 completed(arm, batch, std::move(result));
                               });
}

// ---- the end of a batch -------------------------------------------------------------------------

void LogWriter::completed(Arm& arm, const std::shared_ptr<LogBatch>& batch, Result<void> result) {
  CHECK(arm.in_flight == batch);
  arm.in_flight.reset();
  arm.disk->placement().completed(batch->sectors, executor_.monotonic_time());
  if (arm.policy) policy_.completed(*arm.policy);
  if (result) {
    arm.failures_in_a_row = 0;
    if (batch->abandoned) readmit(arm);
    succeeded(arm, *batch, batch->abandoned);
  } else {
    arm.disk->take_back(*batch, executor_.monotonic_time());
    ++arm.failures_in_a_row;
    if (batch->abandoned) {
      batch->records.clear();
      if (arm.failures_in_a_row < kFailuresMax) readmit(arm);
    }
    rest_.came_back();
    take_queue(arm);
    waiting_.put_back({std::make_move_iterator(batch->records.begin()),
                       std::make_move_iterator(batch->records.end())});
    write_failed(arm, result.error());
  }
  finish_removals();
}

void LogWriter::succeeded(Arm& arm, LogBatch& batch, bool abandoned) {
  const Time now = executor_.monotonic_time();
  if (std::exchange(arm.leaving, false)) arm.disk->leave_track(now);
  // What completions append now gathers into the next batch, which leaves at the end of this turn.
  pump_soon();
  watch_idle(arm);
  if (observer_) {
    observer_({arm.disk->number(), static_cast<std::uint32_t>(batch.records.size()),
               batch.sectors.count * arm.disk->superblock().sector_bytes, now - batch.dispatched});
  }
  if (abandoned) return;
  const auto records = static_cast<double>(batch.records.size());
  records_of_a_batch_ += (records - records_of_a_batch_) * kNewestShare;
  for (const PendingRecord& pending : batch.records) {
    ordinals_.settle(pending.record.ordinal);
    in_hand_bytes_ -= pending.sets_aside;
  }
  if ((!waiting_.empty() || !arm.queue.empty()) && !rests(now)) dispatch_now();
  for (PendingRecord& pending : batch.records)
    pending.done(LoggedAt{pending.location, pending.record.ordinal});
}

// What has gathered meanwhile goes to the disks before anything else is done, so that they do not
// stand still while completions run. What has no room waits for the end of the turn.
void LogWriter::dispatch_now() {
  if (failed_) return pump_soon();
  const Time now = executor_.monotonic_time();
  while (assign_waiting(now) || dispatch_due(now)) {
  }
  submit();
}

void LogWriter::submit() {
  for (const auto& arm : arms_) arm->disk->disk().submit_now();
}

void LogWriter::write_failed(Arm& arm, const Error& error) {
  if (arm.failures_in_a_row >= kFailuresMax && arm.state != DiskState::kFailed) {
    arm.state = DiskState::kFailed;
    take_out(arm);
    report(arm, error);
  }
  if (none_is_left()) {
    failed_ = true;
    return fail_all(error);
  }
  pump_soon();
}

// Not even one that hangs or is being removed, and may still do.
bool LogWriter::none_is_left() const {
  return std::ranges::all_of(
      arms_, [](const std::unique_ptr<Arm>& arm) { return arm->state == DiskState::kFailed; });
}

// ---- where the head is --------------------------------------------------------------------------

// A read of one sector: tells where the head is, and moves it to a new track.
void LogWriter::measure_position(Arm& arm, Time now) {
  const auto sector = arm.disk->placement().recalibration_sector(now);
  CHECK(sector.has_value());
  arm.positioning = true;
  const std::uint32_t sector_bytes = arm.disk->superblock().sector_bytes;
  Payload buffer = Payload::allocate(sector_bytes);
  const std::span<std::byte> to = buffer.bytes();
  arm.disk->disk().async_read(
      *sector * sector_bytes, to,
      [this, &arm, range = SectorRange{*sector, 1}, buffer](const Result<void>&) {
        // If it failed, the next write finds out.
        arm.positioning = false;
        arm.disk->placement().completed(range, executor_.monotonic_time());
        if (arm.policy) policy_.completed(*arm.policy);
        pump_soon();
        watch_idle(arm);
        finish_removals();
      });
}

void LogWriter::watch_idle(Arm& arm) {
  const auto due = arm.disk->placement().recalibration_due();
  if (!due) return;
  const Time delay = std::max(Time{0}, *due - executor_.monotonic_time());
  executor_.after(delay, [this, disk = arm.disk, due, alive = alive_] {
    if (!*alive) return;
    const auto found = std::ranges::find_if(
        arms_, [&](const std::unique_ptr<Arm>& each) { return each->disk == disk; });
    if (found == arms_.end() || !(*found)->policy || !policy_.idle(*(*found)->policy)) return;
    // Anything dispatched since has moved the moment, and set a timer of its own when it ended.
    if (disk->placement().recalibration_due() != due) return;
    policy_.occupied(*(*found)->policy);
    measure_position(**found, executor_.monotonic_time());
  });
}

// ---- as a whole ---------------------------------------------------------------------------------

void LogWriter::leave_tracks() {
  for (const auto& arm : arms_) {
    if (arm->in_flight) {
      arm->leaving = true;
    } else {
      arm->disk->leave_track(executor_.monotonic_time());
    }
  }
}

bool LogWriter::idle() const {
  return waiting_.empty() && std::ranges::all_of(arms_, [](const std::unique_ptr<Arm>& arm) {
           return arm->queue.empty() && !arm->in_flight && !arm->positioning;
         });
}

std::uint64_t LogWriter::free_tracks() const {
  std::uint64_t tracks = 0;
  for (const auto& arm : arms_) {
    if (arm->policy && !arm->removed) tracks += arm->disk->free_tracks();
  }
  return tracks;
}

std::uint64_t LogWriter::used_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& arm : arms_) bytes += arm->disk->used_bytes();
  return bytes;
}

std::uint64_t LogWriter::history_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& arm : arms_) bytes += arm->disk->history_bytes();
  return bytes;
}

std::uint64_t LogWriter::limit_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& arm : arms_) bytes += arm->disk->limit_bytes();
  return bytes;
}

}  // namespace mariner::logging
