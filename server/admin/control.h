// What the admin API can ask of a node: one function per request, in and out as the messages of
// proto/admin.proto. server/node implements it, server/admin serves it as HTTP.
//
// Every call is made on the Executor's thread; `done` runs there once, possibly before the call
// returns. Requests are untrusted: implementations check every field.
#pragma once

#include "proto/admin.pb.h"
#include "proto/error.h"
#include "proto/unique_function.h"
#include "server/admin/files_source.h"
#include "server/admin/group_control.h"
#include "server/admin/past_source.h"
#include "server/admin/repair_sink.h"

namespace mariner::admin {

class Control {
 public:
  virtual ~Control() = default;

  virtual void status(Answer<api::StatusAnswer> done) = 0;
  virtual void log_compact(Answer<api::CompactAnswer> done) = 0;
  virtual void volume_list(Answer<api::VolumeList> done) = 0;
  virtual void volume_show(const api::VolumeRequest& request, Answer<api::Volume> done) = 0;
  virtual void volume_create(const api::CreateVolumeRequest& request, Answer<api::Volume> done) = 0;
  // Answers with the volume as it is from then on, or in a dry run would be.
  virtual void volume_retain(const api::RetainRequest& request, Answer<api::Volume> done) = 0;
  virtual void history_prune(const api::PruneRequest& request, Answer<api::PruneAnswer> done) = 0;
  virtual void volume_resize(const api::ResizeRequest& request, Answer<api::Volume> done) = 0;
  virtual void volume_delete(const api::VolumeRequest& request, Answer<api::Volume> done) = 0;
  // Answers when the import has ended. `progress` (bytes done, bytes in all) runs in between.
  virtual void volume_import(const api::ImportRequest& request,
                             UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
                             Answer<api::Volume> done) = 0;
  // The same, of a moment of a volume into another one.
  virtual void volume_clone(const api::CloneRequest& request,
                            UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
                            Answer<api::Clone> done) = 0;
  virtual void history(const api::HistoryRequest& request, Answer<api::History> done) = 0;
  virtual void mark_add(const api::MarkRequest& request, Answer<api::Mark> done) = 0;
  virtual void mark_list(const api::MarkRequest& request, Answer<api::MarkList> done) = 0;
  virtual void mark_remove(const api::MarkRequest& request, Answer<api::Mark> done) = 0;
  // Answers with what is known of the moments then.
  virtual void verdicts_save(const api::SaveVerdictsRequest& request,
                             Answer<api::VerdictList> done) = 0;
  virtual void verdict_list(const api::VerdictsRequest& request, Answer<api::VerdictList> done) = 0;
  virtual void view_expose(const api::ExposeRequest& request, Answer<api::View> done) = 0;
  virtual void view_list(Answer<api::ViewList> done) = 0;
  virtual void view_unexpose(const api::UnexposeRequest& request, Answer<api::View> done) = 0;
  virtual void rollback(const api::RollbackRequest& request, Answer<api::RollbackAnswer> done) = 0;
  virtual void access_show(const api::AccessRequest& request, Answer<api::Access> done) = 0;
  // Each answers with the access that holds from then on, or in a dry run would.
  virtual void acl_add(const api::AclRequest& request, Answer<api::Access> done) = 0;
  virtual void acl_remove(const api::AclRequest& request, Answer<api::Access> done) = 0;
  // Without accounts: none needs to log in. Without an address: here.
  virtual void auth_set(const api::AuthRequest& request, Answer<api::Access> done) = 0;
  virtual void redirect_set(const api::RedirectRequest& request, Answer<api::Access> done) = 0;
  virtual void session_list(Answer<api::SessionList> done) = 0;
  virtual void session_kick(const api::SessionRequest& request, Answer<api::Session> done) = 0;
  virtual void node_invite(const api::InviteRequest& request, Answer<api::Invitation> done) = 0;
  // Answers when the node serves the volume, or when it is known that it will not.
  virtual void node_promote(const api::PromoteRequest& request, Answer<api::Promotion> done) = 0;
  // Nodes and replicas, as this node knows them. kInvalidArgument from a standalone server.
  virtual void cluster_status(Answer<api::ClusterStatus> done) = 0;
  virtual void doctor(Answer<api::DoctorAnswer> done) = 0;
  // What would change with another configuration; kInvalidArgument: it has errors.
  virtual void config_compare(const api::ConfigCompareRequest& request,
                              Answer<api::ConfigChanges> done) = 0;
  // Reads the configuration again, as SIGHUP does; answers what has changed.
  virtual void config_reload(Answer<api::ConfigChanges> done) = 0;
  [[nodiscard]] virtual GroupControl& groups() = 0;
  [[nodiscard]] virtual PastSource& past() = 0;
  [[nodiscard]] virtual RepairSink& repairs() = 0;
  [[nodiscard]] virtual FilesSource& files() = 0;
};

}  // namespace mariner::admin
