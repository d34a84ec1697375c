// Who serves a volume, told in the store that the nodes share: coordinating it is not serving yet,
// and other nodes need to know when hosts can be sent there.
//
// A sign counts only with the record (volume_record.h): for its coordinator, in its epoch. It is
// bound to the lease of who has set it. So nobody needs to take it away. Owner's thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/manager/cluster_view.h"
#include "server/manager/node_lease.h"
#include "server/manager/volume_record.h"

namespace mariner::manager {

[[nodiscard]] std::string serving_key(VolumeId volume);

// Who serves the volume by what the view knows. Nothing: nobody, or nobody who has said it.
[[nodiscard]] std::optional<replication::NodeId> server_of(const ClusterView& view,
                                                           VolumeId volume);

class ServingSign {
 public:
  // Store, lease and view outlive it.
  ServingSign(ClusterStore& store, const NodeLease& lease, const ClusterView& view,
              replication::NodeId self, VolumeId volume)
      : store_(store), lease_(lease), view_(view), self_(self), volume_(volume) {}
  ~ServingSign() { *alive_ = false; }
  ServingSign(const ServingSign&) = delete;
  ServingSign& operator=(const ServingSign&) = delete;

  // This node serves the volume in that epoch, or does not. To be called when that, or the view,
  // has changed, and now and then: what could not be written is tried again then.
  void look(std::optional<Epoch> serves);

 private:
  ClusterStore& store_;
  const NodeLease& lease_;
  const ClusterView& view_;
  const replication::NodeId self_;
  const VolumeId volume_;
  bool setting_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::manager
