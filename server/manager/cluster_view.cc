#include "server/manager/cluster_view.h"

#include <utility>

namespace mariner::manager {

ClusterView::ClusterView(ClusterStore& store, Executor& executor, std::string prefix,
                         BackoffTimes backoff, UniqueFunction<void()> changed)
    : store_(store),
      executor_(executor),
      prefix_(std::move(prefix)),
      backoff_(backoff),
      changed_(std::move(changed)) {
  list();
}

ClusterView::~ClusterView() { *alive_ = false; }

const Entry* ClusterView::find(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

void ClusterView::list() {
  store_.list(prefix_, [this, alive = alive_](const Result<Listing>& listing) {
    if (!*alive) return;
    if (!listing) return list_later();
    auto watch = store_.watch(prefix_, listing->revision.next(), *this);
    if (!watch) return list_later();
    watch_ = std::move(*watch);
    backoff_.succeeded();
    entries_.clear();
    for (const Entry& entry : listing->entries) entries_[entry.key] = entry;
    known_ = true;
    changed_();
  });
}

void ClusterView::list_later() {
  executor_.after(backoff_.next(), [this, alive = alive_] {
    if (*alive) list();
  });
}

void ClusterView::changed(std::vector<Change> changes) {
  for (Change& change : changes) {
    if (change.deleted) {
      entries_.erase(change.entry.key);
    } else {
      const std::string key = change.entry.key;
      entries_[key] = std::move(change.entry);
    }
  }
  changed_();
}

void ClusterView::lost(Error /*why*/) {
  watch_.reset();
  known_ = false;
  list_later();
}

}  // namespace mariner::manager
