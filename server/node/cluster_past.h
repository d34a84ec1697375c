// What an administrator asks a node of a cluster about the past of its volumes: history, marks,
// what checks found, views, rollback.
//
// The node that serves a volume answers, because only it knows which moments are settled. What is
// to be kept is asked of the logger first (a hold), and said in the shared store then, where the
// logger hears of it: the hold ends when it has, or must have noticed that it hears nothing
// (time_to_hear()). Loop's thread.
#pragma once

#include <memory>
#include <string>

#include "server/admin/control.h"
#include "server/iscsi/session.h"
#include "server/manager/moment_directory.h"
#include "server/manager/volume_directory.h"
#include "server/node/cluster_views.h"
#include "server/node/cluster_volumes.h"
#include "server/node/history_answer.h"
#include "server/node/kept_moments.h"
#include "server/node/log.h"
#include "server/node/moments.h"
#include "server/node/past_desk.h"
#include "server/node/repair_desk.h"
#include "server/node/rollback_plan.h"
#include "server/node/verdict_desk.h"
#include "server/node/verdict_shelf.h"

namespace mariner::node {

class ClusterPast {
 public:
  struct Parts {  // all outlive it, and what it has under way
    Executor& executor;
    ClusterVolumes& volumes;
    ClusterViews& views;
    manager::MomentDirectory& moments;
    const manager::VolumeDirectory& directory;
    Log& log;
  };
  struct Hosts {
    // The sessions of a target here.
    UniqueFunction<std::vector<iscsi::SessionInfo>(const std::string& iqn)> sessions;
    // One as an answer.
    UniqueFunction<api::Session(const iscsi::SessionInfo&)> to_api;
    // The name of a node.
    UniqueFunction<std::string(std::uint32_t node)> name_of;
  };

  // `keep`: how long a hold lasts behind what took its place in the shared store. `state_dir`: of
  // the node, for what it is given in parts.
  ClusterPast(const Parts& parts, Hosts hosts, std::chrono::nanoseconds keep, std::string state_dir)
      : parts_(parts),
        hosts_(std::move(hosts)),
        kept_(parts.executor, keep),
        desk_(parts.executor, [this](const std::string& name) { return find_past(name); }),
        verdict_shelf_(parts.moments),
        verdicts_(parts.executor, verdict_shelf_,
                  [this](const std::string& name) { return find_checked(name); }),
        repairs_(parts.executor, std::move(state_dir),
                 [this](const std::string& name) { return find_repaired(name); }) {}
  ClusterPast(const ClusterPast&) = delete;
  ClusterPast& operator=(const ClusterPast&) = delete;

  void history(const api::HistoryRequest& request, admin::Answer<api::History> done);
  void mark_add(const api::MarkRequest& request, admin::Answer<api::Mark> done);
  void mark_list(const api::MarkRequest& request, admin::Answer<api::MarkList> done);
  void mark_remove(const api::MarkRequest& request, admin::Answer<api::Mark> done);
  void view_expose(const api::ExposeRequest& request, admin::Answer<api::View> done);
  void view_list(admin::Answer<api::ViewList> done);
  void view_unexpose(const api::UnexposeRequest& request, admin::Answer<api::View> done);
  void rollback(const api::RollbackRequest& request, admin::Answer<api::RollbackAnswer> done);

  [[nodiscard]] PastDesk& desk() { return desk_; }
  [[nodiscard]] VerdictDesk& verdicts() { return verdicts_; }
  [[nodiscard]] RepairDesk& repairs() { return repairs_; }

  // Takes views away whose time to live is over.
  void tick();

  // No question to a history is under way.
  [[nodiscard]] bool idle() const { return under_way_.use_count() == 1; }

 private:
  // A volume that this node serves. kNotFound; kUnavailable, with who does.
  [[nodiscard]] Result<ClusterVolume*> find(const std::string& name) const;
  [[nodiscard]] Result<MomentsOf> find_moments(const std::string& name) const;
  // kUnavailable: also when this node stores nothing of it.
  [[nodiscard]] Result<PastDesk::Volume> find_past(const std::string& name) const;
  [[nodiscard]] Result<VerdictDesk::Volume> find_checked(const std::string& name) const;
  [[nodiscard]] Result<RepairDesk::Volume> find_repaired(const std::string& name) const;
  [[nodiscard]] Result<void> known(const std::string& name) const;
  // Keeps the moment until the logger knows of `what`, which `say` says in the shared store, or
  // until it is taken back.
  void keep(const MomentsOf& of, SequenceNumber at, const std::string& what,
            UniqueFunction<void(manager::MomentDirectory::Done)> say,
            manager::MomentDirectory::Done done);
  void add_mark(const MomentsOf& of, const meta::Mark& mark, manager::MomentDirectory::Done done);
  void expose(const api::ExposeRequest& request, const ResolvedMoment& moment,
              admin::Answer<api::View> done);
  [[nodiscard]] std::string free_name(const meta::Volume& volume, SequenceNumber at) const;
  void answer_when_served(const meta::View& view, int tries, admin::Answer<api::View> done);
  [[nodiscard]] static bool served_elsewhere(const ClusterVolume& volume);
  [[nodiscard]] static bool served_at_all(const meta::Volume& volume);
  void describe(const ClusterServedView& view, api::View& out) const;
  [[nodiscard]] api::View to_api(const meta::View& view) const;
  void apply_rollback(const api::RollbackRequest& request, RollbackPlan plan,
                      admin::Answer<api::RollbackAnswer> done);
  void finish_rollback(const MomentsOf& of, const replication::Stamp& stamp,
                       api::RollbackAnswer answer, admin::Answer<api::RollbackAnswer> done);

  const Parts parts_;
  mutable Hosts hosts_;
  KeptMoments kept_;
  // Held by every question under way.
  const std::shared_ptr<const void> under_way_ = std::make_shared<int>();
  PastDesk desk_;
  ClusterVerdicts verdict_shelf_;
  VerdictDesk verdicts_;
  RepairDesk repairs_;
};

}  // namespace mariner::node
