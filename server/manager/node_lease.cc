#include "server/manager/node_lease.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::manager {

NodeLease::NodeLease(ClusterStore& store, Executor& executor, Options options, Events events)
    : store_(store),
      executor_(executor),
      options_(std::move(options)),
      events_(std::move(events)),
      backoff_(options_.backoff) {
  CHECK(options_.renew_every.count() > 0);
  CHECK(options_.renew_every + options_.margin < options_.ttl);
}

NodeLease::~NodeLease() { *alive_ = false; }

bool NodeLease::held() const { return id_.value != 0 && executor_.monotonic_time() < end_; }

void NodeLease::start() {
  stopped_ = false;
  acquire();
}

void NodeLease::stop(UniqueFunction<void()> answered) {
  stopped_ = true;
  ++turn_;
  if (id_.value == 0) return answered();
  store_.revoke(id_, [answered = std::move(answered)](const Result<void>&) mutable { answered(); });
  lose();
}

void NodeLease::acquire() {
  ++turn_;
  store_.grant_lease(options_.ttl,
                     [this, turn = turn_, alive = alive_](const Result<Lease>& lease) {
                       if (!*alive || turn != turn_) return;
                       if (lease) return show(*lease);
                       acquire_later();
                     });
}

void NodeLease::acquire_later() {
  executor_.after(backoff_.next(), [this, turn = turn_, alive = alive_] {
    if (*alive && turn == turn_) acquire();
  });
}

// The key of an earlier life of this node may still be there, bound to a lease that nobody renews.
void NodeLease::show(const Lease& lease) {
  Transaction transaction;
  transaction.puts.push_back({options_.key, options_.value, lease.id});
  store_.commit(std::move(transaction),
                [this, lease, turn = turn_, alive = alive_](const Result<CommitAnswer>& answer) {
                  if (!*alive || turn != turn_) return;
                  if (answer && answer->outcome == CommitOutcome::kApplied) return gained(lease);
                  if (answer && answer->outcome == CommitOutcome::kUnknown) {
                    return end_unshown(lease.id);
                  }
                  acquire_later();
                });
}

// It may still be going to be shown. Later than the next one it would take the key from that, and
// with its own end make this node one that is not alive, whose volumes others take over.
void NodeLease::end_unshown(LeaseId lease) {
  store_.revoke(lease, [this, lease, turn = turn_, alive = alive_](const Result<void>& ended) {
    if (!*alive || turn != turn_) return;
    if (ended || ended.error().code == ErrorCode::kNotFound) return acquire_later();
    executor_.after(backoff_.next(), [this, lease, turn, alive] {
      if (*alive && turn == turn_) end_unshown(lease);
    });
  });
}

void NodeLease::gained(const Lease& lease) {
  id_ = lease.id;
  end_ = lease.end() - options_.margin;
  if (!held()) {  // it took too long
    id_ = {};
    return acquire_later();
  }
  backoff_.succeeded();
  renew_later();
  watch_end();
  if (events_.gained) events_.gained();
}

void NodeLease::renew_later() {
  executor_.after(options_.renew_every, [this, turn = turn_, alive = alive_] {
    if (!*alive || turn != turn_) return;
    renew();
    renew_later();
  });
}

void NodeLease::renew() {
  store_.keep_alive(id_, [this, turn = turn_, alive = alive_](const Result<Lease>& lease) {
    if (!*alive || turn != turn_) return;
    // What has ended by this clock is lost, although the store has it still: when this process
    // stood still, the answer may come before watch_end()'s turn, and who asked held() meanwhile
    // has given up what it coordinated. It begins again only when told.
    const bool ended = lease ? !held() : lease.error().code == ErrorCode::kNotFound;
    if (ended) return lose();
    if (lease) end_ = std::max(end_, lease->end() - options_.margin);
  });
}

void NodeLease::watch_end() {
  const auto left = end_ - executor_.monotonic_time();
  executor_.after(std::max(left, std::chrono::nanoseconds(0)),
                  [this, turn = turn_, alive = alive_] {
                    if (!*alive || turn != turn_) return;
                    if (held()) return watch_end();
                    lose();
                  });
}

void NodeLease::lose() {
  ++turn_;
  id_ = {};
  if (!stopped_) acquire_later();
  if (events_.lost) events_.lost();
}

}  // namespace mariner::manager
