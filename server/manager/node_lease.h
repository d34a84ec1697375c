// A node's lease: as long as it is held, nobody else takes over what the node coordinates.
//
// The store ends a lease that is not renewed, and deletes the node's key with it: that is how
// others learn of it. The holder stops earlier, by its own clock (Executor::monotonic_time(), which
// goes on while a machine sleeps): from the sending of the last renewal that was answered it counts
// the lease's time less a margin. Owner's thread only.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "proto/backoff.h"
#include "proto/executor.h"
#include "server/manager/cluster_store.h"

namespace mariner::manager {

class NodeLease {
 public:
  struct Options {
    std::string key;    // exists while the lease does
    std::string value;  // of it
    std::chrono::seconds ttl{3};
    std::chrono::nanoseconds renew_every = std::chrono::milliseconds(500);
    // Between the end by this clock and the earliest end by the store's.
    std::chrono::nanoseconds margin = std::chrono::milliseconds(500);
    BackoffTimes backoff{};
  };
  // Told in turns of their own or from within store answers, never from within a call. What was not
  // held() for a moment is lost, and is held again only when it has been gained.
  struct Events {
    UniqueFunction<void()> gained;
    UniqueFunction<void()> lost;  // held() is false since then or a little earlier
  };

  // Both outlive it.
  NodeLease(ClusterStore& store, Executor& executor, Options options, Events events);
  ~NodeLease();  // ends nothing in the store: the lease runs out
  NodeLease(const NodeLease&) = delete;
  NodeLease& operator=(const NodeLease&) = delete;

  // Gets a lease, and a new one whenever it is lost.
  void start();
  // Gives it back, so that others need not wait for its end. Told as lost. `answered` when the
  // store has taken it, or has not answered within its deadline; at once if there is none.
  void stop(UniqueFunction<void()> answered);

  // To be asked after a command has arrived, before it is served.
  [[nodiscard]] bool held() const;
  // Only while held().
  [[nodiscard]] LeaseId id() const { return id_; }

 private:
  void acquire();
  void acquire_later();
  void show(const Lease& lease);
  void end_unshown(LeaseId lease);
  void gained(const Lease& lease);
  void renew();
  void renew_later();
  void watch_end();
  void lose();

  ClusterStore& store_;
  Executor& executor_;
  const Options options_;
  Events events_;
  Backoff backoff_;
  LeaseId id_;                       // 0: none
  std::chrono::nanoseconds end_{0};  // by this clock, less the margin
  std::uint64_t turn_ = 0;           // of acquiring: answers to an earlier one are not heard
  bool stopped_ = true;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::manager
