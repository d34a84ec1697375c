#include "trm-multicast/membership.h"

#include <gtest/gtest.h>

namespace mariner::trm {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A receiver that reports what multicast brings it; time goes on by 100 ms.
class MembershipTest : public ::testing::Test {
 protected:
  void pass(int probes, std::uint64_t bytes = 0) {
    now_ += milliseconds(100);
    report_.probes += probes;
    report_.bytes += bytes + 100 * static_cast<std::uint64_t>(probes);
    report_.clock = now_;
    member_.reported(report_, now_);
  }
  void admit() {
    for (int i = 0; i < 4; ++i) pass(1);
    ASSERT_TRUE(member_.ready(now_));
    member_.admitted(sent_, now_);
  }
  std::optional<Dismissal> fault(bool lacks = false, bool lags = false) {
    return member_.fault({.sent = sent_, .lacks = lacks, .lags = lags}, now_);
  }

  const Membership::Options options_{};
  Membership member_{options_};
  Report report_{};
  std::chrono::nanoseconds now_ = seconds(1000);
  std::uint64_t sent_ = 5000;
};

TEST_F(MembershipTest, WhoGotFourProbesInARowIsReady) {
  EXPECT_FALSE(member_.ready(now_));
  for (int i = 0; i < 3; ++i) {
    pass(1);
    EXPECT_FALSE(member_.ready(now_));
  }
  pass(1);
  EXPECT_TRUE(member_.ready(now_));
}

TEST_F(MembershipTest, ProbesOfLongAgoAreNoRow) {
  for (int i = 0; i < 3; ++i) pass(1);
  now_ += seconds(1);
  pass(1);
  EXPECT_FALSE(member_.ready(now_));
  for (int i = 0; i < 3; ++i) pass(1);
  EXPECT_TRUE(member_.ready(now_));
  now_ += seconds(1);
  EXPECT_FALSE(member_.ready(now_));
}

TEST_F(MembershipTest, ReportsAloneSayNothing) {
  for (int i = 0; i < 20; ++i) pass(0);
  EXPECT_FALSE(member_.ready(now_));
}

TEST_F(MembershipTest, WhoIsSentNothingIsNotDeaf) {
  admit();
  for (int i = 0; i < 50; ++i) {
    pass(0);
    EXPECT_EQ(fault(), std::nullopt);
  }
}

TEST_F(MembershipTest, WhoHearsNothingOfWhatIsSentIsDeafAfterAWhile) {
  admit();
  sent_ += 1000;
  EXPECT_EQ(fault(), std::nullopt);
  pass(0);
  pass(0);
  pass(0);
  EXPECT_EQ(fault(), std::nullopt);
  pass(0);
  EXPECT_EQ(fault(), Dismissal::kDeaf);
  EXPECT_NE(describe(Dismissal::kDeaf).find("does not get through"), std::string::npos);
}

TEST_F(MembershipTest, WhoHearsSomethingOnceInAWhileIsNotDeaf) {
  admit();
  for (int i = 0; i < 40; ++i) {
    sent_ += 1000;
    pass(0, i % 3 == 0 ? 100 : 0);
    EXPECT_EQ(fault(), std::nullopt) << i;
  }
}

TEST_F(MembershipTest, WhoLacksSomethingAndGetsNoFurtherIsStuck) {
  admit();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(fault(true), std::nullopt);
    pass(0, 10);
    sent_ += 10;
  }
  EXPECT_EQ(fault(true), Dismissal::kStuck);
}

TEST_F(MembershipTest, WhoGetsOnIsNotStuck) {
  admit();
  for (int i = 0; i < 50; ++i) {
    report_.through.value += 1;
    sent_ += 10;
    pass(0, 10);
    EXPECT_EQ(fault(true), std::nullopt);
  }
}

TEST_F(MembershipTest, WhoIsStillHandedWhatStandsBeforeItIsNotStuck) {
  admit();
  for (int i = 0; i < 50; ++i) {
    report_.frames += 1;
    sent_ += 10;
    pass(0, 10);
    EXPECT_EQ(fault(true), std::nullopt);
  }
}

TEST_F(MembershipTest, WhoseConnectionMovesIsStuckOnlyAfterLong) {
  admit();
  const auto since = now_;
  std::optional<Dismissal> why;
  while (!why && now_ - since < seconds(60)) {
    sent_ += 10;
    pass(0, 10);
    why = member_.fault({.sent = sent_, .lacks = true, .moves = true}, now_);
  }
  EXPECT_EQ(why, Dismissal::kStuck);
  EXPECT_GE(now_ - since, options_.stuck_moving_max);
  EXPECT_LE(now_ - since, options_.stuck_moving_max + seconds(1));
}

TEST_F(MembershipTest, WhoLagsWaitsLongerEachTime) {
  std::chrono::nanoseconds before{};
  for (int round = 0; round < 8; ++round) {
    while (!member_.ready(now_)) pass(1);
    member_.admitted(sent_, now_);
    ASSERT_EQ(fault(false, true), Dismissal::kSlow);
    member_.dismissed(true, now_);
    const auto since = now_;
    while (!member_.ready(now_)) pass(1);
    EXPECT_GE(now_ - since, options_.again_min);
    EXPECT_LE(now_ - since, options_.again_max + seconds(1));
    EXPECT_TRUE(now_ - since >= before * 3 / 2 || before >= options_.again_max / 2) << round;
    before = now_ - since;
  }
}

TEST_F(MembershipTest, WhoNeverCameInWaitsLongerEachTimeToo) {
  for (auto wait = options_.again_min; wait <= options_.again_max; wait *= 2) {
    member_.dismissed(true, now_);
    now_ += wait - milliseconds(1);
    EXPECT_FALSE(member_.may_come_back(now_));
    now_ += milliseconds(1);
    EXPECT_TRUE(member_.may_come_back(now_));
  }
}

TEST_F(MembershipTest, WhoDidWellForLongIsForgiven) {
  for (int i = 0; i < 4; ++i) member_.dismissed(true, now_);
  now_ += options_.again_max;
  admit();
  now_ += options_.again_max;
  member_.dismissed(true, now_);
  EXPECT_TRUE(member_.may_come_back(now_ + options_.again_min));
}

TEST_F(MembershipTest, WhoWasDeafIsBackAsSoonAsProbesAreInARow) {
  admit();
  member_.dismissed(false, now_);
  EXPECT_FALSE(member_.ready(now_));
  for (int i = 0; i < 4; ++i) pass(1);
  EXPECT_TRUE(member_.ready(now_));
}

}  // namespace
}  // namespace mariner::trm
