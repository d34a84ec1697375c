// How a node of a cluster stops: it hands over what it coordinates, logs hosts out, and waits for
// what is under way. See cluster_node.h.
#include <utility>

#include "proto/check.h"
#include "server/node/cluster_control.h"
#include "server/node/cluster_node.h"

namespace mariner::node {
namespace {

// How long it waits for the store to take its lease back.
constexpr auto kLeaseReturn = std::chrono::seconds(1);
constexpr auto kIdlePoll = std::chrono::milliseconds(5);

}  // namespace

void ClusterNode::stop(UniqueFunction<void()> done) {
  CHECK(!stopping_);
  stopping_ = true;
  ready_ = false;
  log_.info("stopping");
  enrolment_desk_->close();
  control_->stop();
  hand_over([this, done = std::move(done)]() mutable {
    front_->stop([this, done = std::move(done)]() mutable { stop_parts(std::move(done)); });
  });
}

// Before hosts are logged out, so that they go where others serve by then.
void ClusterNode::hand_over(UniqueFunction<void()> done) {
  std::vector<Handover::Volume> coordinated;
  for (const auto& [id, volume] : volumes_->all()) {
    if (volume.target == nullptr || volume.target->coordinator() == nullptr) continue;
    Handover::Volume& each = coordinated.emplace_back(VolumeId{id}, volume.iqn);
    each.redirect = volume.meta.cluster().redirect();
    if (volume.meta.cluster().promote_by_hand()) continue;
    for (const std::uint32_t node : volume.meta.cluster().storages()) {
      if (node != self_.value) each.successors.push_back({node});
    }
  }
  volumes_->resign();
  lease_->stop([this] { lease_returned_ = true; });
  lease_return_end_ = loop_.monotonic_time() + kLeaseReturn;
  handover_ = std::make_unique<Handover>(
      Handover::Parts{loop_, *view_, self_, [this](const std::string& iqn) -> std::size_t {
                        return front_->has_portal() ? front_->portal().sessions().count_of(iqn) : 0;
                      }});
  handover_->begin(std::move(coordinated), std::move(done));
}

void ClusterNode::stop_parts(UniqueFunction<void()> done) {
  views_->close();
  if (log_space_ != nullptr) log_space_->stop();
  volumes_->close(Error{ErrorCode::kUnavailable, "the node is stopping"});
  if (node_log_ != nullptr) {
    node_log_->stack().stop();
    node_log_->indexes().stop_repairs();
  }
  wait_until_idle([this, done = std::move(done)]() mutable {
    volumes_->save_progress();
    stop_index([this, done = std::move(done)]() mutable {
      log_.info("stopped");
      done();
    });
  });
}

void ClusterNode::wait_until_idle(UniqueFunction<void()> done) {
  const bool left = lease_returned_ || loop_.monotonic_time() >= lease_return_end_;
  const bool space = log_space_ == nullptr || log_space_->idle();
  if (left && space && past_->idle() && volumes_->idle() &&
      (node_log_ == nullptr || node_log_->stack().idle())) {
    return done();
  }
  loop_.after(kIdlePoll,
              [this, done = std::move(done)]() mutable { wait_until_idle(std::move(done)); });
}

void ClusterNode::stop_index(UniqueFunction<void()> done) {
  if (node_log_ != nullptr) node_log_->indexes().stop();
  const bool idle = node_log_ == nullptr || node_log_->indexes().idle();
  if (idle && ring_->in_flight() == 0) return done();
  loop_.after(kIdlePoll, [this, done = std::move(done)]() mutable { stop_index(std::move(done)); });
}

}  // namespace mariner::node
