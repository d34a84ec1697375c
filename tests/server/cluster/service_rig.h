// Nodes of a cluster in one thread, with real connections between them: services, and participants
// that keep everything in memory.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/cluster/caller_service.h"
#include "server/cluster/participant_service.h"
#include "tests/server/peer/peer_rig.h"
#include "tests/server/volume/asked_history.h"

namespace mariner::cluster {

inline constexpr VolumeId kVolume{7};

// A log in memory: every write is durable a turn later.
class MemoryLog final : public replication::ClusterLoggerParticipant,
                        public replication::PromiseStore {
 public:
  using Done = UniqueFunction<void(Result<void>)>;
  explicit MemoryLog(Executor& executor) : executor_(executor) {}

  void log(const replication::WriteMessage& message, Done done) override {
    writes.insert(message.stamp.sequence);
    finish(std::move(done));
  }
  void log_void(const replication::VoidMessage& /*message*/, Done done) override {
    finish(std::move(done));
  }
  void begin_anew(SequenceNumber, VersionTime, Done done) override { finish(std::move(done)); }
  void promise(VolumeId, Epoch epoch, VersionTime, Done done) override {
    promised = std::max(promised, epoch);
    finish(std::move(done));
  }

  std::set<SequenceNumber> writes;
  Epoch promised;

 private:
  void finish(Done done) {
    executor_.post([done = std::move(done)]() mutable { done({}); });
  }
  Executor& executor_;
};

// A storage in memory: what is committed, by its number. What it missed it takes from a log.
class MemoryStorage final : public replication::ClusterStorageParticipant,
                            public replication::PromiseStore {
 public:
  MemoryStorage(Executor& executor, const MemoryLog& log) : executor_(executor), log_(log) {}

  void prepare(const replication::WriteMessage& message) override {
    prepared_.insert(message.stamp.sequence);
  }
  void drop(const replication::VoidMessage& message) override {
    prepared_.erase(prepared_.lower_bound(message.first), prepared_.upper_bound(message.last));
  }
  void commit(SequenceNumber settled) override {
    const auto end = prepared_.upper_bound(settled);
    committed.insert(prepared_.begin(), end);
    prepared_.erase(prepared_.begin(), end);
  }
  void start_over(UniqueFunction<void()> done) override { done(); }
  void harden(UniqueFunction<void(Result<void>)> done) override { done({}); }
  void log_away(std::optional<SequenceNumber> /*since*/) override {}
  void log_lost() override {}
  void forget() override { prepared_.clear(); }
  void catch_up(SequenceNumber from, SequenceNumber to, SequenceNumber /*at*/,
                UniqueFunction<void()> done) override {
    ++caught_up;
    committed.insert(log_.writes.upper_bound(from), log_.writes.upper_bound(to));
    executor_.post([done = std::move(done)]() mutable { done(); });
  }
  void promise(VolumeId, Epoch, VersionTime, UniqueFunction<void(Result<void>)> done) override {
    executor_.post([done = std::move(done)]() mutable { done({}); });
  }

  std::set<SequenceNumber> committed;
  int caught_up = 0;

 private:
  Executor& executor_;
  const MemoryLog& log_;
  std::set<SequenceNumber> prepared_;
};

class ServiceRig {
 public:
  struct Node {
    Node(ServiceRig& rig, std::uint32_t id_in) : id{id_in}, caller(rig.loop.executor(), id) {}

    const replication::NodeId id;
    ParticipantService server;
    CallerService caller;
    std::unique_ptr<PeerBus> bus;
    std::vector<Error> reports;
  };

  // Each listens; all know each other. `interface`: of multicast; empty: there is none.
  explicit ServiceRig(std::uint32_t count, std::string interface = "")
      : interface_(std::move(interface)) {
    for (std::uint32_t i = 1; i <= count; ++i) nodes.push_back(std::make_unique<Node>(*this, i));
    std::vector<PeerAddress> known;
    for (const auto& node : nodes) {
      const std::string name = "n" + std::to_string(node->id.value);
      open(*node, known);
      known.push_back({node->id, name, node->bus->addresses()});
    }
    // The first ones do not know yet where the others listen.
    for (const auto& node : nodes) {
      std::vector<PeerAddress> others;
      for (const PeerAddress& each : known) {
        if (each.id != node->id) others.push_back(each);
      }
      const std::vector<Endpoint> addresses = node->bus->addresses();
      node->bus.reset();
      open(*node, others, addresses);
    }
  }
  Node& node(std::uint32_t id) { return *nodes[id - 1]; }
  bool run_until(const std::function<bool()>& ended) { return loop.run_until(ended); }

  const peer::test::TestCluster cluster{"north"};
  peer::test::Loop loop;
  std::vector<std::unique_ptr<Node>> nodes;

 private:
  void open(Node& node, std::vector<PeerAddress> others,
            std::vector<Endpoint> addresses = {{.address = "127.0.0.1", .port = 0}}) {
    node.bus = std::make_unique<PeerBus>(
        loop.environment(cluster.tls("n" + std::to_string(node.id.value))), std::move(others),
        node.caller, node.server, [&node](const Error& error) { node.reports.push_back(error); });
    node.bus->use_multicast({.interface = interface_, .to_own_machine = true}, {});
    EXPECT_TRUE(node.bus->listen(addresses));
    node.server.attach(*node.bus);
    node.caller.attach(*node.bus);
  }

  const std::string interface_;
};

}  // namespace mariner::cluster
