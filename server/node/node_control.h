// What an administrator can ask of a node: admin::Control over its parts.
//
// One source for each noun: control_access.cc, control_volumes.cc, control_history.cc,
// control_groups.cc, control_retention.cc, control_views.cc, control_rollback.cc,
// control_sessions.cc, control_nodes.cc, control_config.cc. Loop's thread.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "server/admin/control.h"
#include "server/iscsi/session.h"
#include "server/node/file_desk.h"
#include "server/node/group_desk.h"
#include "server/node/moments.h"
#include "server/node/node.h"
#include "server/node/past_desk.h"
#include "server/node/repair_desk.h"
#include "server/node/verdict_desk.h"

namespace mariner::node {

class NodeControl final : public admin::Control {
 public:
  explicit NodeControl(Node& node);

  void status(admin::Answer<api::StatusAnswer> done) override;
  void log_compact(admin::Answer<api::CompactAnswer> done) override;
  void volume_list(admin::Answer<api::VolumeList> done) override;
  void volume_show(const api::VolumeRequest& request, admin::Answer<api::Volume> done) override;
  void volume_create(const api::CreateVolumeRequest& request,
                     admin::Answer<api::Volume> done) override;
  void volume_retain(const api::RetainRequest& request, admin::Answer<api::Volume> done) override;
  void history_prune(const api::PruneRequest& request,
                     admin::Answer<api::PruneAnswer> done) override;
  void volume_resize(const api::ResizeRequest& request, admin::Answer<api::Volume> done) override;
  void volume_delete(const api::VolumeRequest& request, admin::Answer<api::Volume> done) override;
  void volume_import(const api::ImportRequest& request,
                     UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
                     admin::Answer<api::Volume> done) override;
  void volume_clone(const api::CloneRequest& request,
                    UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
                    admin::Answer<api::Clone> done) override;
  void history(const api::HistoryRequest& request, admin::Answer<api::History> done) override;
  void mark_add(const api::MarkRequest& request, admin::Answer<api::Mark> done) override;
  void mark_list(const api::MarkRequest& request, admin::Answer<api::MarkList> done) override;
  void mark_remove(const api::MarkRequest& request, admin::Answer<api::Mark> done) override;
  void verdicts_save(const api::SaveVerdictsRequest& request,
                     admin::Answer<api::VerdictList> done) override;
  void verdict_list(const api::VerdictsRequest& request,
                    admin::Answer<api::VerdictList> done) override;
  void view_expose(const api::ExposeRequest& request, admin::Answer<api::View> done) override;
  void view_list(admin::Answer<api::ViewList> done) override;
  void view_unexpose(const api::UnexposeRequest& request, admin::Answer<api::View> done) override;
  void rollback(const api::RollbackRequest& request,
                admin::Answer<api::RollbackAnswer> done) override;
  void access_show(const api::AccessRequest& request, admin::Answer<api::Access> done) override;
  void acl_add(const api::AclRequest& request, admin::Answer<api::Access> done) override;
  void acl_remove(const api::AclRequest& request, admin::Answer<api::Access> done) override;
  void auth_set(const api::AuthRequest& request, admin::Answer<api::Access> done) override;
  void redirect_set(const api::RedirectRequest& request, admin::Answer<api::Access> done) override;
  void session_list(admin::Answer<api::SessionList> done) override;
  void session_kick(const api::SessionRequest& request, admin::Answer<api::Session> done) override;
  void node_invite(const api::InviteRequest& request, admin::Answer<api::Invitation> done) override;
  void node_promote(const api::PromoteRequest& request,
                    admin::Answer<api::Promotion> done) override;
  void cluster_status(admin::Answer<api::ClusterStatus> done) override;
  void doctor(admin::Answer<api::DoctorAnswer> done) override;
  void config_compare(const api::ConfigCompareRequest& request,
                      admin::Answer<api::ConfigChanges> done) override;
  void config_reload(admin::Answer<api::ConfigChanges> done) override;
  [[nodiscard]] GroupDesk& groups() override;
  [[nodiscard]] PastDesk& past() override { return past_; }
  [[nodiscard]] RepairDesk& repairs() override { return repairs_; }
  [[nodiscard]] FileDesk& files() override { return files_; }

  // A volume whose moments are checked. kNotFound, kUnavailable.
  [[nodiscard]] Result<VerdictDesk::Volume> find_checked(const std::string& name);

 private:
  // A volume that serves. kNotFound, kUnavailable.
  [[nodiscard]] Result<ServedVolume*> find(const std::string& name);
  // Also one that is not served: for what needs no image.
  [[nodiscard]] Result<ServedVolume*> find_known(const std::string& name);
  [[nodiscard]] api::Volume to_api(const ServedVolume& served);
  [[nodiscard]] api::View to_api(const ServedView& view);
  // Of a view, or of all parts of a group's. kNotFound; kInvalidArgument: it is such a part.
  [[nodiscard]] Result<api::View> view_named(const std::string& name);
  [[nodiscard]] api::Session to_api(const iscsi::SessionInfo& session);
  [[nodiscard]] Result<MomentsOf> find_moments(const std::string& name);
  [[nodiscard]] Result<PastDesk::Volume> find_past(const std::string& name);
  [[nodiscard]] Result<RepairDesk::Volume> find_repaired(const std::string& name);
  void expose(const api::ExposeRequest& request, const ResolvedMoment& moment,
              admin::Answer<api::View> done);

  void clone(const api::CloneRequest& request, const ResolvedMoment& moment,
             UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
             admin::Answer<api::Clone> done);

  void apply_rollback(const api::RollbackRequest& request, const ResolvedMoment& target,
                      api::RollbackAnswer answer, admin::Answer<api::RollbackAnswer> done);
  void finish_rollback(const std::string& name, const replication::Stamp& stamp,
                       api::RollbackAnswer answer, admin::Answer<api::RollbackAnswer> done);
  void examine(std::vector<api::Finding> scrubs,
               const std::shared_ptr<std::deque<ScrubReport::Scrubbed>>& left,
               admin::Answer<api::DoctorAnswer> done);
  void diagnose(const std::vector<api::Finding>& scrubs, admin::Answer<api::DoctorAnswer> done);
  struct AccessChange {
    bool dry_run = false;
    bool force = false;
    std::string what;  // for the log
  };
  [[nodiscard]] Result<ServedVolume*> find_changeable(const std::string& name,
                                                      std::string_view key);
  [[nodiscard]] api::Access access_of(const ServedVolume& volume, const meta::Volume& meta) const;
  void change_access(ServedVolume& volume, const meta::Volume& changed, const AccessChange& how,
                     admin::Answer<api::Access> done);

  [[nodiscard]] std::vector<iscsi::SessionInfo> sessions_of(const std::string& iqn) const;

  Node& node_;
  PastDesk past_;
  RepairDesk repairs_;
  FileDesk files_;
  std::unique_ptr<GroupDesk> groups_;  // null: nobody has asked yet
};

}  // namespace mariner::node
