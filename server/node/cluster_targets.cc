// What hosts, and who watches, see of a node of a cluster. See cluster_node.h.
#include <algorithm>

#include "server/node/access.h"
#include "server/node/cluster_node.h"
#include "server/node/cluster_redirection.h"

namespace mariner::node {

// ---- iscsi::TargetDirectory

// Who is here, and is to be where another node serves.
void ClusterNode::send_away() {
  if (!front_->has_portal()) return;
  iscsi::SessionRegistry& sessions = front_->portal().sessions();
  for (const auto& [id, volume] : volumes_->all()) {
    if (!redirection_of(volume, *view_, {})) continue;
    const auto of_this = [&volume](const iscsi::Session& session) {
      return session.identity().target == volume.iqn;
    };
    sessions.ask_to_leave(of_this, iscsi::EndReason::kRedirected);
  }
}

const ClusterVolume* ClusterNode::find_target(std::string_view iqn) const {
  if (const ClusterVolume* volume = volumes_->find_target(iqn)) return volume;
  const ClusterServedView* const view = views_->find_target(iqn);
  return view == nullptr ? nullptr : &volumes_->all().at(view->meta.volume_id());
}

std::vector<std::string> ClusterNode::discoverable(std::string_view initiator,
                                                   std::string_view account) const {
  std::vector<std::string> names;
  for (const auto& [id, volume] : volumes_->all()) {
    if (volume.target != nullptr && shown(volume.meta, initiator, account)) {
      names.push_back(volume.iqn);
    }
  }
  for (const auto& [name, view] : views_->all()) {
    const meta::Volume& meta = volumes_->all().at(view.meta.volume_id()).meta;
    if (shown(meta, initiator, account)) names.push_back(view.iqn);
  }
  return names;
}

std::optional<iscsi::Redirection> ClusterNode::redirection(std::string_view target,
                                                           std::string_view portal) const {
  const ClusterVolume* const volume = find_target(target);
  // (A view is served here as well as elsewhere.)
  if (volume == nullptr || target != volume->iqn) return std::nullopt;
  return redirection_of(*volume, *view_, portal);
}

Result<std::shared_ptr<scsi::TargetDevice>> ClusterNode::open(std::string_view target,
                                                              std::string_view initiator) {
  const ClusterVolume* const volume = find_target(target);
  if (volume == nullptr) {
    return Error{ErrorCode::kNotFound, "there is no target " + std::string(target)};
  }
  if (!admits(volume->meta, initiator)) {
    return Error{ErrorCode::kInvalidArgument,
                 std::string(initiator) + " is not on the access list of " + volume->meta.name()};
  }
  if (target != volume->iqn) {
    if (stopping_) return Error{ErrorCode::kUnavailable, "the node is stopping"};
    return std::shared_ptr<scsi::TargetDevice>(views_->find_target(target)->device);
  }
  // (Who is to be sent elsewhere is sent there also by who stops.)
  if (stopping_ && !redirection_of(*volume, *view_, {})) {
    return Error{ErrorCode::kUnavailable, "the node is stopping"};
  }
  if (served_nowhere(*volume)) {
    return Error{ErrorCode::kUnavailable, "no node serves the volume now; try again"};
  }
  return std::shared_ptr<scsi::TargetDevice>(volume->metered);
}

Result<std::vector<iscsi::ChapAccount>> ClusterNode::accounts(
    std::string_view target, std::string_view /*initiator*/) const {
  if (target.empty()) return accounts_named(accounts_, config_.server.discovery_auth);
  const ClusterVolume* const volume = find_target(target);
  if (volume == nullptr) return std::vector<iscsi::ChapAccount>{};
  return accounts_named(accounts_, {volume->meta.auth().begin(), volume->meta.auth().end()});
}

// ---- web::WebSource

// Only the coordinator knows of all of them.
std::vector<web::ReplicaMetrics> ClusterNode::replicas_of(const ClusterVolume& volume) const {
  std::vector<web::ReplicaMetrics> out;
  const auto* const host = volume.target == nullptr ? nullptr : volume.target->coordinator();
  if (host == nullptr || !host->ready()) return out;
  for (const ClusterNodeConfig& node : config_.cluster.nodes) {
    if (std::ranges::count(volume.meta.cluster().storages(), node.id) == 0) continue;
    const bool master = host->role().reads_from() == replication::NodeId{node.id};
    out.push_back({.replica = node.name,
                   .role = master ? "master" : "mirror",
                   .lag = host->lag({node.id}),
                   .failed = host->role().image_failure({node.id}).has_value()});
  }
  return out;
}

std::vector<ClusterMulticast::Receiver> ClusterNode::other_nodes() const {
  std::vector<ClusterMulticast::Receiver> out;
  for (const ClusterNodeConfig& node : config_.cluster.nodes) {
    if (node.id != self_.value) out.push_back({{node.id}, node.name});
  }
  return out;
}

std::vector<ClusterMulticast::Receiver> ClusterNode::receivers_of(
    const ClusterVolume& volume) const {
  if (volume.target == nullptr || volume.target->coordinator() == nullptr) return {};
  std::vector<ClusterMulticast::Receiver> out = other_nodes();
  const meta::Cluster& nodes = volume.meta.cluster();
  std::erase_if(out, [&](const ClusterMulticast::Receiver& each) {
    return nodes.logger() != each.node.value &&
           std::ranges::count(nodes.storages(), each.node.value) == 0;
  });
  return out;
}

web::NodeMetrics ClusterNode::metrics() {
  web::NodeMetrics out;
  for (const auto& [id, volume] : volumes_->all()) {
    if (volume.metered == nullptr && volume.logger == nullptr) continue;
    web::VolumeMetrics each;
    each.volume = volume.meta.name();
    if (volume.metered != nullptr) each.scsi = &volume.metered->metrics();
    if (volume.logger != nullptr) {
      each.window = std::chrono::seconds(volume.meta.window_s());
      if (const auto outlook = window_watch_->outlook(VolumeId{id})) {
        each.window_lasting = outlook->lasting;
        each.window_short_in = outlook->short_in;
      }
      each.oldest_recoverable = std::max(VersionTime{volume.meta.created_ns()},
                                         volume.logger->logged().index().oldest().time);
    }
    const auto oldest =
        volume.storage == nullptr ? std::nullopt : volume.storage->storage().oldest_unapplied();
    if (oldest) {
      const VersionTime now = loop_.wall_time();
      if (*oldest < now) each.commit_lag = std::chrono::nanoseconds(now.ns - oldest->ns);
    }
    if (volume.storage != nullptr && volume.storage->storage().restoring()) {
      each.rollback_progress = volume.storage->storage().restore_progress().ratio();
    }
    each.checks = past_->verdicts().durations(VolumeId{id});
    each.replicas = replicas_of(volume);
    each.multicast = multicast_->metrics_of(VolumeId{id}, receivers_of(volume));
    out.volumes.push_back(std::move(each));
  }
  out.multicast = multicast_->metrics(other_nodes());
  if (logs()) {
    LogStack& log = node_log_->stack();
    out.log_commit = &log.commit_durations();
    out.log_batch = &log.batch_bytes();
    out.log_used_bytes = log.writer().used_bytes();
    out.log_limit_bytes = log.writer().limit_bytes();
    out.log_history_bytes = log.writer().history_bytes();
    out.log_payloads = log.payloads();
  }
  front_->add_metrics(out);
  return out;
}

// (A journal that has failed is told in the log: while loggers are there nobody needs it.)
Result<void> ClusterNode::health() {
  if (logs() && node_log_->stack().writer().failed()) {
    return Error{ErrorCode::kIo, "every log disk has failed: " + node_log_->stack().paths()};
  }
  return {};
}

Result<void> ClusterNode::readiness() {
  if (stopping_) return Error{ErrorCode::kUnavailable, "stopping"};
  if (!ready_) return Error{ErrorCode::kUnavailable, "starting"};
  if (!lease_->held()) {
    return Error{ErrorCode::kUnavailable, "the cluster's store does not answer"};
  }
  return health();
}

}  // namespace mariner::node
