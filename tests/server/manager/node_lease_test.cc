#include "server/manager/node_lease.h"

#include <gtest/gtest.h>

#include "tests/server/manager/memory_store.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;

class NodeLeaseTest : public ::testing::Test {
 protected:
  void cut(bool yes) {
    auto faults = store_.faults();
    faults.partitioned = yes;
    store_.set_faults(faults);
  }
  [[nodiscard]] bool shown() const { return cluster_.get("alive").entry.has_value(); }

  test::ManualExecutor executor_;
  MemoryCluster cluster_{executor_};
  MemoryStore store_{executor_, cluster_, {}};
  int gained_ = 0;
  int lost_ = 0;
  NodeLease lease_{store_,
                   executor_,
                   {.key = "alive", .value = "1"},
                   {.gained = [this] { ++gained_; }, .lost = [this] { ++lost_; }}};
};

TEST_F(NodeLeaseTest, IsHeldAsLongAsTheStoreAnswers) {
  EXPECT_FALSE(lease_.held());
  lease_.start();
  executor_.advance(100ms);
  EXPECT_TRUE(lease_.held());
  EXPECT_EQ(cluster_.get("alive").entry->lease, lease_.id());
  executor_.advance(60s);
  EXPECT_TRUE(lease_.held());
  EXPECT_EQ(gained_, 1);
  EXPECT_EQ(lost_, 0);
}

TEST_F(NodeLeaseTest, EndsHereBeforeItEndsInTheStore) {
  lease_.start();
  executor_.advance(10s);
  cut(true);
  while (lease_.held()) executor_.advance(1ms);
  EXPECT_TRUE(shown()) << "nobody else can have taken over yet";
  executor_.advance(1ms);
  EXPECT_EQ(lost_, 1);
  executor_.advance(1s);
  EXPECT_FALSE(shown());
  cut(false);
  executor_.advance(3s);
  EXPECT_TRUE(lease_.held());
  EXPECT_TRUE(shown());
  EXPECT_EQ(gained_, 2);
}

TEST_F(NodeLeaseTest, AShortSilenceOfTheStoreChangesNothing) {
  lease_.start();
  executor_.advance(10s);
  cut(true);
  executor_.advance(1300ms);
  cut(false);
  executor_.advance(10s);
  EXPECT_TRUE(lease_.held());
  EXPECT_EQ(lost_, 0);
}

TEST_F(NodeLeaseTest, WhatTheStoreHasEndedIsLostAtOnce) {
  lease_.start();
  executor_.advance(10s);
  ASSERT_TRUE(cluster_.revoke(lease_.id()).has_value());
  executor_.advance(1100ms);
  EXPECT_EQ(lost_, 1);
  executor_.advance(1s);
  EXPECT_TRUE(lease_.held());
}

TEST_F(NodeLeaseTest, WhereThereIsNoneNothingIsGivenBack) {
  bool answered = false;
  lease_.stop([&] { answered = true; });
  EXPECT_TRUE(answered);
}

TEST_F(NodeLeaseTest, GivingItBackEndsWhenTheStoreDoesNotAnswer) {
  lease_.start();
  executor_.advance(1s);
  cut(true);
  bool answered = false;
  lease_.stop([&] { answered = true; });
  executor_.advance(60s);
  EXPECT_TRUE(answered);
}

TEST_F(NodeLeaseTest, GivenBackItIsGoneForAll) {
  lease_.start();
  executor_.advance(1s);
  int answers = 0;
  lease_.stop([&] { ++answers; });
  EXPECT_FALSE(lease_.held());
  EXPECT_EQ(lost_, 1);
  EXPECT_EQ(answers, 0);
  executor_.advance(100ms);
  EXPECT_FALSE(shown());
  EXPECT_EQ(answers, 1);
  executor_.advance(10s);
  EXPECT_FALSE(lease_.held());
}

}  // namespace
}  // namespace mariner::manager
