#include "server/manager/serving_sign.h"

#include <gtest/gtest.h>

#include "tests/server/manager/memory_store.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;
using replication::NodeId;

constexpr VolumeId kVolume{1};

class ServingSignTest : public ::testing::Test {
 protected:
  struct Node {
    Node(test::ManualExecutor& executor, MemoryCluster& cluster, NodeId id)
        : store(executor, cluster, {}),
          lease(store, executor, {.key = alive_key(id), .value = ""}, {}),
          view(store, executor, std::string(kClusterPrefix), {}, [] {}),
          sign(store, lease, view, id, kVolume) {
      lease.start();
    }
    MemoryStore store;
    NodeLease lease;
    ClusterView view;
    ServingSign sign;
  };

  ServingSignTest() { executor_.advance(1s); }
  void record(std::uint64_t epoch, std::uint32_t coordinator) {
    const VolumeRecord record{kVolume, {epoch}, {coordinator}, {3}, {{1}, {2}}};
    ASSERT_TRUE(cluster_.commit({.puts = {{volume_key(kVolume), encode(record)}}}));
    executor_.advance(100ms);
  }
  // As the node's view says it.
  std::uint32_t server(const Node& node) {
    executor_.advance(100ms);
    return server_of(node.view, kVolume).value_or(NodeId{}).value;
  }

  test::ManualExecutor executor_;
  MemoryCluster cluster_{executor_};
  Node one_{executor_, cluster_, NodeId{1}};
  Node two_{executor_, cluster_, NodeId{2}};
};

TEST_F(ServingSignTest, IsSeenByOthersAsLongAsItsEpochGoesOn) {
  EXPECT_EQ(server(two_), 0u);
  record(4, 1);
  EXPECT_EQ(server(two_), 0u) << "who coordinates does not serve yet";
  one_.sign.look(std::nullopt);
  EXPECT_EQ(server(two_), 0u);
  one_.sign.look(Epoch{4});
  EXPECT_EQ(server(two_), 1u);
  EXPECT_EQ(server(one_), 1u);
  record(5, 2);
  EXPECT_EQ(server(one_), 0u);
  two_.sign.look(Epoch{5});
  EXPECT_EQ(server(one_), 2u);
}

TEST_F(ServingSignTest, GoesWithTheLease) {
  record(4, 1);
  one_.sign.look(Epoch{4});
  ASSERT_EQ(server(two_), 1u);
  one_.lease.stop([] {});
  EXPECT_EQ(server(two_), 0u);
  EXPECT_FALSE(cluster_.get(serving_key(kVolume)).entry.has_value());
  one_.sign.look(Epoch{4});
  EXPECT_EQ(server(two_), 0u) << "nothing is said without a lease";
  one_.lease.start();
  executor_.advance(100ms);
  one_.sign.look(Epoch{4});
  EXPECT_EQ(server(two_), 1u);
}

TEST_F(ServingSignTest, WhatCameLateIsWrittenOver) {
  record(5, 2);
  two_.sign.look(Epoch{5});
  ASSERT_EQ(server(one_), 2u);
  one_.sign.look(Epoch{4});
  EXPECT_EQ(server(one_), 0u);
  two_.sign.look(Epoch{5});
  EXPECT_EQ(server(one_), 2u);
}

TEST_F(ServingSignTest, IsWrittenOnceAndAgainWhenItWasLost) {
  record(4, 1);
  one_.store.set_faults({.partitioned = true});
  one_.sign.look(Epoch{4});
  executor_.advance(100ms);
  one_.store.set_faults({});
  executor_.advance(6s);
  one_.sign.look(Epoch{4});
  EXPECT_EQ(server(two_), 1u);
  const Revision revision = cluster_.get(serving_key(kVolume)).entry->revision;
  for (int i = 0; i < 10; ++i) {
    one_.sign.look(Epoch{4});
    executor_.advance(100ms);
  }
  EXPECT_EQ(cluster_.get(serving_key(kVolume)).entry->revision, revision);
}

TEST_F(ServingSignTest, NonsenseIsNobody) {
  record(4, 1);
  for (const char* bytes : {"\xff\xff\xff", "", "what is this"}) {
    ASSERT_TRUE(cluster_.commit({.puts = {{serving_key(kVolume), bytes}}}));
    EXPECT_EQ(server(two_), 0u);
  }
  record(0, 0);
  EXPECT_EQ(server(two_), 0u) << "an empty sign is not that of nobody";
}

TEST_F(ServingSignTest, MayGoWhileItIsSet) {
  auto sign = std::make_unique<ServingSign>(one_.store, one_.lease, one_.view, NodeId{1}, kVolume);
  sign->look(Epoch{4});
  sign.reset();
  executor_.advance(1s);
}

}  // namespace
}  // namespace mariner::manager
