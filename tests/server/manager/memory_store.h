// The cluster's store in memory, on a virtual clock: what other parts are tested with, and the
// model that real ones are compared with.
//
// A MemoryCluster is the state; each MemoryStore is one client of it, with faults of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/manager/cluster_store.h"
#include "tests/support/manual_executor.h"

namespace mariner::manager {

class MemoryStore;

class MemoryCluster {
 public:
  explicit MemoryCluster(test::ManualExecutor& executor) : executor_(executor) {}
  MemoryCluster(const MemoryCluster&) = delete;
  MemoryCluster& operator=(const MemoryCluster&) = delete;

  [[nodiscard]] Revision revision() const { return revision_; }
  [[nodiscard]] Reading get(const std::string& key) const;
  [[nodiscard]] Result<Listing> list(const std::string& prefix) const;
  [[nodiscard]] Result<CommitAnswer> commit(const Transaction& transaction);
  [[nodiscard]] Lease grant(std::chrono::seconds ttl);
  [[nodiscard]] Result<Lease> keep_alive(LeaseId id);
  [[nodiscard]] Result<void> revoke(LeaseId id);
  // Forgets the changes up to `revision`.
  void compact(Revision revision) { compacted_ = revision; }

  // The changes from `from` on; kOutsideWindow: some of them have been forgotten.
  [[nodiscard]] Result<std::vector<Change>> changes(const std::string& prefix, Revision from) const;

 private:
  friend class MemoryStore;
  struct Held {
    std::chrono::seconds ttl{0};
    std::chrono::nanoseconds end{0};
  };
  [[nodiscard]] bool holds(const Compare& compare) const;
  void end_when_due(LeaseId id);
  void remove(const std::string& key);
  void changed();

  test::ManualExecutor& executor_;
  Revision revision_{1};
  Revision compacted_;
  std::map<std::string, Entry> entries_;
  std::vector<Change> history_;
  std::map<LeaseId, Held> leases_;
  std::uint64_t last_lease_ = 0;
  std::vector<MemoryStore*> clients_;  // in the order in which they came: a seed tells all
};

class MemoryStore final : public ClusterStore {
 public:
  // What happens between this client and the cluster. May be changed at any time.
  struct Faults {
    std::chrono::nanoseconds delay = std::chrono::milliseconds(1);  // each way
    bool partitioned = false;    // nothing gets through, in either direction
    unsigned lose_requests = 0;  // so many of the next never arrive
    unsigned lose_answers = 0;   // so many of the next are carried out, and nobody is told
  };
  struct Limits {
    std::chrono::nanoseconds timeout = std::chrono::seconds(5);
    std::chrono::nanoseconds attempt_timeout = std::chrono::seconds(1);
  };

  // Both outlive the store.
  MemoryStore(test::ManualExecutor& executor, MemoryCluster& cluster, Limits limits);
  ~MemoryStore() override;
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  [[nodiscard]] const Faults& faults() const { return faults_; }
  void set_faults(Faults faults);

  void get(std::string key, Answer<Reading> answer) override;
  void list(std::string prefix, Answer<Listing> answer) override;
  void commit(Transaction transaction, Answer<CommitAnswer> answer) override;
  void grant_lease(std::chrono::seconds ttl, Answer<Lease> answer) override;
  void keep_alive(LeaseId lease, Answer<Lease> answer) override;
  void revoke(LeaseId lease, Answer<void> answer) override;
  [[nodiscard]] Result<std::unique_ptr<Watch>> watch(std::string prefix, Revision from,
                                                     Watcher& watcher) override;

 private:
  friend class MemoryCluster;
  class MemoryWatch;
  template <typename T>
  struct Call;
  template <typename T>
  void run(UniqueFunction<Result<T>()> work, bool repeatable, Answer<T> answer);
  template <typename T>
  void attempt(const std::shared_ptr<Call<T>>& call);
  template <typename T>
  void refuse(Answer<T> answer, Error error);
  void tell_watches();

  test::ManualExecutor& executor_;
  MemoryCluster& cluster_;
  Limits limits_;
  Faults faults_;
  std::vector<MemoryWatch*> watches_;  // ...
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::manager
