// A target's part of a volume of a cluster: takes part in the election of the coordinator, and
// serves while this node is it.
//
// Each term is one epoch: its coordinator, its conversations with the participants, and the live
// volume that writes through it. When the term ends, everybody who waits hears kUnavailable; the
// live volume goes when nothing is under way in it any more. That it serves it tells the other
// nodes (manager/serving_sign.h). Invariants: nothing is served that
// arrives after the lease has ended; nothing is read before the storage that it is read from has
// everything that was acknowledged: that of this node, or, where this node stores nothing of the
// volume, that of another one (remote_current.h). Owner's thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "replication/coordinator_host.h"
#include "server/cluster/caller_service.h"
#include "server/cluster/gated_layer.h"
#include "server/cluster/remote_current.h"
#include "server/manager/election.h"
#include "server/manager/serving_sign.h"
#include "server/volume/live_volume.h"

namespace mariner::cluster {

class TargetPart {
 public:
  struct Options {
    VolumeId volume;
    replication::NodeId self;
    std::uint64_t size_bytes = 0;
    bool journal = false;  // what Parts::own has as its logger is this node's journal
    // That may serve the volume. None: the storage nodes in its record.
    std::vector<replication::NodeId> targets{};
    bool promote = true;                // take over from others without being told to
    std::optional<trm::Group> group{};  // as CoordinatorLink::Participants
    replication::CoordinatorRole::Options coordinator{};
    BackoffTimes backoff{};
  };
  struct Parts {  // all outlive it
    Executor& executor;
    manager::ClusterStore& store;
    const manager::NodeLease& lease;
    const manager::ClusterView& view;
    CallerService& caller;
    volume::CurrentReader* storage;  // of this node; null with own.storage
    volume::History& history;
    ParticipantService::Parts own;  // what this node is of the volume
  };
  enum class State {
    kStandby,        // another node coordinates
    kTransitioning,  // nobody does, or this node is about to, or it does not know
    kServing,
  };
  struct Events {
    // state() is another one; in a turn of its own. (That the lease has ended is not told before it
    // is known to be lost.)
    UniqueFunction<void(State)> changed;
    UniqueFunction<void(const manager::VolumeRecord&)> elected;
    // What is to be done before it serves: calls `done` when it is, maybe at once. It is asked in
    // each term; of a term that is over `done` does nothing. None: nothing is to be done.
    UniqueFunction<void(UniqueFunction<void()> done)> prepare;
    UniqueFunction<void(const Error&)> failed;  // the cluster's record is of no use
    // The logger is away, and writes wait for it, because of this. Told again and again.
    UniqueFunction<void(const Error&)> writes_wait{};
    UniqueFunction<void(const replication::CoordinatorRole::GivenUp&)> given_up{};
    UniqueFunction<void(const replication::CoordinatorRole::ImageFailed&)> image_failed{};
  };

  TargetPart(const Options& options, const Parts& parts, Events events);
  ~TargetPart();  // idle() must hold
  TargetPart(const TargetPart&) = delete;
  TargetPart& operator=(const TargetPart&) = delete;

  // The lease, or the view of the store, has changed.
  void look();

  // What initiators read and write. May outlive this.
  [[nodiscard]] std::shared_ptr<volume::Layer> layer() { return layer_; }
  [[nodiscard]] State state() const;
  // Null: this node does not coordinate now.
  [[nodiscard]] const replication::CoordinatorHost* coordinator() const;
  // Who stamps the volume's writes; null unless this node serves, with its lease.
  [[nodiscard]] replication::Replicator* replicator();
  // LiveVolume::rollback(); `repairs` may be null. kUnavailable unless this node serves.
  void rollback(index::IndexMoment target, std::shared_ptr<volume::RepairSource> repairs,
                replication::Replicator::WriteDone done);

  // Whether `next` has everything that it needs to coordinate after this node, as far as is known
  // here: nothing is, while this node does not coordinate. After one that was elected, and cannot
  // coordinate what the record says, any other may.
  [[nodiscard]] bool may_follow(replication::NodeId next) const;

  // Ends the term, for good. What hosts are told goes on, as long as look() is called: transition,
  // until another node has said that it serves.
  void close();
  [[nodiscard]] bool idle() const { return ended_.empty() && term_ == nullptr; }

 private:
  struct Term;

  [[nodiscard]] Result<void> check_nodes(const manager::VolumeRecord& record) const;
  void elected(const manager::VolumeRecord& record);
  void later_in(Epoch epoch, UniqueFunction<void()> work);
  void prepare(Epoch epoch);
  void hand_over(replication::NodeId to);
  void end_term();
  void drop_ended();
  void tell_later();
  void tell_soon();
  [[nodiscard]] Term* serving();
  [[nodiscard]] bool serves() const;

  const Options options_;
  const Parts parts_;
  Events events_;
  std::shared_ptr<GatedLayer> layer_;
  std::unique_ptr<Term> term_;
  std::vector<std::unique_ptr<Term>> ended_;
  std::optional<manager::Election> election_;  // nothing: closed
  manager::ServingSign sign_;
  State told_ = State::kTransitioning;
  bool telling_ = false;
  bool polling_ = false;
  bool dropping_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::cluster
