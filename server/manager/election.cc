#include "server/manager/election.h"

#include <algorithm>
#include <utility>

namespace mariner::manager {

using replication::NodeId;

namespace {

bool needs_logger(const VolumeRecord& record, NodeId node) {
  return record.away && std::ranges::count(record.storages, node) == 0;
}

}  // namespace

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
  if (entry == nullptr || committing_) return;
  Result<VolumeRecord> record = decode_volume_record(options_.volume, entry->value);
  if (!record) {
    depose();
    if (events_.failed && understood_ != entry->revision) events_.failed(record.error());
    understood_ = entry->revision;
    return;
  }
  // A view that is behind knows of an older epoch.
  if (epoch_ && record->epoch < *epoch_) return;
  if (epoch_ && record->epoch == *epoch_) {
    if (hand_over_ && alive(*hand_over_)) {
      record->wanted = *std::exchange(hand_over_, std::nullopt);
      depose();
      return release(*record, entry->revision);
    }
    return change_ ? change(*record, entry->revision) : follow_wish(*record, entry->revision);
  }
  depose();
  const bool orphaned = record->coordinator.value == 0 || !alive(record->coordinator);
  if (record->coordinator == options_.self) {
    const NodeId wanted = record->wanted;
    const bool others = wanted.value != 0 && wanted != options_.self && alive(wanted);
    const bool lets_go = others || needs_logger(*record, options_.self);
    return lets_go ? release(*record, entry->revision) : take(*record, entry->revision);
  }
  if (needs_logger(*record, options_.self)) return;
  const bool may =
      record->coordinator.value == 0 || options_.promote || record->wanted == options_.self;
  if (!orphaned || !may) return;
  if (goes_before(*record, entry->revision)) return look_later();
  take(*record, entry->revision);
}

bool Election::alive(NodeId node) const { return view_.find(alive_key(node)) != nullptr; }

void Election::follow_wish(const VolumeRecord& record, Revision revision) {
  if (record.coordinator != options_.self || record.wanted.value == 0) return;
  if (record.wanted == options_.self) return decline(record, revision, Declined::kNot);
  if (!alive(record.wanted)) return decline(record, revision, Declined::kNotAlive);
  if (needs_logger(record, record.wanted)) {
    return decline(record, revision, Declined::kLoggerAway);
  }
  if (events_.may_follow && !events_.may_follow(record.wanted)) {
    return decline(record, revision, Declined::kCatchingUp);
  }
  // Nothing is acknowledged any more when others learn that nobody coordinates.
  depose();
  release(record, revision);
}

// The epoch stays: it is the next one's to take the next.
void Election::release(const VolumeRecord& record, Revision revision) {
  VolumeRecord released = record;
  released.coordinator = {};
  Transaction transaction;
  transaction.compares.push_back({volume_key(options_.volume), revision});
  if (const Entry* const wanted = view_.find(alive_key(record.wanted)); wanted != nullptr) {
    transaction.compares.push_back({alive_key(record.wanted), wanted->revision});
  }
  transaction.puts.push_back({volume_key(options_.volume), encode(released)});
  // Whatever becomes of it, the view will show, or nothing has changed and it is tried again.
  commit(std::move(transaction), [](bool) {});
}

void Election::decline(const VolumeRecord& record, Revision revision, Declined why) {
  VolumeRecord declined = record;
  declined.wanted = {};
  declined.declined = why;
  Transaction transaction;
  transaction.compares.push_back({volume_key(options_.volume), revision});
  transaction.puts.push_back({volume_key(options_.volume), encode(declined)});
  commit(std::move(transaction), [](bool) {});
}

// Another node is wanted, and had not all the time yet that it is left.
bool Election::goes_before(const VolumeRecord& record, Revision revision) {
  const NodeId wanted = record.wanted;
  if (wanted.value == 0 || wanted == options_.self || !alive(wanted)) return false;
  if (needs_logger(record, wanted)) return false;
  const auto now = executor_.monotonic_time();
  if (wish_ != revision) {
    wish_ = revision;
    wish_since_ = now;
  }
  return now - wish_since_ < options_.wish_patience;
}

void Election::superseded() {
  depose();
  look_later();
}

void Election::depose() {
  if (!epoch_) return;
  epoch_.reset();
  change_.reset();
  hand_over_.reset();
  if (events_.deposed) events_.deposed();
}

void Election::take(const VolumeRecord& record, Revision revision) {
  VolumeRecord taken = record;
  taken.epoch = record.epoch.next();
  taken.coordinator = options_.self;
  taken.wanted = {};
  taken.declined = Declined::kNot;
  if (record.wanted.value != 0 && record.wanted != options_.self) {
    taken.declined = alive(record.wanted) ? Declined::kNotTaken : Declined::kNotAlive;
  }
  Transaction transaction;
  transaction.compares.push_back({volume_key(options_.volume), revision});
  transaction.compares.push_back({alive_key(options_.self), lease_.id()});
  if (record.coordinator != options_.self && record.coordinator.value != 0) {
    transaction.compares.push_back({alive_key(record.coordinator), Revision{}});
  }
  transaction.puts.push_back({volume_key(options_.volume), encode(taken)});
  commit(std::move(transaction), [this, taken, lease = lease_.id()](bool applied) {
    // If it was applied all the same, the view will show it, and the next epoch is taken. An answer
    // may be older than the lease that is held now: between the two others may have taken over.
    if (!applied || !lease_.held() || lease_.id() != lease) return;
    epoch_ = taken.epoch;
    if (events_.elected) events_.elected(taken);
  });
}

void Election::change_logs(std::optional<replication::LogAway> away) {
  if (!epoch_) return;
  change_ = away;
  look();
}

void Election::hand_over(NodeId to) {
  if (!epoch_) return;
  hand_over_ = to;
  look();
}

void Election::change(const VolumeRecord& record, Revision revision) {
  VolumeRecord changed = record;
  changed.epoch = record.epoch.next();
  changed.away = *change_;
  Transaction transaction;
  transaction.compares.push_back({volume_key(options_.volume), revision});
  transaction.compares.push_back({alive_key(options_.self), lease_.id()});
  transaction.puts.push_back({volume_key(options_.volume), encode(changed)});
  commit(std::move(transaction), [this, changed](bool applied) {
    // Whatever has become of it otherwise, the view shows, or it is tried again.
    if (!applied || !lease_.held() || !change_) return;
    change_.reset();
    epoch_ = changed.epoch;
    if (events_.elected) events_.elected(changed);
  });
}

// One at a time. What the view has shown meanwhile was not looked at, such as a wish that came
// right behind the record that was taken: it is, soon afterwards.
void Election::commit(Transaction transaction, UniqueFunction<void(bool applied)> done) {
  committing_ = true;
  store_.commit(std::move(transaction), [this, done = std::move(done), alive = alive_](
                                            const Result<CommitAnswer>& answer) mutable {
    if (!*alive) return;
    committing_ = false;
    const bool applied = answer && answer->outcome == CommitOutcome::kApplied;
    if (applied) backoff_.succeeded();
    done(applied);
    if (*alive) look_later();
  });
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
