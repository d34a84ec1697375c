// What a part of the shared store looks like, kept up to date: a listing, and a watch behind it.
//
// It may be behind the store; whoever acts on it commits with the revisions that it saw. Owner's
// thread only.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "proto/backoff.h"
#include "proto/executor.h"
#include "server/manager/cluster_store.h"

namespace mariner::manager {

class ClusterView final : private Watcher {
 public:
  // Both outlive it. `changed` is called whenever something has changed, and once when the first
  // listing is there; never from within a call. It may not destroy the view.
  ClusterView(ClusterStore& store, Executor& executor, std::string prefix, BackoffTimes backoff,
              UniqueFunction<void()> changed);
  ~ClusterView() override;
  ClusterView(const ClusterView&) = delete;
  ClusterView& operator=(const ClusterView&) = delete;

  // Null: there is no such entry, or nothing is known yet.
  [[nodiscard]] const Entry* find(const std::string& key) const;
  // Those whose keys begin with `prefix`, in the order of keys.
  template <typename Visitor>
  void visit(const std::string& prefix, Visitor visitor) const {
    for (auto at = entries_.lower_bound(prefix);
         at != entries_.end() && at->first.starts_with(prefix); ++at) {
      visitor(at->second);
    }
  }
  // A listing is there, and all that has changed since was told, or is going to be: not so while
  // what was missed is listed anew. (What was known before stays until then.)
  [[nodiscard]] bool known() const { return known_; }

 private:
  void list();
  void list_later();
  void changed(std::vector<Change> changes) override;
  void lost(Error why) override;

  ClusterStore& store_;
  Executor& executor_;
  const std::string prefix_;
  Backoff backoff_;
  UniqueFunction<void()> changed_;
  std::map<std::string, Entry> entries_;
  std::unique_ptr<Watch> watch_;
  bool known_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::manager
