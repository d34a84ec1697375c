// What a storage keeps of its headway, so that the next start goes on where this one was.
//
// Every block that is not in the backlog is in the image, durably, as of applied_ or later: so the
// statement is of applied_, and what is left is what of the backlog it reaches.
#include <algorithm>
#include <utility>

#include "server/volume/storage.h"

namespace mariner::volume {
namespace {

// Between two times that the headway is kept, so many times as long as that took, at least.
constexpr int kHeadwayRest = 20;

}  // namespace

void Storage::reach(Lbn through) {
  const Lbn from = headway_.through();
  if (!events_.headway || through <= from || headway_.full()) return;
  headway_.reach(through);
  backlog_.visit(BlockRange::between(from, through),
                 [this](BlockRange range, const PendingContent* content) {
                   if (content != nullptr) headway_.lacks(range);
                 });
}

// Now and then, and the first time when something was fetched: so the shortest life between two
// crashes gets on. At once when nothing is left. (What a start found is not in the backlog yet when
// it begins.)
void Storage::tell_headway() {
  if (backlog_.empty() && durable_ >= headway_.as_of()) {
    headway_.forget();
  } else if (executor_.monotonic_time() < headway_again_) {
    return;
  }
  keep_headway();
}

void Storage::keep_headway() {
  if (!events_.headway || keeping_headway_) return;
  std::optional<Headway::Change> change =
      headway_.take_change(applied_, restoring_ ? restoring_->bytes : 0);
  if (!change) return;
  const std::chrono::nanoseconds begun = executor_.monotonic_time();
  keeping_headway_ = true;
  events_.headway(*std::move(change), [this, begun](const Result<void>& kept) {
    keeping_headway_ = false;
    const std::chrono::nanoseconds took = executor_.monotonic_time() - begun;
    headway_again_ = begun + std::max(options_.headway_every, kHeadwayRest * took);
    if (!kept) return headway_.keep_anew();
    if (!stopped_) tell_headway();
  });
}

}  // namespace mariner::volume
