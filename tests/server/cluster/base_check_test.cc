#include "server/cluster/base_check.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/server/cluster/letters_base.h"
#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using test::AskedHistory;
using test::LoggedRig;
using volume::History;
using volume::PastRun;

constexpr BlockCount kBlocks{100'000};

// A logger that calls blocks 4 to 7 base, and has written to 6 and 7 since.
class BaseCheckTest : public ::testing::Test {
 protected:
  BaseCheckTest() {
    rig_.base.add({{4}, {4}});
    rig_.write(1, {{5}, {1}}, 'a');
    rig_.capture({{5}, {1}}, 'f');
    rig_.write(2, {{6}, {1}}, 'b');
    rig_.write(3, {{7}, {1}}, 0, replication::WriteKind::kZero);
  }
  // Before all of it: letters, '.' for what is base still.
  std::string past() {
    Payload to = Payload::zeroed(4 * kBlockBytes);
    std::string out = "nothing";
    rig_.history.read({{4}, {4}}, {0}, to.bytes(), [&](const Result<std::vector<BlockRange>>& in) {
      out = LoggedRig::text_of(to.bytes());
      for (const BlockRange& each : *in) {
        out.replace(each.first.value - 4, each.count.value, each.count.value, '.');
      }
    });
    rig_.executor.run_ready();
    return out;
  }
  BaseCheck::Parts parts() { return {rig_.history, other_, rig_.executor}; }

  LoggedRig rig_{false};
  test::LettersBase other_;
};

TEST_F(BaseCheckTest, TheBaseOfWhatTheImageHasBeyondItIsLoggedFromTheOtherOne) {
  BaseCheck check(parts(), kBlocks, {3});
  rig_.executor.advance(5s);
  EXPECT_FALSE(check.over());
  EXPECT_TRUE(other_.asked.empty()) << "the log may not be asked yet";
  check.go_on(true);
  EXPECT_FALSE(check.over());
  rig_.executor.run_ready();
  EXPECT_TRUE(check.over());
  EXPECT_TRUE(check.idle());
  EXPECT_EQ(past(), ".fGH");
  EXPECT_EQ(other_.asked, (std::vector<BlockRange>{{{6}, {2}}}));
}

TEST_F(BaseCheckTest, WhatTheImageLacksHasItsBaseThereStill) {
  other_.good = false;
  BaseCheck check(parts(), kBlocks, {1});
  check.go_on(true);
  rig_.executor.run_ready();
  EXPECT_TRUE(check.over()) << "as most images: nothing is lost";
  EXPECT_TRUE(other_.asked.empty());
  EXPECT_EQ(past(), ".f..");
}

TEST_F(BaseCheckTest, TheOtherImageIsWaitedFor) {
  other_.good = false;
  BaseCheck check(parts(), kBlocks, {3});
  check.go_on(true);
  rig_.executor.advance(5s);
  EXPECT_FALSE(check.over());
  EXPECT_EQ(other_.asked.size(), 6u) << "every second";
  check.go_on(false);
  rig_.executor.advance(5s);
  EXPECT_EQ(other_.asked.size(), 6u);
  EXPECT_TRUE(check.idle());
  other_.good = true;
  check.go_on(true);
  rig_.executor.run_ready();
  EXPECT_TRUE(check.over());
  EXPECT_EQ(past(), ".fGH");
}

TEST_F(BaseCheckTest, AnImageThatIsEmptiedHoldsNobodysBase) {
  BaseCheck check(parts(), kBlocks, {3});
  check.give_up();
  check.go_on(true);
  rig_.executor.run_ready();
  EXPECT_TRUE(check.over());
  EXPECT_EQ(past(), ".f..");
}

TEST(BaseCheckOfMuch, LooksAtAPartAtATime) {
  test::ManualExecutor executor;
  AskedHistory log;
  test::LettersBase other;
  BaseCheck check({log, other, executor}, BlockCount{150'000}, {3});
  check.go_on(true);
  const auto answer = [&] {
    AskedHistory::Locate asked = AskedHistory::next(log.locates);
    History::Located zeros;
    for (const History::Lookup& each : asked.lookups) {
      zeros.runs.push_back({each.range, PastRun::Source::kZero, false, {}});
    }
    asked.done(std::move(zeros));
    executor.run_ready();
  };
  answer();
  AskedHistory::next(log.locates).done(Error{ErrorCode::kUnavailable, "away"});
  EXPECT_TRUE(check.idle());
  executor.advance(1s);
  ASSERT_EQ(log.locates.size(), 1u);
  EXPECT_EQ(log.locates.front().lookups[0].range, (BlockRange{{65'536}, {65'536}})) << "once more";
  EXPECT_EQ(log.locates.front().lookups[0].at, SequenceNumber{3});
  EXPECT_EQ(log.locates.front().lookups[1].at, SequenceNumber{0});
  answer();
  EXPECT_EQ(log.locates.front().lookups[0].range.end(), Lbn{150'000});
  EXPECT_FALSE(check.over());
  answer();
  EXPECT_TRUE(check.over());
}

TEST(BaseCheckOfMuch, KnowsNoMoreOnceItIsClosed) {
  test::ManualExecutor executor;
  AskedHistory log;
  test::LettersBase other;
  BaseCheck check({log, other, executor}, BlockCount{16}, {3});
  check.go_on(true);
  check.close();
  EXPECT_FALSE(check.idle());
  AskedHistory::next(log.locates)
      .done(History::Located{{{{{0}, {16}}, PastRun::Source::kLog, false, {}},
                              {{{0}, {16}}, PastRun::Source::kBase, false, {}}},
                             {}});
  executor.run_ready();
  EXPECT_TRUE(check.idle());
  EXPECT_FALSE(check.over());
  EXPECT_TRUE(other.asked.empty());
}

}  // namespace
}  // namespace mariner::cluster
