// The cluster's store on etcd 3.4 or later, through its JSON gateway over HTTP/1.1.
//
// Reads are linearizable ("Range" without "serializable", etcd's api_guarantees). Connections are
// not encrypted: etcd's client port belongs on the nodes' own network.
//
// Leases. A member that has lost its leadership without having noticed goes on renewing leases that
// its successor lets end (etcd issue 15247, mended in 3.4.29 and 3.5.11; Debian 12 has 3.4.23). So
// a keep-alive is three requests to one member: a linearizable read, the renewal, and another
// linearizable read; it counts only if all three tell of the same raft term. Then the leader that
// renewed the lease was the cluster's leader after it, and whoever leads next gives each lease its
// whole time anew. The other half of that issue cannot be mended from here: an old leader may still
// end a lease too early. So a lease alone fences nothing: epochs in transactions do.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <vector>

#include "proto/endpoint.h"
#include "proto/executor.h"
#include "server/manager/cluster_store.h"
#include "server/manager/etcd_calls.h"
#include "server/manager/etcd_members.h"

namespace boost::asio {
class io_context;
}

namespace mariner::manager {

struct EtcdStoreOptions {
  std::vector<Endpoint> endpoints;  // of the members' client URLs; at least one
  EtcdCallLimits calls{};
  std::size_t watches_max = 16;
  // A watch that has heard nothing for so long begins anew, at another member.
  std::chrono::milliseconds watch_silence = std::chrono::seconds(10);
};

class EtcdStore final : public ClusterStore {
 public:
  // Connects to nothing yet. `io` is run by the executor's thread; both outlive the store, and what
  // the store has posted to them.
  EtcdStore(boost::asio::io_context& io, Executor& executor, EtcdStoreOptions options);
  // No watch is left. What is under way is dropped.
  ~EtcdStore() override;
  EtcdStore(const EtcdStore&) = delete;
  EtcdStore& operator=(const EtcdStore&) = delete;

  void get(std::string key, Answer<Reading> answer) override;
  void list(std::string prefix, Answer<Listing> answer) override;
  void commit(Transaction transaction, Answer<CommitAnswer> answer) override;
  void grant_lease(std::chrono::seconds ttl, Answer<Lease> answer) override;
  void keep_alive(LeaseId lease, Answer<Lease> answer) override;
  void revoke(LeaseId lease, Answer<void> answer) override;
  [[nodiscard]] Result<std::unique_ptr<Watch>> watch(std::string prefix, Revision from,
                                                     Watcher& watcher) override;

 private:
  class WatchHandle;
  template <typename T>
  using Parse = UniqueFunction<Result<T>(const EtcdAttempt&)>;

  template <typename T>
  void refuse(Answer<T> answer, Error error);
  template <typename T>
  void run(std::vector<EtcdRequest> requests, Parse<T> parse, Answer<T> answer);
  struct Pages;
  void ask_page(EtcdRequest request, std::shared_ptr<Pages> pages);

  boost::asio::io_context& io_;
  Executor& executor_;
  EtcdStoreOptions options_;
  // Shared with what has been posted, which may come after the store.
  std::shared_ptr<EtcdMembers> members_;
  std::shared_ptr<EtcdCalls> calls_;
  std::size_t watches_ = 0;
  std::uint64_t watches_begun_ = 0;
};

}  // namespace mariner::manager
