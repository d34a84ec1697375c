// A node's client of the shared store: the model in memory, whose answers reach the node only while
// it lives and does not stand still.
#pragma once

#include <memory>
#include <utility>

#include "server/manager/cluster_store.h"
#include "tests/server/manager/memory_store.h"
#include "tests/sim/cluster/sim_node.h"

namespace mariner::test {

class SimStore final : public manager::ClusterStore {
 public:
  SimStore(SimNode& node, manager::MemoryCluster& cluster)
      : node_(node), store_(node.world(), cluster, {}) {}

  [[nodiscard]] manager::MemoryStore& memory() { return store_; }

  void get(std::string key, Answer<manager::Reading> answer) override {
    store_.get(std::move(key), held<manager::Reading>(std::move(answer)));
  }
  void list(std::string prefix, Answer<manager::Listing> answer) override {
    store_.list(std::move(prefix), held<manager::Listing>(std::move(answer)));
  }
  void commit(manager::Transaction transaction, Answer<manager::CommitAnswer> answer) override {
    store_.commit(std::move(transaction), held<manager::CommitAnswer>(std::move(answer)));
  }
  void grant_lease(std::chrono::seconds ttl, Answer<manager::Lease> answer) override {
    store_.grant_lease(ttl, held<manager::Lease>(std::move(answer)));
  }
  void keep_alive(manager::LeaseId lease, Answer<manager::Lease> answer) override {
    store_.keep_alive(lease, held<manager::Lease>(std::move(answer)));
  }
  void revoke(manager::LeaseId lease, Answer<void> answer) override {
    store_.revoke(lease, held<void>(std::move(answer)));
  }
  [[nodiscard]] Result<std::unique_ptr<manager::Watch>> watch(std::string prefix,
                                                              manager::Revision from,
                                                              manager::Watcher& watcher) override {
    auto held = std::make_unique<HeldWatch>(node_, watcher);
    auto watch = store_.watch(std::move(prefix), from, *held);
    if (!watch) return watch.error();
    held->inner = std::move(*watch);
    return std::unique_ptr<manager::Watch>(std::move(held));
  }

 private:
  class HeldWatch final : public manager::Watch, public manager::Watcher {
   public:
    HeldWatch(SimNode& node, manager::Watcher& watcher) : node_(node), watcher_(watcher) {}
    ~HeldWatch() override { *alive_ = false; }
    void changed(std::vector<manager::Change> changes) override {
      node_.guarded([this, alive = alive_, changes = std::move(changes)]() mutable {
        if (*alive) watcher_.changed(std::move(changes));
      })();
    }
    void lost(Error why) override {
      node_.guarded([this, alive = alive_, why = std::move(why)]() mutable {
        if (*alive) watcher_.lost(std::move(why));
      })();
    }
    std::unique_ptr<manager::Watch> inner;

   private:
    SimNode& node_;
    manager::Watcher& watcher_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  };

  template <typename T>
  Answer<T> held(Answer<T> answer) {
    return [this, answer = std::move(answer)](Result<T> result) mutable {
      node_.guarded([answer = std::move(answer), result = std::move(result)]() mutable {
        answer(std::move(result));
      })();
    };
  }

  SimNode& node_;
  manager::MemoryStore store_;
};

}  // namespace mariner::test
