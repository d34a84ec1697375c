// The admin API of a node of a cluster. What only a standalone server does yet is refused with a
// message that says so. Loop's thread.
#pragma once

#include <memory>
#include <vector>

#include "server/admin/control.h"
#include "server/manager/promotion.h"
#include "server/node/cluster_groups.h"
#include "server/node/cluster_node.h"
#include "server/node/file_desk.h"

namespace mariner::node {

class ClusterControl final : public admin::Control {
 public:
  explicit ClusterControl(ClusterNode& node)
      : node_(node),
        files_(node.loop_.context(), node.loop_, {.socket = node.config_.server.admin_socket}) {}

  void status(admin::Answer<api::StatusAnswer> done) override;
  void log_compact(admin::Answer<api::CompactAnswer> done) override;
  void volume_list(admin::Answer<api::VolumeList> done) override;
  void volume_show(const api::VolumeRequest& request, admin::Answer<api::Volume> done) override;
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
  [[nodiscard]] ClusterGroups& groups() override { return groups_; }
  [[nodiscard]] admin::PastSource& past() override;
  [[nodiscard]] admin::RepairSink& repairs() override;
  [[nodiscard]] FileDesk& files() override { return files_; }

  // Promotions that go on at one time.
  static constexpr std::size_t kPromotionsMax = 64;
  // What goes on is answered now: the node is stopping.
  void stop();

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

  // Not in a cluster yet.
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
  void access_show(const api::AccessRequest& request, admin::Answer<api::Access> done) override;
  void acl_add(const api::AclRequest& request, admin::Answer<api::Access> done) override;
  void acl_remove(const api::AclRequest& request, admin::Answer<api::Access> done) override;
  void auth_set(const api::AuthRequest& request, admin::Answer<api::Access> done) override;
  void redirect_set(const api::RedirectRequest& request, admin::Answer<api::Access> done) override;

  // A session, with what it uses.
  [[nodiscard]] api::Session to_api(const iscsi::SessionInfo& session) const;
  [[nodiscard]] std::string name_of(std::uint32_t node) const;

 private:
  [[nodiscard]] api::Volume to_api(const ClusterVolume& volume) const;
  [[nodiscard]] std::optional<Error> image_failure(std::uint32_t node,
                                                   const ClusterVolume* here) const;
  [[nodiscard]] std::string degraded(const meta::Volume& meta, const ClusterVolume* here) const;
  [[nodiscard]] api::ReplicatedVolume replicas_of(const meta::Volume& meta) const;
  void fill_logger(const meta::Volume& meta, const ClusterVolume* here, api::Replica& out) const;
  void examine(const api::ReplicatedVolume& volume, api::DoctorAnswer& out) const;
  void examine_multicast(api::DoctorAnswer& out) const;
  void fill_storage(std::uint32_t node, const ClusterVolume* here, api::Replica& out) const;

  [[nodiscard]] Result<void> check_promotion(const meta::Volume& meta,
                                             replication::NodeId node) const;
  void promote(VolumeId volume, replication::NodeId node, api::Promotion answer,
               admin::Answer<api::Promotion> done);

  ClusterNode& node_;
  ClusterGroups groups_;
  FileDesk files_;
  std::vector<std::unique_ptr<manager::Promotion>> promotions_;  // some may have ended
};

}  // namespace mariner::node
