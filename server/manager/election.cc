#include "server/manager/election.h"

#include <utility>

namespace mariner::manager {

Election::Election(ClusterStore& store, Executor& executor, const NodeLease& lease,
                   const ClusterView& view, const Options& options, Events events)
    : store_(store),
      executor_(executor),
      lease_(lease),
      view_(view),
      options_(options),
      events_(std::move(events)),
      backoff_(options.backoff) {
  look_later();
}

Election::~Election() { *alive_ = false; }

void Election::look() {
  if (!lease_.held()) return depose();
  const Entry* entry = view_.find(volume_key(options_.volume));
  if (entry == nullptr || taking_) return;
  const Result<VolumeRecord> record = decode_volume_record(options_.volume, entry->value);
  if (!record) {
    depose();
    if (events_.failed && understood_ != entry->revision) events_.failed(record.error());
    understood_ = entry->revision;
    return;
  }
  // A view that is behind knows of an older epoch.
  if (epoch_ && record->epoch <= *epoch_) return;
  depose();
  const bool own = record->coordinator == options_.self || record->coordinator.value == 0;
  const bool orphaned = options_.promote && view_.find(alive_key(record->coordinator)) == nullptr;
  if (own || orphaned) take(*record, entry->revision);
}

void Election::superseded() {
  depose();
  look_later();
}

void Election::depose() {
  if (!epoch_) return;
  epoch_.reset();
  if (events_.deposed) events_.deposed();
}

void Election::take(const VolumeRecord& record, Revision revision) {
  VolumeRecord taken = record;
  taken.epoch = record.epoch.next();
  taken.coordinator = options_.self;
  Transaction transaction;
  transaction.compares.push_back({volume_key(options_.volume), revision});
  transaction.compares.push_back({alive_key(options_.self), lease_.id()});
  if (record.coordinator != options_.self && record.coordinator.value != 0) {
    transaction.compares.push_back({alive_key(record.coordinator), Revision{}});
  }
  transaction.puts.push_back({volume_key(options_.volume), encode(taken)});
  taking_ = true;
  store_.commit(std::move(transaction),
                [this, taken, alive = alive_](const Result<CommitAnswer>& answer) {
                  if (*alive) answered(taken, answer);
                });
}

void Election::answered(const VolumeRecord& taken, const Result<CommitAnswer>& answer) {
  taking_ = false;
  if (!answer || answer->outcome != CommitOutcome::kApplied) {
    // If it was applied all the same, the view will show it, and the next epoch is taken.
    return look_later();
  }
  backoff_.succeeded();
  if (!lease_.held()) return look_later();
  epoch_ = taken.epoch;
  if (events_.elected) events_.elected(taken);
}

// For what no change of the view tells of.
void Election::look_later() {
  if (std::exchange(waiting_, true)) return;
  executor_.after(backoff_.next(), [this, alive = alive_] {
    if (!*alive) return;
    waiting_ = false;
    look();
  });
}

}  // namespace mariner::manager
