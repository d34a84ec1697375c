#include "uvfs/watch_sweep.h"

#include <utility>

#include "ifsck/each_once.h"
#include "proto/check.h"

namespace mariner::uvfs {

Result<void> WatchSweep::run(const Due& due) {
  const auto first = due({timelines_.stretch().first, timelines_.first_time()}, {});
  if (!first) return first;
  if (const auto taken = take_new_blocks(); !taken) return taken;
  while (!queue_.empty()) {
    if (!watch_.watches(queue_.top().block)) {
      queued_.erase(queue_.top().block.value);
      queue_.pop();
      continue;
    }
    if (ahead_ == 0) {
      if (const auto looked = look_ahead(); !looked) return looked;
    }
    const SequenceNumber at = queue_.top().at;
    std::vector<Lbn> written;
    for (; !queue_.empty() && queue_.top().at == at; queue_.pop()) {
      written.push_back(queue_.top().block);
    }
    ahead_ -= std::min(ahead_, written.size());
    const auto versions = timelines_.of(written.front(), SequenceNumber{at.value - 1}, at.next());
    CHECK(!versions.empty());
    const Instant instant{at, versions.front().time};
    const auto watchers = move_to(at, written);
    if (!watchers) return watchers.error();
    if (!watchers->empty()) {
      if (const auto done = due(instant, *watchers); !done) return done;
    }
    for (const Lbn each : written) {
      queued_.erase(each.value);
      if (watch_.watches(each)) push_next(each, at, queue_), queued_.insert(each.value);
    }
    if (const auto taken = take_new_blocks(); !taken) return taken;
  }
  return {};
}

Result<std::vector<WatchSweep::Watcher>> WatchSweep::move_to(SequenceNumber at,
                                                             std::span<const Lbn> written) {
  std::vector<std::byte> before(written.size() * kBlockBytes);
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto to = std::span(before).subspan(i * kBlockBytes, kBlockBytes);
    if (const auto read = blocks_.read({written[i], BlockCount{1}}, to); !read) return read.error();
  }
  blocks_.move_to(at);
  std::vector<std::byte> after(kBlockBytes);
  std::vector<Watcher> watchers;
  for (std::size_t i = 0; i < written.size(); ++i) {
    if (const auto read = blocks_.read({written[i], BlockCount{1}}, after); !read) {
      return read.error();
    }
    watch_.find(written[i], std::span(before).subspan(i * kBlockBytes, kBlockBytes), after,
                watchers);
  }
  ifsck::sort_each_once(watchers);
  return watchers;
}

Result<void> WatchSweep::take_new_blocks() {
  const std::vector<Lbn> all = watch_.take_new();
  if (all.empty()) return {};
  if (const auto loaded = timelines_.load(all); !loaded) return loaded;
  for (const Lbn each : all) {
    if (queued_.insert(each.value).second) push_next(each, blocks_.at(), queue_);
  }
  return {};
}

void WatchSweep::push_next(Lbn block, SequenceNumber behind, Queue& to) const {
  const auto later = timelines_.of(block, behind, kEndless);
  if (!later.empty()) to.push({later.front().sequence, block});
}

Result<void> WatchSweep::look_ahead() {
  Queue queue = queue_;
  std::vector<BlockTimelines::Question> questions;
  while (!queue.empty() && questions.size() < kAhead) {
    const Next next = queue.top();
    queue.pop();
    questions.push_back({next.block, next.at});
    push_next(next.block, next.at, queue);
  }
  ahead_ = questions.size();
  return blocks_.prefetch(questions);
}

}  // namespace mariner::uvfs
