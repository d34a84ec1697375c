#include "server/volume/slow_release.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace mariner::volume {

void SlowRelease::add(std::vector<Payload> payloads) {
  if (waiting_.empty()) {
    waiting_ = std::move(payloads);
  } else {
    std::ranges::move(payloads, std::back_inserter(waiting_));
  }
  if (!waiting_.empty() && !std::exchange(goes_on_, true)) go_on();
}

void SlowRelease::go_on() {
  executor_.in_next_turn([this, alive = alive_] {
    if (!*alive) return;
    waiting_.resize(waiting_.size() - std::min(kEachTurn, waiting_.size()));
    goes_on_ = !waiting_.empty();
    if (goes_on_) return go_on();
    waiting_ = {};
  });
}

}  // namespace mariner::volume
