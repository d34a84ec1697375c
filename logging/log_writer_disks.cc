// The log writer's disks: those that fail or hang, and those that come back or are taken out.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "logging/log_writer.h"

namespace mariner::logging {

void LogWriter::report(const Arm& arm, Error error) {
  if (disk_observer_) disk_observer_({arm.disk->number(), arm.state, std::move(error)});
}

void LogWriter::take_out(Arm& arm) {
  if (arm.policy) policy_.remove(*arm.policy);
  arm.policy.reset();
  waiting_.put_back(std::exchange(arm.queue, {}));
}

void LogWriter::take_queue(Arm& arm) {
  if (!arm.policy) return;
  policy_.clear_queue(*arm.policy);
  waiting_.put_back(std::exchange(arm.queue, {}));
}

void LogWriter::readmit(Arm& arm) {
  arm.state = DiskState::kGood;
  if (!arm.removed) {
    arm.policy = policy_.add(arm.disk->placement(), arm.disk->superblock().sector_bytes);
  }
  report(arm);
}

// Whether what is in flight on a disk could be written to another one.
bool LogWriter::may_abandon(const Arm& arm) const {
  const std::size_t itself = arm.removed ? 0 : 1;
  return arm.policy && arm.in_flight && usable() > itself;
}

// Looks now and then whether a batch takes too long. With one disk there is nothing to be done.
void LogWriter::watch() {
  if (watching_) return;
  const bool any = std::ranges::any_of(
      arms_, [this](const std::unique_ptr<Arm>& arm) { return may_abandon(*arm); });
  if (!any) return;
  watching_ = true;
  executor_.after(options_.t_fail / 4, [this, alive = alive_] {
    if (!*alive) return;
    watching_ = false;
    const Time now = executor_.monotonic_time();
    for (const auto& arm : arms_) {
      if (may_abandon(*arm) && now - arm->in_flight->dispatched >= options_.t_fail) abandon(*arm);
    }
    watch();
  });
}

void LogWriter::abandon(Arm& arm) {
  arm.state = DiskState::kHanging;
  arm.in_flight->abandoned = true;
  take_out(arm);
  std::deque<PendingRecord> records;
  for (PendingRecord& pending : arm.in_flight->records) {
    // The batch keeps what its disk needs: the memory, and what to take back.
    records.push_back({pending.record,
                       pending.payload,
                       std::move(pending.block_crcs),
                       pending.urgency,
                       std::move(pending.done),
                       {},
                       pending.arrived,
                       pending.dispatched,
                       pending.sets_aside});
  }
  waiting_.put_back(std::move(records));
  report(arm);
  pump_soon();
}

void LogWriter::remove(std::uint8_t disk, UniqueFunction<void(Result<void>)> done) {
  const auto found = std::ranges::find_if(arms_, [&](const std::unique_ptr<Arm>& arm) {
    return arm->disk->number() == disk && !arm->removed;
  });
  if (found == arms_.end()) {
    return done(Error{ErrorCode::kNotFound,
                      "log disk " + std::to_string(disk) + " is not being written to"});
  }
  Arm& arm = **found;
  if (arm.policy && usable() == 1) {
    return done(Error{ErrorCode::kBusy, "log disk " + std::to_string(disk) +
                                            " is the only one that works; add another one first"});
  }
  arm.removed = std::move(done);
  if (arm.policy) policy_.drain(*arm.policy);
  // Not before this has returned: whoever calls may be in the middle of a completion.
  pump_soon();
}

void LogWriter::finish_removals() {
  for (std::size_t i = 0; i < arms_.size();) {
    Arm& arm = *arms_[i];
    if (!arm.removed || arm.in_flight || arm.positioning || !arm.queue.empty()) {
      ++i;
      continue;
    }
    if (arm.policy) policy_.remove(*arm.policy);
    UniqueFunction<void(Result<void>)> done = std::move(arm.removed);
    arms_.erase(arms_.begin() + static_cast<std::ptrdiff_t>(i));
    executor_.post([done = std::move(done), alive = alive_]() mutable {
      if (*alive) done({});
    });
    if (none_is_left()) {
      failed_ = true;
      pump_soon();
    }
  }
}

LogWriter::DiskState LogWriter::state_of(std::uint8_t disk) const {
  const auto found = std::ranges::find_if(
      arms_, [&](const std::unique_ptr<Arm>& arm) { return arm->disk->number() == disk; });
  return found == arms_.end() ? DiskState::kFailed : (*found)->state;
}

}  // namespace mariner::logging
