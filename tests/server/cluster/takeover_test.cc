// Two nodes that take a volume over from each other, with real connections between them: production
// parts over disks in memory. The store, and with it the leases, are on a virtual clock.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/server/cluster/storing_side.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using replication::NodeId;
using test::LoggedRig;
using State = TargetPart::State;

constexpr NodeId kOne{1};
constexpr NodeId kTwo{2};

// The logger is on the second node.
class TakeoverTest : public ::testing::Test {
 protected:
  TakeoverTest() {
    const manager::VolumeRecord record{kVolume, {}, kOne, kTwo, {kOne, kTwo}};
    EXPECT_TRUE(
        cluster_.commit({.puts = {{manager::volume_key(kVolume), manager::encode(record)}}}));
    volume::LoggedVolume::Options logged;
    logged.id = kVolume;
    logged.index = log_.index.shared();
    replication::LoggerRole::Start start;
    start.volume = kVolume;
    logger_.emplace(
        std::move(logged), start,
        LoggerPart::Parts{{log_.disks, log_.writer, log_.log_reader}, executor_, promises_});
  }
  ~TakeoverTest() override {
    for (auto* side : {&one_, &two_}) {
      if (*side) (*side)->close();
    }
    logger_->close(Error{ErrorCode::kUnavailable, "closing"});
    EXPECT_TRUE(run_until(
        [&] { return (!one_ || one_->idle()) && (!two_ || two_->idle()) && logger_->idle(); }));
  }
  void begin(std::optional<StoringSide>& side, NodeId id) {
    side.emplace(executor_, cluster_, rig_.node(id.value), id == kTwo ? &*logger_ : nullptr, kTwo);
  }
  // Real connections, and the virtual clock beside them. Two never serve at once.
  bool run_until(const std::function<bool()>& ended) {
    return rig_.run_until([&] {
      executor_.advance(5ms);
      EXPECT_FALSE(one_ && one_->serves() && two_ && two_->serves());
      return ended();
    });
  }
  std::string write(StoringSide& side, std::uint64_t block, char letter) {
    std::string answer;
    side.member.target->layer()->write({block * kBlockBytes, kBlockBytes},
                                       LoggedRig::blocks_of(letter, 1), [&](const Result<void>& r) {
                                         answer = r ? "done"
                                                    : std::string(error_code_name(r.error().code));
                                       });
    EXPECT_TRUE(run_until([&] { return !answer.empty(); }));
    return answer;
  }
  std::string read(StoringSide& side) {
    std::string text;
    side.member.target->layer()->read({0, 4 * kBlockBytes}, [&](const Result<PayloadSlice>& r) {
      text = r ? LoggedRig::text_of(r->bytes()) : std::string(error_code_name(r.error().code));
    });
    EXPECT_TRUE(run_until([&] { return !text.empty(); }));
    return text;
  }
  // Both storage nodes have everything.
  bool all_caught_up(const StoringSide& coordinator) {
    return run_until([&] {
      const auto* host = coordinator.member.target->coordinator();
      return host != nullptr && host->ready() && host->role().caught_up(kOne) &&
             host->role().caught_up(kTwo);
    });
  }

  ServiceRig rig_{2};
  LoggedRig log_{false};
  test::ManualExecutor& executor_ = log_.executor;
  manager::MemoryCluster cluster_{executor_};
  MemoryPromises promises_{executor_};
  std::optional<LoggerPart> logger_;
  std::optional<StoringSide> one_;
  std::optional<StoringSide> two_;
};

TEST_F(TakeoverTest, WhatOneAcknowledgedTheOtherServes) {
  begin(one_, kOne);
  executor_.advance(20ms);  // its lease is there first
  begin(two_, kTwo);
  ASSERT_TRUE(run_until([&] { return one_->serves(); }));
  EXPECT_EQ(write(*one_, 0, 'a'), "done");
  EXPECT_EQ(read(*one_), "a000");
  EXPECT_EQ(two_->member.target->state(), State::kStandby);
  EXPECT_EQ(read(*two_), "unavailable");
  EXPECT_EQ(write(*two_, 1, 'x'), "unavailable");

  one_->member.cut(true);
  ASSERT_TRUE(run_until([&] { return two_->serves(); }));
  EXPECT_EQ(read(*one_), "unavailable");
  EXPECT_EQ(write(*one_, 2, 'x'), "unavailable");
  EXPECT_EQ(read(*two_), "a000");
  EXPECT_EQ(write(*two_, 1, 'b'), "done");
  one_->member.cut(false);
  ASSERT_TRUE(run_until([&] { return one_->member.target->state() == State::kStandby; }));
  ASSERT_TRUE(all_caught_up(*two_));
  EXPECT_EQ(write(*two_, 2, 'c'), "done");

  two_->member.lease.stop([] {});
  ASSERT_TRUE(run_until([&] { return one_->serves(); }));
  EXPECT_EQ(read(*one_), "abc0");
  EXPECT_EQ(one_->member.epochs, (std::vector<std::uint64_t>{1, 3}));
  EXPECT_EQ(two_->member.epochs, std::vector<std::uint64_t>{2});
  for (const auto& node : rig_.nodes) EXPECT_TRUE(node->reports.empty());
}

}  // namespace
}  // namespace mariner::cluster
