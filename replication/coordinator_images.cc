// The coordinator and images that have failed: who is done without, and who is needed all the same.
#include <algorithm>
#include <string>
#include <utility>

#include "replication/coordinator_role.h"

namespace mariner::replication {
namespace {

// A hand-over is a transaction in the shared store; if nothing comes of it, it is asked for anew.
constexpr auto kHandOverAgain = std::chrono::seconds(5);

Error image_in_the_way(NodeId node, const Error& why) {
  return {why.code,
          "the log is full, and keeps what the image of node " + std::to_string(node.value) +
              " lacks, which has failed (" + why.message +
              "). It is needed: mend its disk, or bring a node back that may serve the volume from "
              "an image of its own that works"};
}

}  // namespace

bool CoordinatorRole::works(const StorageLink& storage) {
  return storage.link == Link::kOpen && !storage.failed;
}

// Another storage node that has everything, in an image that works and lacks nothing that the log
// has given up.
std::optional<NodeId> CoordinatorRole::in_its_place(NodeId node) const {
  for (const auto& [other, storage] : storages_) {
    if (other != node && works(storage) && storage.caught_up &&
        storage.durable >= writes_->frontier()) {
      return other;
    }
  }
  return std::nullopt;
}

std::optional<Error> CoordinatorRole::image_failure(NodeId node) const {
  const auto found = storages_.find(node);
  return found == storages_.end() ? std::nullopt : found->second.failed;
}

// One that has just opened, and says that it has failed. (What it lacks it gets when it works
// again. While the logger is away nothing is given up, and so nobody done without.)
bool CoordinatorRole::hold(StorageLink& storage, NodeId node, bool lacks) {
  if (!storage.failed || away_) return false;
  storage.held = lacks || (!is_own(node) && in_its_place(node));
  return storage.held;
}

// What is to become of an image that has failed.
void CoordinatorRole::watch_image(NodeId node, StorageLink& storage, VersionTime now,
                                  std::chrono::nanoseconds monotonic, Actions& out) {
  if (!storage.failed) return storage.told_let_go.reset();
  const std::optional<NodeId> other = in_its_place(node);
  if (is_own(node) && other) hand_over(*other, storage, monotonic, out);
  if (storage.held) return watch_held(node, storage, now, out);
  if (storage.link != Link::kOpen && storage.link != Link::kLeftOut) return;
  const bool let_go = other && !is_own(node);
  tell_failed(node, storage, let_go, out);
  if (let_go) {
    return drop_storage(
        storage, node,
        Error{storage.failed->code, "its image has failed: " + storage.failed->message}, now, out);
  }
  if (room_wanted_) out.emplace_back(WritesWait{image_in_the_way(node, *storage.failed)});
}

// It is needed all the same when no other one is there that works; but for what it lacks.
void CoordinatorRole::watch_held(NodeId node, StorageLink& storage, VersionTime now, Actions& out) {
  tell_failed(node, storage, true, out);
  const bool lacks = storage.durable.value > 0 && storage.durable < writes_->frontier();
  const bool other = std::ranges::any_of(storages_, [node](const auto& each) {
    const bool is_there = each.second.link == Link::kOpen || each.second.link == Link::kLeftOut;
    return each.first != node && !each.second.failed && is_there;
  });
  if (lacks || other) return;
  drop_storage(storage, node,
               Error{ErrorCode::kUnavailable,
                     "its image has failed, and is needed all the same: no other one that works is "
                     "there"},
               now, out);
}

void CoordinatorRole::tell_failed(NodeId node, StorageLink& storage, bool let_go, Actions& out) {
  if (std::exchange(storage.told_let_go, let_go) == let_go) return;
  out.emplace_back(ImageFailed{node, *storage.failed, let_go});
}

// Reads are served from this node's image: who has a better one is to coordinate.
void CoordinatorRole::hand_over(NodeId to, StorageLink& storage, std::chrono::nanoseconds monotonic,
                                Actions& out) {
  if (storage.handed_over && monotonic - *storage.handed_over < kHandOverAgain) return;
  storage.handed_over = monotonic;
  out.emplace_back(HandOver{to});
}

}  // namespace mariner::replication
