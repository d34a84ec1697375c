// Rollbacks of a live volume. The second part of live_volume.h.
//
// What a rollback changes is looked up before it has its place in the order: first while writes go
// on, because that may take a while, then what came meanwhile, with writes held up.
#include <utility>

#include "proto/check.h"
#include "server/volume/live_volume.h"

namespace mariner::volume {

using replication::Stamp;
using replication::WriteKind;
using replication::WriteRequest;

struct LiveVolume::Rollback {
  index::IndexMoment target;
  History::Hold hold;
  SequenceNumber looked_through;
  std::vector<BlockRange> changed;
  std::shared_ptr<const std::vector<BlockRange>> merged;  // once all of it is known
  std::optional<ExtentLocks::LockId> lock;
  bool stops_readers = false;
  std::shared_ptr<RepairSource> repairs;  // null: none
  replication::Replicator::WriteDone done;
};

LiveVolume::RollbackSteps LiveVolume::begin_rollback(index::IndexMoment target) {
  ++operations_;
  auto rollback = std::make_shared<Rollback>();
  rollback->target = target;
  rollback->looked_through = target.sequence;
  return rollback;
}

void LiveVolume::look_up(const RollbackSteps& rollback, Done done) {
  const SequenceNumber to = parts_.replicator.coordinator().settled();
  if (rollback->hold != nullptr) return find_changed(rollback, to, std::move(done));
  parts_.history.hold(rollback->target.sequence, [this, rollback, to, done = std::move(done)](
                                                     Result<History::Hold> hold) mutable {
    if (!hold) return done(hold.error());
    rollback->hold = *std::move(hold);
    find_changed(rollback, to, std::move(done));
  });
}

void LiveVolume::find_changed(const RollbackSteps& rollback, SequenceNumber to, Done done) {
  if (!parts_.has_image) return done({});
  parts_.history.changed(
      rollback->looked_through, to,
      [rollback](std::span<const BlockRange> changed) {
        rollback->changed.insert(rollback->changed.end(), changed.begin(), changed.end());
      },
      [rollback, to, done = std::move(done)](Result<void> found) mutable {
        if (found) rollback->looked_through = to;
        done(std::move(found));
      });
}

void LiveVolume::stop_writers(const RollbackSteps& rollback, UniqueFunction<void()> done) {
  // Also behind the end: a write to what the volume grows by meanwhile must wait, too.
  constexpr BlockRange everything{Lbn{0}, BlockCount{UINT64_MAX}};
  locks_.exclusive(
      everything, [this, rollback, done = std::move(done)](ExtentLocks::LockId lock) mutable {
        rollback->lock = lock;
        parts_.replicator.settle([done = std::move(done)](SequenceNumber) mutable { done(); });
      });
}

void LiveVolume::hold_up(const RollbackSteps& rollback, UniqueFunction<void()> done) {
  CHECK(!rollback->lock);
  stop_writers(rollback, [this, rollback, done = std::move(done)]() mutable {
    rollback->stops_readers = true;
    stop_readers(std::move(done));
  });
}

void LiveVolume::log_rollback(const RollbackSteps& rollback,
                              replication::Replicator::WriteDone done) {
  CHECK(rollback->lock);
  WriteRequest request;
  request.kind = WriteKind::kRollback;
  request.target = rollback->target.sequence;
  request.target_time = rollback->target.time;
  if (rollback->merged == nullptr) {
    rollback->merged = std::make_shared<const std::vector<BlockRange>>(
        index::merge_extents(std::move(rollback->changed)));
  }
  request.changed = rollback->merged;
  parts_.replicator.submit(std::move(request),
                           [rollback, done = std::move(done)](Result<Stamp> stamp) mutable {
                             // On record, the rollback keeps its target itself.
                             if (stamp) rollback->hold.reset();
                             done(std::move(stamp));
                           });
}

void LiveVolume::let_go(const RollbackSteps& rollback) {
  rollback->hold.reset();
  // Readers first: who is let go with the lock may stop them again.
  if (std::exchange(rollback->stops_readers, false)) let_readers();
  --operations_;
  if (rollback->lock) locks_.unlock(*std::exchange(rollback->lock, std::nullopt));
}

void LiveVolume::rollback(index::IndexMoment target, std::shared_ptr<RepairSource> repairs,
                          replication::Replicator::WriteDone done) {
  const RollbackSteps rollback = begin_rollback(target);
  rollback->repairs = std::move(repairs);
  rollback->done = std::move(done);
  look_up(rollback, [this, rollback](const Result<void>& found) {
    if (!found) return end_rollback(rollback, found.error());
    stop_writers(rollback, [this, rollback] {
      look_up(rollback, [this, rollback](const Result<void>& all) {
        if (!all) return end_rollback(rollback, all.error());
        if (rollback->repairs == nullptr) return place_rollback(rollback);
        rollback->stops_readers = true;
        stop_readers([this, rollback] { place_rollback(rollback); });
      });
    });
  });
}

void LiveVolume::place_rollback(const RollbackSteps& rollback) {
  const bool mends = rollback->repairs != nullptr;
  log_rollback(rollback, [this, rollback, mends](Result<Stamp> stamp) {
    if (!mends || !stamp) return end_rollback(rollback, std::move(stamp));
    write_repairs(rollback, *stamp);
  });
  // It has its place: others may have theirs behind it.
  if (!mends && rollback->lock) {
    locks_.unlock(*std::exchange(rollback->lock, std::nullopt));
  }
}

// The next of them, all at one time.
void LiveVolume::write_repairs(const RollbackSteps& rollback, const Stamp& stamp) {
  Result<std::vector<RepairedRun>> runs = rollback->repairs->next();
  if (!runs) {
    rollback->repairs->fail(runs.error());
    return end_rollback(rollback, stamp);
  }
  if (runs->empty()) return end_rollback(rollback, stamp);
  const auto left = std::make_shared<std::size_t>(runs->size());
  for (RepairedRun& run : *runs) {
    WriteRequest request;
    request.extent = run.extent;
    request.payload = std::move(run.bytes);
    parts_.replicator.submit(std::move(request),
                             [this, rollback, stamp, left](const Result<Stamp>& written) {
                               if (!written) rollback->repairs->fail(written.error());
                               if (--*left > 0) return;
                               if (rollback->repairs->failure())
                                 return end_rollback(rollback, stamp);
                               write_repairs(rollback, stamp);
                             });
  }
}

void LiveVolume::end_rollback(const RollbackSteps& rollback, Result<Stamp> stamp) {
  let_go(rollback);
  std::exchange(rollback->done, nullptr)(std::move(stamp));
}

}  // namespace mariner::volume
