#include "server/node/cluster_control.h"

#include <algorithm>
#include <set>
#include <utility>

#include "proto/payload.h"
#include "server/manager/serving_sign.h"
#include "server/node/config_desk.h"
#include "server/node/identity.h"
#include "server/node/rollback_plan.h"
#include "server/node/session_answer.h"

namespace mariner::node {
namespace {

Error not_yet(const char* what) {
  return {ErrorCode::kInvalidArgument,
          std::string(what) + " is not possible in a cluster yet; a standalone server does it"};
}

void add(api::DoctorAnswer& out, const char* check, bool good, std::string found,
         std::string advice) {
  api::Finding* finding = out.add_findings();
  finding->set_check(check);
  finding->set_level(good ? "ok" : "error");
  finding->set_found(std::move(found));
  if (!good) finding->set_advice(std::move(advice));
}

void set_missed(const replication::CatchUpProgress& progress, api::Replica& out) {
  out.set_missed_total_bytes(progress.total_bytes);
  out.set_missed_left_bytes(progress.left_bytes);
  out.set_missed_bytes_per_second(progress.bytes_per_second);
}

const char* target_state(const cluster::TargetPart& target) {
  switch (target.state()) {
    case cluster::TargetPart::State::kServing: return "serving";
    case cluster::TargetPart::State::kStandby: return "standby";
    case cluster::TargetPart::State::kTransitioning: break;
  }
  return "transitioning";
}

}  // namespace

void ClusterControl::status(admin::Answer<api::StatusAnswer> done) {
  api::StatusAnswer out;
  out.set_schema(1);
  out.set_version(MARINER_VERSION);
  out.set_started_ns(node_.started_.ns);
  out.set_now_ns(node_.loop_.wall_time().ns);
  if (node_.front_->has_portal()) {
    for (const std::string& portal : node_.front_->portal().addresses()) out.add_portals(portal);
  }
  out.set_iqn_base(node_.config_.server.iqn_base);
  if (node_.logs()) {
    out.set_log_used_bytes(node_.node_log_->stack().writer().used_bytes());
    out.set_log_limit_bytes(node_.node_log_->stack().writer().limit_bytes());
    out.set_log_history_bytes(node_.node_log_->stack().writer().history_bytes());
    out.set_log_compacting(node_.log_packing_->compacting());
    out.set_log_compact_trouble(node_.log_packing_->trouble());
  }
  out.set_config_path(node_.config_path_);
  out.set_ready(node_.readiness().has_value());
  out.set_payload_memory_bytes(Payload::total_bytes());
  done(std::move(out));
}

void ClusterControl::log_compact(admin::Answer<api::CompactAnswer> done) {
  if (!node_.logs()) {
    return done(
        Error{ErrorCode::kUnavailable,
              "this node keeps no log; ask the one that is the logger (mariner node list)"});
  }
  if (Result<void> r = node_.log_packing_->compact_now(); !r) return done(r.error());
  api::CompactAnswer out;
  out.set_schema(1);
  done(std::move(out));
}

void ClusterControl::config_compare(const api::ConfigCompareRequest& request,
                                    admin::Answer<api::ConfigChanges> done) {
  done(compare_config(node_, node_.config_path_, request));
}

void ClusterControl::config_reload(admin::Answer<api::ConfigChanges> done) {
  done(reload_config(node_, node_.config_path_, node_.log_));
}

api::Volume ClusterControl::to_api(const ClusterVolume& volume) const {
  api::Volume out;
  const meta::Volume& meta = volume.meta;
  out.set_name(meta.name());
  out.set_id(meta.id());
  out.set_size_bytes(meta.size_bytes());
  out.set_block_size(meta.block_size());
  out.set_window_s(meta.window_s());
  out.set_retain(retention_text(retention_of(meta)));
  out.set_sanitize(meta.sanitize());
  out.set_removable(meta.removable());
  out.set_iqn(volume.iqn);
  out.set_state(volume.target != nullptr ? target_state(*volume.target) : "elsewhere");
  out.set_serial(volume.identity.serial);
  out.set_naa(naa_text(volume.identity));
  out.set_image_path(volume.image_path);
  if (node_.front_->has_portal()) {
    out.set_sessions(
        static_cast<std::uint32_t>(node_.front_->portal().sessions().count_of(volume.iqn)));
  }
  out.set_degraded(degraded(meta, &volume));
  if (volume.storage != nullptr) {
    out.set_unapplied_bytes(volume.storage->storage().lag_bytes());
    out.set_restoring(volume.storage->storage().restoring());
    add_restore(volume.storage->storage(), out);
  }
  out.set_marks(static_cast<std::uint32_t>(node_.moments_->marks(VolumeId{meta.id()}).size()));
  out.set_views(static_cast<std::uint32_t>(
      std::ranges::count(node_.moments_->views(), meta.id(), &meta::View::volume_id)));
  if (volume.logger != nullptr) {
    volume::LoggedVolume& logged = volume.logger->logged();
    out.set_history_bytes(logged.log().payload_bytes());
    *out.mutable_newest() = node::to_api(logged.index().newest());
    if (const auto outlook = node_.window_watch_->outlook(VolumeId{meta.id()});
        outlook && outlook->short_in) {
      out.mutable_outlook()->set_short_in_s(static_cast<std::uint64_t>(outlook->short_in->count()));
      out.mutable_outlook()->set_lasting_s(static_cast<std::uint64_t>(outlook->lasting.count()));
    }
    const index::IndexMoment oldest = logged.index().oldest();
    *out.mutable_oldest() = node::to_api(
        oldest.sequence.value == 0 ? index::IndexMoment{{}, VersionTime{meta.created_ns()}}
                                   : oldest);
  }
  return out;
}

void ClusterControl::volume_list(admin::Answer<api::VolumeList> done) {
  api::VolumeList out;
  out.set_schema(1);
  for (const auto& [id, volume] : node_.volumes_->all()) *out.add_volumes() = to_api(volume);
  done(std::move(out));
}

void ClusterControl::volume_show(const api::VolumeRequest& request,
                                 admin::Answer<api::Volume> done) {
  const ClusterVolume* const volume = node_.volumes_->find(request.name());
  if (volume != nullptr) return done(to_api(*volume));
  done(Error{ErrorCode::kNotFound, "this node has no part in a volume " + request.name() +
                                       "; see `mariner replica status`"});
}

api::Session ClusterControl::to_api(const iscsi::SessionInfo& session) const {
  api::Session out = session_answer(session, node_.loop_);
  if (const ClusterVolume* volume = node_.volumes_->find_target(session.target)) {
    out.set_volume(volume->meta.name());
  } else if (const ClusterServedView* view = node_.views_->find_target(session.target)) {
    out.set_view(view->meta.name());
  }
  return out;
}

void ClusterControl::session_list(admin::Answer<api::SessionList> done) {
  api::SessionList out;
  out.set_schema(1);
  if (!node_.front_->has_portal()) return done(std::move(out));
  for (const iscsi::SessionInfo& session : node_.front_->portal().sessions().list()) {
    *out.add_sessions() = to_api(session);
  }
  done(std::move(out));
}

void ClusterControl::session_kick(const api::SessionRequest& request,
                                  admin::Answer<api::Session> done) {
  const Error none{ErrorCode::kNotFound, "there is no session " + std::to_string(request.id())};
  if (!node_.front_->has_portal()) return done(none);
  iscsi::SessionRegistry& sessions = node_.front_->portal().sessions();
  if (request.dry_run()) {
    for (const iscsi::SessionInfo& session : sessions.list()) {
      if (session.id == request.id()) return done(session_answer(session, node_.loop_));
    }
    return done(none);
  }
  Result<iscsi::SessionInfo> kicked = sessions.kick(request.id(), request.force());
  if (!kicked) return done(kicked.error());
  done(session_answer(*kicked, node_.loop_));
}

void ClusterControl::node_invite(const api::InviteRequest& request,
                                 admin::Answer<api::Invitation> done) {
  done(node_.enrolment_desk_->invite(request.node(), request.dry_run()));
}

std::string ClusterControl::name_of(std::uint32_t node) const {
  for (const ClusterNodeConfig& each : node_.config_.cluster.nodes) {
    if (each.id == node) return each.name;
  }
  return node == 0 ? "" : std::to_string(node);
}

void ClusterControl::fill_logger(const meta::Volume& meta, const ClusterVolume* here,
                                 api::Replica& out) const {
  out.set_role("logger");
  out.set_node(name_of(meta.cluster().logger()));
  if (here == nullptr) return;
  if (here->logger != nullptr) {
    out.set_known(true);
    out.set_settled(here->logger->host().role().settled().value);
  } else if (here->target != nullptr && here->target->coordinator() != nullptr) {
    out.set_known(true);
    out.set_settled(here->target->coordinator()->role().settled().value);
  }
}

// Of its own image a node knows best, of others the coordinator.
std::optional<Error> ClusterControl::image_failure(std::uint32_t node,
                                                   const ClusterVolume* here) const {
  if (here == nullptr) return std::nullopt;
  if (node == node_.self_.value && here->storage != nullptr) {
    return here->storage->host().image_failure();
  }
  const bool coordinates = here->target != nullptr && here->target->coordinator() != nullptr;
  if (!coordinates) return std::nullopt;
  return here->target->coordinator()->role().image_failure({node});
}

std::string ClusterControl::degraded(const meta::Volume& meta, const ClusterVolume* here) const {
  std::string out;
  for (const std::uint32_t node : meta.cluster().storages()) {
    const std::optional<Error> why = image_failure(node, here);
    if (!why) continue;
    if (!out.empty()) out += "; ";
    out += "the image of node " + name_of(node) + " has failed: " + why->message;
  }
  return out;
}

void ClusterControl::fill_storage(std::uint32_t node, const ClusterVolume* here,
                                  api::Replica& out) const {
  out.set_role("storage");
  out.set_node(name_of(node));
  if (const auto why = image_failure(node, here)) out.set_failure(why->message);
  if (here == nullptr) return;
  if (node == node_.self_.value && here->storage != nullptr) {
    out.set_known(true);
    out.set_caught_up(!here->storage->host().role().catching_up());
    out.set_committed(here->storage->host().role().committed().value);
    out.set_durable(here->storage->storage().durable().value);
    out.set_lag_bytes(here->storage->storage().lag_bytes());
    set_missed(here->storage->storage().catch_up_progress(), out);
  }
  if (here->target == nullptr || here->target->coordinator() == nullptr) return;
  const replication::CoordinatorRole& role = here->target->coordinator()->role();
  out.set_known(true);
  out.set_caught_up(role.caught_up({node}));
  out.set_durable(role.durable_at({node}).value);
  if (node != node_.self_.value) set_missed(role.catch_up_of({node}), out);
}

api::ReplicatedVolume ClusterControl::replicas_of(const meta::Volume& meta) const {
  api::ReplicatedVolume out;
  out.set_name(meta.name());
  out.set_id(meta.id());
  out.set_promote_by_hand(meta.cluster().promote_by_hand());
  if (const auto record = node_.directory_->record(VolumeId{meta.id()})) {
    out.set_epoch(record->epoch.value);
    if (record->epoch.value > 0) out.set_coordinator(name_of(record->coordinator.value));
  }
  if (const auto server = manager::server_of(*node_.view_, VolumeId{meta.id()})) {
    out.set_server(name_of(server->value));
  }
  const ClusterVolume* const here = node_.volumes_->find(meta.name());
  if (here != nullptr && here->target != nullptr) out.set_state(target_state(*here->target));
  out.set_degraded(degraded(meta, here));
  api::Replica& logger = *out.add_replicas();
  fill_logger(meta, here, logger);
  // (Who coordinates may have read the record before it has ended the epoch before.)
  std::optional<replication::LogAway> away;
  if (here != nullptr && here->target != nullptr && here->target->coordinator() != nullptr) {
    away = here->target->coordinator()->role().away();
  } else if (const auto record = node_.directory_->record(VolumeId{meta.id()})) {
    away = record->away;
  }
  logger.set_away(away.has_value());
  if (away) logger.set_away_since(away->since.value);
  for (const std::uint32_t node : meta.cluster().storages()) {
    fill_storage(node, here, *out.add_replicas());
  }
  for (api::Replica& replica : *out.mutable_replicas()) {
    replica.set_payloads(
        node_.multicast_->way_to(VolumeId{meta.id()}, {node_.number_of(replica.node())}));
  }
  return out;
}

void ClusterControl::cluster_status(admin::Answer<api::ClusterStatus> done) {
  api::ClusterStatus out;
  out.set_schema(1);
  out.set_cluster(node_.identity_->name.cluster);
  out.set_store_answers(node_.lease_->held());
  for (const ClusterNodeConfig& node : node_.config_.cluster.nodes) {
    api::ClusterNode& each = *out.add_nodes();
    each.set_name(node.name);
    each.set_number(node.id);
    for (const Endpoint& address : node.addresses) each.add_addresses(to_string(address));
    each.set_alive(node_.view_->find(manager::alive_key({node.id})) != nullptr);
    each.set_self(node.id == node_.self_.value);
  }
  for (const meta::Volume& meta : node_.directory_->volumes()) {
    *out.add_volumes() = replicas_of(meta);
  }
  done(std::move(out));
}

// What is not as it should be with a volume, as far as this node knows; one line when all is.
void ClusterControl::examine(const api::ReplicatedVolume& volume, api::DoctorAnswer& out) const {
  const auto find = [&](const char* level, const std::string& what, std::string advice) {
    api::Finding& finding = *out.add_findings();
    finding.set_check("volume");
    finding.set_level(level);
    finding.set_found(volume.name() + ": " + what);
    finding.set_advice(std::move(advice));
  };
  const int before = out.findings_size();
  if (volume.coordinator().empty()) {
    find("error", "nobody coordinates it",
         "bring a node that may serve it back; if it is promoted by hand, mariner node promote");
  }
  for (const api::Replica& replica : volume.replicas()) {
    if (replica.away()) {
      find("warning",
           "its logger " + replica.node() + " is away; the storage nodes keep what is written",
           "bring the logger back: writes wait when the journals are full, and the past cannot be "
           "asked until then");
    } else if (!replica.failure().empty()) {
      find("error", "its image at " + replica.node() + " has failed: " + replica.failure(),
           "mend or replace the disk of that node's images: it is tried again by itself, and built "
           "anew if it must be");
    } else if (replica.known() && replica.role() == "storage" && !replica.caught_up()) {
      find("warning", replica.node() + " does not have all of it",
           "bring the node back, or wait until it has fetched what it missed (mariner replica "
           "status)");
    }
  }
  if (out.findings_size() == before) find("ok", volume.coordinator() + " coordinates it", "");
}

// Each once, in however many volumes it is met.
void ClusterControl::examine_multicast(api::DoctorAnswer& out) const {
  std::set<ClusterMulticast::Trouble> told;
  bool used = false;
  for (const auto& [id, volume] : node_.volumes_->all()) {
    const auto group = node_.multicast_->group_of(volume.meta.name(), node_.config_.volumes);
    const auto receivers = node_.receivers_of(volume);
    if (!group || receivers.size() < 2) continue;
    used = true;
    for (auto& each : node_.multicast_->troubles(VolumeId{id}, *group, receivers)) {
      told.insert(std::move(each));
    }
  }
  if (auto trouble = node_.multicast_->trouble_of_hearing()) told.insert(*std::move(trouble));
  const auto find = [&out](const char* level, const std::string& found, const std::string& advice) {
    api::Finding& finding = *out.add_findings();
    finding.set_check("multicast");
    finding.set_level(level);
    finding.set_found(found);
    finding.set_advice(advice);
  };
  for (const auto& each : told) find("warning", each.found, each.advice);
  if (used && told.empty()) {
    find("ok", "nobody who is connected has been without it for long", "");
  }
}

void ClusterControl::doctor(admin::Answer<api::DoctorAnswer> done) {
  api::DoctorAnswer out;
  out.set_schema(1);
  add(out, "cluster's store", node_.lease_->held(),
      node_.lease_->held() ? "answers" : "does not answer",
      "look whether etcd runs ([cluster] etcd); volumes are not coordinated here until it answers");
  for (const ClusterNodeConfig& node : node_.config_.cluster.nodes) {
    const bool alive = node_.view_->find(manager::alive_key({node.id})) != nullptr;
    add(out, "node", alive, node.name + (alive ? " is alive" : " is not there"),
        "look at it: whether marinerd runs there and reaches the cluster's store");
  }
  if (node_.node_log_ != nullptr) {
    const logging::LogWriter& writer = node_.node_log_->stack().writer();
    const bool room = node_.log_space_->room() == LogSpace::Room::kEnough;
    add(out, node_.logs() ? "log space" : "journal space", room,
        std::to_string(writer.used_bytes() >> 20) + " of " +
            std::to_string(writer.limit_bytes() >> 20) + " MiB",
        node_.logs()
            ? "it gives up what is older than the windows; give it more disks ([log] disks) to "
              "keep "
              "more"
            : "writes wait when it is full: bring the logger back, or give it more disks ([log] "
              "disks)");
  }
  for (const meta::Volume& meta : node_.directory_->volumes()) examine(replicas_of(meta), out);
  examine_multicast(out);
  done(std::move(out));
}

void ClusterControl::volume_create(const api::CreateVolumeRequest& /*request*/,
                                   admin::Answer<api::Volume> done) {
  done(
      Error{ErrorCode::kInvalidArgument,
            "a volume of a cluster is created by a [[volume]] section with logger and storage in " +
                node_.config_path_ + ", and systemctl reload marinerd"});
}
void ClusterControl::volume_retain(const api::RetainRequest& /*request*/,
                                   admin::Answer<api::Volume> done) {
  done(not_yet("changing what is kept behind a volume's window"));
}

void ClusterControl::history_prune(const api::PruneRequest& /*request*/,
                                   admin::Answer<api::PruneAnswer> done) {
  done(not_yet("pruning"));
}

void ClusterControl::volume_resize(const api::ResizeRequest& /*request*/,
                                   admin::Answer<api::Volume> done) {
  done(not_yet("resizing a volume"));
}
void ClusterControl::volume_delete(const api::VolumeRequest& /*request*/,
                                   admin::Answer<api::Volume> done) {
  done(not_yet("deleting a volume"));
}
void ClusterControl::volume_import(const api::ImportRequest& /*request*/,
                                   UniqueFunction<void(std::uint64_t, std::uint64_t)> /*progress*/,
                                   admin::Answer<api::Volume> done) {
  done(not_yet("importing a volume"));
}
void ClusterControl::volume_clone(const api::CloneRequest& /*request*/,
                                  UniqueFunction<void(std::uint64_t, std::uint64_t)> /*progress*/,
                                  admin::Answer<api::Clone> done) {
  done(not_yet("cloning a volume"));
}
admin::PastSource& ClusterControl::past() { return node_.past_->desk(); }
admin::RepairSink& ClusterControl::repairs() { return node_.past_->repairs(); }

void ClusterControl::history(const api::HistoryRequest& request, admin::Answer<api::History> done) {
  node_.past_->history(request, std::move(done));
}
void ClusterControl::mark_add(const api::MarkRequest& request, admin::Answer<api::Mark> done) {
  node_.past_->mark_add(request, std::move(done));
}
void ClusterControl::mark_list(const api::MarkRequest& request, admin::Answer<api::MarkList> done) {
  node_.past_->mark_list(request, std::move(done));
}
void ClusterControl::mark_remove(const api::MarkRequest& request, admin::Answer<api::Mark> done) {
  node_.past_->mark_remove(request, std::move(done));
}
void ClusterControl::verdicts_save(const api::SaveVerdictsRequest& request,
                                   admin::Answer<api::VerdictList> done) {
  node_.past_->verdicts().save(request, std::move(done));
}
void ClusterControl::verdict_list(const api::VerdictsRequest& request,
                                  admin::Answer<api::VerdictList> done) {
  node_.past_->verdicts().list(request, std::move(done));
}
void ClusterControl::view_expose(const api::ExposeRequest& request, admin::Answer<api::View> done) {
  node_.past_->view_expose(request, std::move(done));
}
void ClusterControl::view_list(admin::Answer<api::ViewList> done) {
  node_.past_->view_list(std::move(done));
}
void ClusterControl::view_unexpose(const api::UnexposeRequest& request,
                                   admin::Answer<api::View> done) {
  node_.past_->view_unexpose(request, std::move(done));
}
void ClusterControl::rollback(const api::RollbackRequest& request,
                              admin::Answer<api::RollbackAnswer> done) {
  node_.past_->rollback(request, std::move(done));
}
void ClusterControl::access_show(const api::AccessRequest& /*request*/,
                                 admin::Answer<api::Access> done) {
  done(not_yet("showing access"));
}
void ClusterControl::acl_add(const api::AclRequest& /*request*/, admin::Answer<api::Access> done) {
  done(not_yet("changing access"));
}
void ClusterControl::acl_remove(const api::AclRequest& /*request*/,
                                admin::Answer<api::Access> done) {
  done(not_yet("changing access"));
}
void ClusterControl::auth_set(const api::AuthRequest& /*request*/,
                              admin::Answer<api::Access> done) {
  done(not_yet("changing access"));
}
void ClusterControl::redirect_set(const api::RedirectRequest& /*request*/,
                                  admin::Answer<api::Access> done) {
  done(not_yet("redirecting a volume"));
}

}  // namespace mariner::node
