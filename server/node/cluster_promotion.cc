// Changing who coordinates a volume, on purpose. See cluster_control.h.
#include <algorithm>
#include <utility>

#include "server/manager/alive_node.h"
#include "server/node/cluster_control.h"

namespace mariner::node {
namespace {

Error unavailable(std::string why) { return {ErrorCode::kUnavailable, std::move(why)}; }

}  // namespace

// What nobody needs to be asked for. The record has the last word.
Result<void> ClusterControl::check_promotion(const meta::Volume& meta,
                                             replication::NodeId node) const {
  const std::string name = name_of(node.value);
  const std::vector<std::uint32_t> targets = manager::targets_of(meta);
  if (std::ranges::find(targets, node.value) == targets.end()) {
    std::string expected;
    for (const std::uint32_t each : targets) {
      expected += (expected.empty() ? "" : " or ") + name_of(each);
    }
    return Error{ErrorCode::kInvalidArgument,
                 "node " + name + " may not serve " + meta.name() + ": expected " + expected};
  }
  if (!node_.view_->known() || !node_.lease_->held()) {
    return unavailable("the cluster's store does not answer this node");
  }
  if (node_.view_->find(manager::alive_key(node)) == nullptr) {
    return unavailable("node " + name + " is not alive (`mariner node list`)");
  }
  const auto alive = manager::alive_node(*node_.view_, node);
  if (alive && !alive->target) {
    return Error{ErrorCode::kInvalidArgument,
                 "node " + name + " has not the role \"target\": it serves no hosts"};
  }
  const auto record = node_.directory_->record(VolumeId{meta.id()});
  const auto& storages = meta.cluster().storages();
  if (record && record->away && std::ranges::count(storages, node.value) == 0) {
    return unavailable("node " + name + " " + manager::Promotion::kLoggerAway);
  }
  const ClusterVolume* const here = node_.volumes_->find(meta.name());
  const bool coordinates =
      here != nullptr && here->target != nullptr && here->target->coordinator() != nullptr;
  if (coordinates && node != node_.self_ && !here->target->may_follow(node)) {
    return unavailable("node " + name + " " + manager::Promotion::kCatchingUp);
  }
  return {};
}

void ClusterControl::node_promote(const api::PromoteRequest& request,
                                  admin::Answer<api::Promotion> done) {
  const std::vector<meta::Volume> volumes = node_.directory_->volumes();
  const auto meta = std::ranges::find(volumes, request.volume(), &meta::Volume::name);
  if (meta == volumes.end()) {
    return done(Error{ErrorCode::kNotFound, "the cluster has no volume " + request.volume() +
                                                "; `mariner replica status` lists them"});
  }
  const replication::NodeId node{request.node().empty() ? node_.self_.value
                                                        : node_.number_of(request.node())};
  if (node.value == 0) {
    return done(Error{ErrorCode::kNotFound,
                      "there is no node " + request.node() + "; `mariner node list` lists them"});
  }
  if (Result<void> possible = check_promotion(*meta, node); !possible) {
    return done(possible.error());
  }
  api::Promotion answer;
  answer.set_schema(1);
  answer.set_volume(meta->name());
  answer.set_node(name_of(node.value));
  if (const auto record = node_.directory_->record(VolumeId{meta->id()})) {
    answer.set_epoch(record->epoch.value);
    answer.set_from(name_of(record->coordinator.value));
    answer.set_already(record->coordinator == node);
  }
  if (request.dry_run()) return done(std::move(answer));
  promote(VolumeId{meta->id()}, node, std::move(answer), std::move(done));
}

void ClusterControl::promote(VolumeId volume, replication::NodeId node, api::Promotion answer,
                             admin::Answer<api::Promotion> done) {
  std::erase_if(promotions_, [](const auto& each) { return each->ended(); });
  if (promotions_.size() >= kPromotionsMax) {
    return done(Error{ErrorCode::kLimit, "this node promotes " + std::to_string(kPromotionsMax) +
                                             " volumes just now; try again"});
  }
  if (!answer.already()) {
    node_.log_.info("a volume's coordinator is to change",
                    {{"volume", answer.volume()}, {"from", answer.from()}, {"to", answer.node()}});
  }
  manager::Promotion::Options options{volume, node,
                                      [this](replication::NodeId id) { return name_of(id.value); }};
  promotions_.push_back(std::make_unique<manager::Promotion>(
      *node_.shared_, node_.loop_, *node_.view_, std::move(options),
      [this, answer = std::move(answer),
       done = std::move(done)](const Result<manager::Promotion::Outcome>& outcome) mutable {
        if (!outcome) {
          node_.log_.warning("a volume's coordinator was not changed",
                             {{"volume", answer.volume()}, {"error", to_string(outcome.error())}});
          return done(outcome.error());
        }
        answer.set_epoch(outcome->epoch.value);
        answer.set_already(outcome->already);
        done(std::move(answer));
      }));
}

void ClusterControl::stop() {
  files_.stop();
  for (const auto& promotion : promotions_) promotion->cancel(unavailable("the node is stopping"));
}

}  // namespace mariner::node
