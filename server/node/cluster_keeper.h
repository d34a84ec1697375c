// The history keeper of a node of a cluster that has a log: the shared store says which marks and
// views there are, and while this node does not hold its lease it does not know. They are of the
// volumes that are logged here: of journals nothing is kept for their sake.
//
// Loop's thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/manager/moment_directory.h"
#include "server/manager/node_lease.h"
#include "server/node/cluster_volumes.h"
#include "server/node/history_keeper.h"

namespace mariner::node {

class ClusterKeeper final : public HistoryKeeper {
 public:
  // All outlive it, and what it has under way.
  ClusterKeeper(ClusterVolumes& volumes, manager::MomentDirectory& moments,
                const manager::NodeLease& lease)
      : volumes_(volumes), moments_(moments), lease_(lease) {}

  [[nodiscard]] std::vector<VolumeId> volumes() const override;
  [[nodiscard]] std::shared_ptr<volume::Reclaimable> find(VolumeId volume) override;
  [[nodiscard]] std::optional<Window> window(VolumeId volume) const override;
  [[nodiscard]] bool knows() const override { return lease_.held() && moments_.known(); }
  [[nodiscard]] Result<std::vector<meta::Mark>> marks(VolumeId volume) const override;
  [[nodiscard]] std::vector<meta::View> views(VolumeId volume) const override;
  [[nodiscard]] std::vector<index::IndexMoment> clean_moments(VolumeId volume) const override;
  void drop_view(const std::string& name) override;
  bool drop_mark(const meta::Mark& mark) override;

 private:
  // Null: the volume is not logged here.
  [[nodiscard]] const ClusterVolume* logged(VolumeId volume) const;

  ClusterVolumes& volumes_;
  manager::MomentDirectory& moments_;
  const manager::NodeLease& lease_;
};

}  // namespace mariner::node
