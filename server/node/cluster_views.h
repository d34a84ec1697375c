// The views of a cluster's volumes as this node serves them: each node that may serve a volume, and
// stores it, serves all of its views, with one identity, whoever coordinates. So a view outlives
// its nodes one by one, and needs nobody's lease: what it shows never changes.
//
// Which there are, the shared store says. Loop's thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "proto/meta.pb.h"
#include "server/manager/moment_directory.h"
#include "server/node/cluster_volumes.h"

namespace mariner::node {

struct ClusterServedView {
  meta::View meta;
  std::string iqn;
  scsi::Identity identity;
  std::shared_ptr<scsi::Device> device;  // null: it is only described
};

class ClusterViews {
 public:
  // Ends the sessions of a target that goes away.
  using Leave = UniqueFunction<void(const std::string& iqn)>;

  // All outlive it.
  ClusterViews(ClusterVolumes& volumes, const manager::MomentDirectory& moments,
               const Executor& executor, std::string iqn_base, Leave leave)
      : volumes_(volumes),
        moments_(moments),
        executor_(executor),
        iqn_base_(std::move(iqn_base)),
        leave_(std::move(leave)) {}

  // The shared store, or a volume here, has changed.
  void look();
  // Serves none any more. Before the volumes are closed.
  void close();

  [[nodiscard]] const ClusterServedView* find_target(std::string_view iqn) const;
  [[nodiscard]] const std::map<std::string, ClusterServedView>& all() const { return views_; }
  // As each node that serves it has it.
  [[nodiscard]] ClusterServedView described(const meta::View& meta,
                                            const ClusterVolume& volume) const;

 private:
  void serve(const meta::View& meta, const ClusterVolume& volume);

  ClusterVolumes& volumes_;
  const manager::MomentDirectory& moments_;
  const Executor& executor_;
  const std::string iqn_base_;
  Leave leave_;
  std::map<std::string, ClusterServedView> views_;  // by name
};

}  // namespace mariner::node
