// Who coordinates a volume: decided by the record in the shared store, one transaction at a time.
//
// A node that holds its lease takes a volume over, with the next epoch, when the record names
// itself (it has begun anew, or lost its lease and found it again), nobody, or a node whose lease
// has ended (its key is gone). The transaction says all that again: the record is as it was read,
// the other's key is not there, one's own is bound to one's lease. So of two that try, one is
// refused; and an answer that was lost costs an epoch, not more.
//
// A wish in the record (`wanted`) changes who coordinates on purpose. Who coordinates ends its own
// time first, and then writes that nobody does; the wanted node takes that as it takes any record
// that names nobody. Others leave it the time to: so a wanted node that dies, or never begins, does
// not leave the volume alone. Of a coordinator that is dead a wanted node takes over also where
// nobody does by himself. A wish that cannot be followed is taken out of the record, which says
// why.
//
// While a volume's logger is away (VolumeRecord::away), storage nodes alone coordinate it: what is
// written is kept in their journals. Owner's thread only.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "proto/executor.h"
#include "server/manager/cluster_view.h"
#include "server/manager/node_lease.h"
#include "server/manager/volume_record.h"

namespace mariner::manager {

class Election {
 public:
  struct Options {
    VolumeId volume;
    replication::NodeId self;
    bool promote = true;  // take over from others without being told to
    // For how long another node that is wanted, and alive, goes before.
    std::chrono::nanoseconds wish_patience = std::chrono::seconds(5);
    BackoffTimes backoff{};
  };
  // Never told from within the constructor.
  struct Events {
    // This node coordinates the volume, in the record's epoch, until deposed().
    UniqueFunction<void(const VolumeRecord&)> elected;
    // It does not any more: the lease is lost, or the record names somebody else.
    UniqueFunction<void()> deposed;
    // The record cannot be understood: nothing is done until it changes.
    UniqueFunction<void(const Error&)> failed;
    // Whether that node has what it takes to coordinate after this one. None: it has.
    UniqueFunction<bool(replication::NodeId)> may_follow{};
  };

  // All outlive it.
  Election(ClusterStore& store, Executor& executor, const NodeLease& lease, const ClusterView& view,
           const Options& options, Events events);
  ~Election();
  Election(const Election&) = delete;
  Election& operator=(const Election&) = delete;

  // The view, or the lease, has changed.
  void look();
  // A participant knows of a newer epoch than the one this node was elected for: not before the
  // record has changed is it elected again.
  void superseded();
  // While this node coordinates: the record is to say this of the logger, with the next epoch, for
  // which it is elected then. Whoever it is elected for until then is deposed first.
  void change_logs(std::optional<replication::LogAway> away);

  // While this node coordinates: that one is to, at once, whatever it lacks. This one is deposed as
  // soon as that one is seen to be alive.
  void hand_over(replication::NodeId to);

  // As long as it was elected, and nothing is known to the contrary. Asking the lease is up to the
  // caller.
  [[nodiscard]] bool coordinates() const { return epoch_.has_value(); }

 private:
  void depose();
  // While this node coordinates: a wish that somebody else does.
  void follow_wish(const VolumeRecord& record, Revision revision);
  void release(const VolumeRecord& record, Revision revision);
  void change(const VolumeRecord& record, Revision revision);
  void decline(const VolumeRecord& record, Revision revision, Declined why);
  [[nodiscard]] bool goes_before(const VolumeRecord& record, Revision revision);
  [[nodiscard]] bool alive(replication::NodeId node) const;
  void take(const VolumeRecord& record, Revision revision);
  void commit(Transaction transaction, UniqueFunction<void(bool applied)> done);
  void look_later();

  ClusterStore& store_;
  Executor& executor_;
  const NodeLease& lease_;
  const ClusterView& view_;
  const Options options_;
  Events events_;
  Backoff backoff_;
  std::optional<Epoch> epoch_;                                 // in which this node coordinates
  std::optional<std::optional<replication::LogAway>> change_;  // that is to be made in this epoch
  std::optional<replication::NodeId> hand_over_;               // who is to follow in its place
  bool committing_ = false;
  bool waiting_ = false;
  Revision wish_;  // of the record with a wish of another node, since when this waits for it
  std::chrono::nanoseconds wish_since_{0};
  Revision understood_;  // of the last record that could not be understood, to say so once
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::manager
