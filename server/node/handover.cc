#include "server/node/handover.h"

#include <algorithm>
#include <utility>

#include "server/manager/alive_node.h"
#include "server/manager/serving_sign.h"

namespace mariner::node {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(5);

}  // namespace

void Handover::begin(std::vector<Volume> volumes, UniqueFunction<void()> done) {
  volumes_ = std::move(volumes);
  done_ = std::move(done);
  begun_ = parts_.executor.monotonic_time();
  std::erase_if(volumes_, [this](const Volume& each) { return parts_.sessions(each.iqn) == 0; });
  look();
}

bool Handover::served_elsewhere(const Volume& volume) const {
  const auto server = manager::server_of(parts_.view, volume.id);
  return server && *server != parts_.self;
}

bool Handover::hopeless(const Volume& volume) const {
  return std::ranges::none_of(volume.successors, [this](replication::NodeId node) {
    const auto alive = manager::alive_node(parts_.view, node);
    return alive && alive->target;
  });
}

std::chrono::nanoseconds Handover::grace() const {
  return std::ranges::any_of(volumes_, &Volume::redirect) ? kRedirectGrace : kGrace;
}

void Handover::look() {
  const auto now = parts_.executor.monotonic_time();
  std::erase_if(volumes_, [this](const Volume& volume) {
    const bool left = !volume.redirect && parts_.sessions(volume.iqn) == 0;
    return left || (!served_elsewhere(volume) && hopeless(volume));
  });
  const bool all =
      std::ranges::all_of(volumes_, [this](const Volume& each) { return served_elsewhere(each); });
  if (all && !served_) served_ = now;
  const bool over =
      volumes_.empty() || (served_ ? now >= *served_ + grace() : now >= begun_ + kTakeover);
  if (over) return std::exchange(done_, {})();
  parts_.executor.after(kPoll, [this, alive = alive_] {
    if (*alive) look();
  });
}

}  // namespace mariner::node
