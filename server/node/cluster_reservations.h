// Persistent reservations of the volumes of a cluster, in the store that its nodes share: they
// follow the volume to whoever coordinates it.
//
// Whoever saves holds its lease, and coordinates the volume in the epoch in which it has read what
// was kept; the store checks both. So when a node has taken a volume over, what it reads is the
// last word: what the one before has sent and the store has not taken yet is refused, also where
// the volume was let go of on purpose, and the other's lease goes on. Loop's thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "proto/executor.h"
#include "server/manager/cluster_store.h"
#include "server/manager/node_lease.h"
#include "server/manager/volume_record.h"
#include "server/scsi/unit_reservations.h"

namespace mariner::node {

class ClusterReservations {
 public:
  // All outlive it, and what it has under way.
  ClusterReservations(manager::ClusterStore& store, Executor& executor,
                      const manager::NodeLease& lease, replication::NodeId self)
      : store_(store), executor_(executor), lease_(lease), self_(self) {}
  ~ClusterReservations() { *alive_ = false; }
  ClusterReservations(const ClusterReservations&) = delete;
  ClusterReservations& operator=(const ClusterReservations&) = delete;

  // What a device needs for the volume. It knows nothing of what others kept before fetch(), and
  // saves nothing before it: kUnavailable. The same when another epoch has begun since.
  [[nodiscard]] scsi::ReservationOptions options(VolumeId volume);

  // Reads what was kept, again and again until the store answers: in each epoch in which this node
  // coordinates the volume, before it serves. kCorrupt when it cannot be understood.
  void fetch(VolumeId volume, UniqueFunction<void(Result<scsi::Reservations>)> done);

 private:
  using Done = UniqueFunction<void(Result<void>)>;
  using Fetched = UniqueFunction<void(Result<scsi::Reservations>)>;
  // The epoch in which this node has read what was kept, and the record's newest revision in it.
  struct Term {
    Epoch epoch;
    manager::Revision revision;
  };
  static constexpr int kTriesMax = 8;  // of a save that changes of the record come before

  void save(VolumeId volume, const scsi::Reservations& state, Done done);
  void commit(VolumeId volume, Term term, std::string value, int tries, Done done);
  void read(VolumeId volume, std::optional<Term> term, Fetched done);
  void fetch_later(VolumeId volume, Fetched done);
  // Nothing: this node does not coordinate the volume by this record.
  [[nodiscard]] std::optional<Term> term_of(VolumeId volume, const manager::Entry& record) const;

  manager::ClusterStore& store_;
  Executor& executor_;
  const manager::NodeLease& lease_;
  const replication::NodeId self_;
  std::map<VolumeId, Term> terms_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Where they stand: a meta::Reservations.
[[nodiscard]] std::string reservations_key(VolumeId volume);

}  // namespace mariner::node
