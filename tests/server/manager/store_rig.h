// A store under test, with its clock: two clients of one cluster, in memory or on real etcd.
#pragma once

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/manager/etcd_connection.h"
#include "server/manager/etcd_store.h"
#include "tests/server/iscsi/asio_executor.h"
#include "tests/server/manager/etcd_cluster.h"
#include "tests/server/manager/memory_store.h"

namespace mariner::manager {

class StoreRig {
 public:
  virtual ~StoreRig() = default;
  [[nodiscard]] virtual ClusterStore& store() = 0;
  [[nodiscard]] virtual ClusterStore& other() = 0;  // another client
  [[nodiscard]] virtual Executor& executor() = 0;
  // Lets time pass until `holds`, or for `limit`. Whether it holds.
  virtual bool wait(const std::function<bool()>& holds, std::chrono::milliseconds limit) = 0;
  // Forgets the history up to `revision`.
  virtual void compact(Revision revision) = 0;

  void pass(std::chrono::milliseconds time) {
    wait([] { return false; }, time);
  }

  // Calls that are waited for.
  template <typename T, typename Begin>
  Result<T> ask(Begin begin) {
    std::optional<Result<T>> result;
    begin([&result](Result<T> answer) { result.emplace(std::move(answer)); });
    EXPECT_FALSE(result.has_value());  // never from within a call
    if (!wait([&] { return result.has_value(); }, std::chrono::seconds(15))) {
      return Error{ErrorCode::kAborted, "no answer at all"};
    }
    return std::move(*result);
  }
  Result<Reading> get(const std::string& key) {
    return ask<Reading>([&](auto answer) { store().get(key, std::move(answer)); });
  }
  Result<Listing> list(const std::string& prefix) {
    return ask<Listing>([&](auto answer) { store().list(prefix, std::move(answer)); });
  }
  Result<CommitAnswer> commit(Transaction transaction) {
    return ask<CommitAnswer>(
        [&](auto answer) { store().commit(std::move(transaction), std::move(answer)); });
  }
  Result<CommitAnswer> put(const std::string& key, const std::string& value, LeaseId lease = {}) {
    return commit({.puts = {{key, value, lease}}});
  }
  Result<Lease> grant(std::chrono::seconds ttl) {
    return ask<Lease>([&](auto answer) { store().grant_lease(ttl, std::move(answer)); });
  }
  Result<Lease> keep_alive(LeaseId lease) {
    return ask<Lease>([&](auto answer) { store().keep_alive(lease, std::move(answer)); });
  }
  Result<void> revoke(LeaseId lease) {
    return ask<void>([&](auto answer) { store().revoke(lease, std::move(answer)); });
  }
};

class MemoryRig final : public StoreRig {
 public:
  ClusterStore& store() override { return store_; }
  ClusterStore& other() override { return other_; }
  Executor& executor() override { return executor_; }
  bool wait(const std::function<bool()>& holds, std::chrono::milliseconds limit) override {
    for (auto left = limit; left.count() > 0 && !holds(); --left) {
      executor_.advance(std::chrono::milliseconds(1));
    }
    return holds();
  }
  void compact(Revision revision) override { cluster_.compact(revision); }
  MemoryStore& memory() { return store_; }

 private:
  test::ManualExecutor executor_;
  MemoryCluster cluster_{executor_};
  MemoryStore store_{executor_, cluster_, {}};
  MemoryStore other_{executor_, cluster_, {}};
};

class EtcdRig final : public StoreRig {
 public:
  explicit EtcdRig(EtcdStoreOptions options)
      : options_(options), store_(io_, executor_, options), other_(io_, executor_, options) {}
  ClusterStore& store() override { return store_; }
  ClusterStore& other() override { return other_; }
  Executor& executor() override { return executor_; }
  bool wait(const std::function<bool()>& holds, std::chrono::milliseconds limit) override {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!holds() && std::chrono::steady_clock::now() < end) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(5));
    }
    return holds();
  }
  void compact(Revision revision) override {
    const auto answer =
        call(options_.endpoints[0],
             {"/v3/kv/compaction", "{\"revision\":\"" + std::to_string(revision.value) + "\"}"});
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->status, 200u);
  }
  // One request to one member, past the store.
  Result<EtcdAnswer> call(const Endpoint& endpoint, EtcdRequest request) {
    std::optional<Result<EtcdAnswer>> result;
    const auto connection = std::make_shared<EtcdConnection>(io_, endpoint);
    connection->exchange(std::move(request),
                         {.connect = std::chrono::seconds(2), .answer = std::chrono::seconds(2)},
                         [&result](EtcdExchange exchange) { result = std::move(exchange.answer); });
    wait([&] { return result.has_value(); }, std::chrono::seconds(5));
    connection->close();
    return std::move(*result);
  }
  // Until the cluster answers: members take a second to elect a leader.
  bool ready() {
    for (int i = 0; i < 8; ++i) {
      if (get("ready")) return true;
    }
    return false;
  }
  // Which of the members leads.
  std::size_t leader() {
    for (std::size_t i = 0; i < options_.endpoints.size(); ++i) {
      const auto status = call(options_.endpoints[i], {"/v3/maintenance/status", "{}"});
      if (!status) continue;
      const auto value = [&](const std::string& name) {
        const auto begin = status->body.find("\"" + name + "\":\"") + name.size() + 4;
        return status->body.substr(begin, status->body.find('"', begin) - begin);
      };
      if (value("member_id") == value("leader")) return i;
    }
    ADD_FAILURE() << "nobody leads";
    return 0;
  }
  boost::asio::io_context& io() { return io_; }

 private:
  boost::asio::io_context io_{1};
  iscsi::AsioExecutor executor_{io_};
  EtcdStoreOptions options_;
  EtcdStore store_;
  EtcdStore other_;
};

// Remembers what it is told.
struct Recorder final : Watcher {
  void changed(std::vector<Change> told) override {
    for (Change& change : told) changes.push_back(std::move(change));
    if (on_change) on_change();
  }
  void lost(Error error) override { why = std::move(error); }

  std::vector<Change> changes;
  std::optional<Error> why;
  std::function<void()> on_change;
};

}  // namespace mariner::manager
