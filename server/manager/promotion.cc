#include "server/manager/promotion.h"

#include <utility>

#include "server/manager/serving_sign.h"

namespace mariner::manager {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(10);

}  // namespace

Promotion::Promotion(ClusterStore& store, Executor& executor, const ClusterView& view,
                     Options options, Done done)
    : store_(store),
      executor_(executor),
      view_(view),
      options_(std::move(options)),
      done_(std::move(done)),
      end_(executor.monotonic_time() + options_.time) {
  executor_.post([this, alive = alive_] {
    if (*alive) look();
  });
}

void Promotion::cancel(const Error& error) {
  if (!ended()) finish(error);
}

void Promotion::finish(Result<Outcome> outcome) {
  Done done = std::exchange(done_, {});
  done(std::move(outcome));
}

Error Promotion::unavailable(const std::string& why) const {
  return {ErrorCode::kUnavailable,
          "node " + options_.name_of(options_.node) + " was not promoted: " + why};
}

void Promotion::look_later() {
  executor_.after(kPoll, [this, alive = alive_] {
    if (*alive && !ended()) look();
  });
}

void Promotion::look() {
  if (ended()) return;
  const Entry* const entry = view_.find(volume_key(options_.volume));
  if (entry == nullptr) return finish(Error{ErrorCode::kNotFound, "there is no such volume"});
  const Result<VolumeRecord> record = decode_volume_record(options_.volume, entry->value);
  if (!record) return finish(record.error());
  if (!wait_for(*record, entry->revision)) return;
  if (executor_.monotonic_time() < end_) return look_later();
  take_back();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(options_.time).count();
  finish(unavailable("not within " + std::to_string(seconds) + " s; " + missing_));
}

bool Promotion::wait_for(const VolumeRecord& record, Revision revision) {
  const bool first = std::exchange(first_, false);
  if (!alive()) {
    finish(unavailable("it is not alive"));
    return false;
  }
  if (record.coordinator == options_.node) {
    const bool serves = server_of(view_, options_.volume) == options_.node;
    if (first || serves) {
      finish(Outcome{record.epoch, first});
      return false;
    }
    missing_ =
        "it coordinates the volume and does not serve it yet: look at `mariner replica "
        "status` and at its log, and whether the logger is there";
    return true;
  }
  if (wished_) return revision < *wished_ || follow(record);
  if (record.wanted == options_.node) {
    wished_ = revision;  // by somebody else, or by a transaction whose answer was lost
    return true;
  }
  // (The wish of a node that is dead, nobody follows any more.)
  if (view_.find(alive_key(record.wanted)) != nullptr) {
    finish(Error{ErrorCode::kBusy,
                 "node " + options_.name_of(record.wanted) +
                     " is being promoted for this volume just now; try again when that is over"});
    return false;
  }
  wish(record, revision);
  return true;
}

// The wish has been written.
bool Promotion::follow(const VolumeRecord& record) {
  if (record.wanted == options_.node) {
    missing_ = record.coordinator.value == 0
                   ? "it does not take the volume over: look at its log"
                   : "node " + options_.name_of(record.coordinator) +
                         ", which coordinates the volume, does not let go of it, and its lease has "
                         "not ended";
    return true;
  }
  std::string why =
      "node " + options_.name_of(record.coordinator) + " has taken the volume over meanwhile";
  switch (record.declined) {
    case Declined::kNot: break;
    case Declined::kNotAlive: why = "it is not alive"; break;
    case Declined::kCatchingUp: why = std::string("it ") + kCatchingUp; break;
    case Declined::kLoggerAway: why = std::string("it ") + kLoggerAway; break;
    case Declined::kNotTaken:
      why = "it did not take the volume over, and node " + options_.name_of(record.coordinator) +
            " goes on; look at its log";
      break;
  }
  finish(unavailable(why));
  return false;
}

void Promotion::wish(const VolumeRecord& record, Revision revision) {
  missing_ = "the cluster's store does not answer";
  if (std::exchange(wishing_, true)) return;
  VolumeRecord wished = record;
  wished.wanted = options_.node;
  wished.declined = Declined::kNot;
  Transaction transaction;
  transaction.compares.push_back({volume_key(options_.volume), revision});
  transaction.puts.push_back({volume_key(options_.volume), encode(wished)});
  store_.commit(std::move(transaction), [this, alive = alive_](const Result<CommitAnswer>& answer) {
    if (!*alive) return;
    wishing_ = false;
    // Otherwise the view shows whether it is there, and it is written once more if it is not.
    if (answer && answer->outcome == CommitOutcome::kApplied) wished_ = answer->revision;
  });
}

void Promotion::take_back() {
  const Entry* const entry = view_.find(volume_key(options_.volume));
  Result<VolumeRecord> record = decode_volume_record(options_.volume, entry->value);
  // Without a coordinator somebody has let go for it already, and others take over.
  if (!record || record->wanted != options_.node || record->coordinator.value == 0) return;
  record->wanted = {};
  Transaction transaction;
  transaction.compares.push_back({volume_key(options_.volume), entry->revision});
  transaction.puts.push_back({volume_key(options_.volume), encode(*record)});
  store_.commit(std::move(transaction), [](const Result<CommitAnswer>&) {});
}

}  // namespace mariner::manager
