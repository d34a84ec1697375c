#include "server/manager/node_lease.h"

#include <gtest/gtest.h>

#include <utility>

#include "tests/server/manager/memory_store.h"

namespace mariner::manager {
namespace {

using namespace std::chrono_literals;

// Whose timers run late.
class LateExecutor final : public Executor {
 public:
  explicit LateExecutor(Executor& inner) : inner_(inner) {}
  void set_late(std::chrono::nanoseconds by) { late_ = by; }

  void post(UniqueFunction<void()> work) override { inner_.post(std::move(work)); }
  void defer(UniqueFunction<void()> work) override { inner_.defer(std::move(work)); }
  void after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) override {
    inner_.after(delay, [this, work = std::move(work)]() mutable {
      if (late_.count() == 0) return work();
      inner_.after(late_, std::move(work));
    });
  }
  [[nodiscard]] VersionTime wall_time() const override { return inner_.wall_time(); }
  [[nodiscard]] std::chrono::nanoseconds monotonic_time() const override {
    return inner_.monotonic_time();
  }

 private:
  Executor& inner_;
  std::chrono::nanoseconds late_{0};
};

class NodeLeaseTest : public ::testing::Test {
 protected:
  void delay(std::chrono::nanoseconds each_way) {
    auto faults = store_.faults();
    faults.delay = each_way;
    store_.set_faults(faults);
  }
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

// A process that stood still: what the store has answered may be read before timers that are due.
TEST_F(NodeLeaseTest, WhatHadEndedIsNotHeldAgainBeforeItIsGained) {
  LateExecutor late(executor_);
  int gained = 0;
  int lost = 0;
  // (So that a renewal's last attempt falls between the two ends.)
  NodeLease lease(store_, late, {.key = "late", .value = "2", .renew_every = 700ms},
                  {.gained = [&] { ++gained; }, .lost = [&] { ++lost; }});
  lease.start();
  executor_.advance(10s);
  cut(true);
  executor_.advance(2s);
  late.set_late(300ms);
  while (lease.held()) executor_.advance(1ms);
  ASSERT_EQ(lost, 0) << "its timer is late";
  // A renewal is answered: the store has the lease still.
  cut(false);
  while (lost == 0) {
    executor_.advance(1ms);
    ASSERT_FALSE(lease.held());
  }
  late.set_late(0ms);
  executor_.advance(1s);
  EXPECT_TRUE(lease.held());
  EXPECT_EQ(gained, 2);
  EXPECT_EQ(lost, 1);
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

// What was sent to show a lease, and given up as lost, is carried out behind what shows the next.
TEST_F(NodeLeaseTest, OneThatIsShownLateTakesNothingFromTheNext) {
  lease_.start();
  executor_.advance(1ms);  // it is granted
  delay(1500ms);
  executor_.advance(1ms);  // it is being shown
  delay(1ms);
  executor_.advance(1200ms);
  ASSERT_TRUE(lease_.held());
  const LeaseId held = lease_.id();
  executor_.advance(600ms);
  ASSERT_TRUE(shown());
  EXPECT_EQ(cluster_.get("alive").entry->lease, held);
  executor_.advance(10s);
  EXPECT_TRUE(shown());
  EXPECT_TRUE(lease_.held());
  EXPECT_EQ(lease_.id(), held);
  EXPECT_EQ(lost_, 0);
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
