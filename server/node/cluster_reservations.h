// Persistent reservations of the volumes of a cluster, in the store that its nodes share: they
// follow the volume to whoever coordinates it.
//
// Whoever saves holds its lease, and the store checks that. So when a node has taken a volume over,
// which it can only when the other's lease has ended, what it reads is the last word. Loop's
// thread.
#pragma once

#include <memory>
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

  // What a device needs for the volume. It knows nothing of what others kept before fetch().
  [[nodiscard]] scsi::ReservationOptions options(VolumeId volume);

  // Reads what was kept, again and again until the store answers. kCorrupt when it cannot be
  // understood.
  void fetch(VolumeId volume, UniqueFunction<void(Result<scsi::Reservations>)> done);

 private:
  void save(VolumeId volume, const scsi::Reservations& state,
            UniqueFunction<void(Result<void>)> done);

  manager::ClusterStore& store_;
  Executor& executor_;
  const manager::NodeLease& lease_;
  const replication::NodeId self_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Where they stand: a meta::Reservations.
[[nodiscard]] std::string reservations_key(VolumeId volume);

}  // namespace mariner::node
