// The daemon's admin API for programs: one function per request, as in server/admin/control.h,
// each waiting for its answer. A connection per request; any thread, one call at a time.
//
// Errors are those that the daemon answers, and kUnavailable if it does not.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "proto/admin.pb.h"
#include "proto/error.h"

namespace mariner::client {

inline constexpr const char* kDefaultSocket = "/run/mariner/admin.sock";

class AdminClient {
 public:
  explicit AdminClient(std::string socket = kDefaultSocket,
                       std::chrono::seconds timeout = std::chrono::minutes(10))
      : socket_(std::move(socket)), timeout_(timeout) {}

  [[nodiscard]] Result<api::StatusAnswer> status();
  [[nodiscard]] Result<api::CompactAnswer> log_compact();
  [[nodiscard]] Result<api::VolumeList> volume_list();
  [[nodiscard]] Result<api::Volume> volume_show(const api::VolumeRequest& request);
  [[nodiscard]] Result<api::Volume> volume_create(const api::CreateVolumeRequest& request);
  [[nodiscard]] Result<api::Volume> volume_retain(const api::RetainRequest& request);
  [[nodiscard]] Result<api::PruneAnswer> history_prune(const api::PruneRequest& request);
  [[nodiscard]] Result<api::Volume> volume_resize(const api::ResizeRequest& request);
  [[nodiscard]] Result<api::Volume> volume_delete(const api::VolumeRequest& request);
  // `progress` is called with bytes done and bytes in all while the import runs.
  [[nodiscard]] Result<api::Volume> volume_import(
      const api::ImportRequest& request,
      const std::function<void(std::uint64_t, std::uint64_t)>& progress);
  // The same, while the clone is made.
  [[nodiscard]] Result<api::Clone> volume_clone(
      const api::CloneRequest& request,
      const std::function<void(std::uint64_t, std::uint64_t)>& progress);
  [[nodiscard]] Result<api::History> history(const api::HistoryRequest& request);
  [[nodiscard]] Result<api::Mark> mark_add(const api::MarkRequest& request);
  [[nodiscard]] Result<api::MarkList> mark_list(const api::MarkRequest& request);
  [[nodiscard]] Result<api::Mark> mark_remove(const api::MarkRequest& request);
  // What checks found of moments of a volume; both answer by moment.
  [[nodiscard]] Result<api::VerdictList> verdicts_save(const api::SaveVerdictsRequest& request);
  [[nodiscard]] Result<api::VerdictList> verdict_list(const api::VerdictsRequest& request);
  [[nodiscard]] Result<api::View> view_expose(const api::ExposeRequest& request);
  [[nodiscard]] Result<api::ViewList> view_list();
  [[nodiscard]] Result<api::View> view_unexpose(const api::UnexposeRequest& request);
  // Blocks that make a moment a sound file system, in parts (server/admin/repair_wire.h), for a
  // request to expose it or to roll back to it.
  [[nodiscard]] Result<api::Repairs> repairs_open(const api::RepairsRequest& request);
  [[nodiscard]] Result<api::Repairs> repairs_add(const std::string& id, const std::string& records);
  [[nodiscard]] Result<api::Repairs> repairs_drop(const std::string& id);
  [[nodiscard]] Result<api::RollbackAnswer> rollback(const api::RollbackRequest& request);
  // Of groups of volumes; a view of one is unexposed as any other.
  [[nodiscard]] Result<api::GroupList> group_list();
  [[nodiscard]] Result<api::Group> group_show(const api::GroupRequest& request);
  [[nodiscard]] Result<api::Group> group_create(const api::GroupRequest& request);
  [[nodiscard]] Result<api::Group> group_add(const api::GroupRequest& request);
  // Of one volume.
  [[nodiscard]] Result<api::Group> group_remove(const api::GroupRequest& request);
  [[nodiscard]] Result<api::Group> group_delete(const api::GroupRequest& request);
  [[nodiscard]] Result<api::GroupMark> group_mark_add(const api::GroupMarkRequest& request);
  [[nodiscard]] Result<api::GroupMarkList> group_mark_list(const api::GroupMarkRequest& request);
  [[nodiscard]] Result<api::GroupMark> group_mark_remove(const api::GroupMarkRequest& request);
  [[nodiscard]] Result<api::GroupView> group_expose(const api::GroupExposeRequest& request);
  [[nodiscard]] Result<api::GroupRollbackAnswer> group_rollback(
      const api::GroupRollbackRequest& request);
  [[nodiscard]] Result<api::Access> access_show(const api::AccessRequest& request);
  [[nodiscard]] Result<api::Access> acl_add(const api::AclRequest& request);
  [[nodiscard]] Result<api::Access> acl_remove(const api::AclRequest& request);
  [[nodiscard]] Result<api::Access> auth_set(const api::AuthRequest& request);
  [[nodiscard]] Result<api::Access> redirect_set(const api::RedirectRequest& request);
  [[nodiscard]] Result<api::SessionList> session_list();
  [[nodiscard]] Result<api::ClusterStatus> cluster_status();
  [[nodiscard]] Result<api::Invitation> node_invite(const api::InviteRequest& request);
  [[nodiscard]] Result<api::Promotion> node_promote(const api::PromoteRequest& request);
  [[nodiscard]] Result<api::Session> session_kick(const api::SessionRequest& request);
  [[nodiscard]] Result<api::DoctorAnswer> doctor();
  [[nodiscard]] Result<api::ConfigChanges> config_compare(const api::ConfigCompareRequest& request);
  [[nodiscard]] Result<api::ConfigChanges> config_reload();

  [[nodiscard]] const std::string& socket() const { return socket_; }

 private:
  std::string socket_;
  std::chrono::seconds timeout_;
};

}  // namespace mariner::client
