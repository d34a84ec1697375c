#include "server/node/kept_moments.h"

#include <gtest/gtest.h>

#include "tests/support/manual_executor.h"

namespace mariner::node {
namespace {

using namespace std::chrono_literals;

class KeptMomentsTest : public ::testing::Test {
 protected:
  struct Moment {
    std::uint64_t number;
    std::weak_ptr<const void> held;
  };
  Moment keep(const std::string& what) {
    const auto hold = std::make_shared<int>();
    return {kept_.keep(what, hold), hold};
  }
  test::ManualExecutor executor_;
  KeptMoments kept_{executor_, 10s};
};

TEST_F(KeptMomentsTest, AreHeldUntilTheLoggerHasHeard) {
  const Moment moment = keep("mark m");
  executor_.advance(1h);
  EXPECT_FALSE(moment.held.expired()) << "nobody was told yet";
  kept_.said(moment.number);
  executor_.advance(9s);
  EXPECT_FALSE(moment.held.expired());
  executor_.advance(1s);
  EXPECT_TRUE(moment.held.expired());
}

// A watch that hangs is noticed when it has been silent for so long, and no sooner; then it is
// begun anew, which takes a few attempts.
static_assert(time_to_hear(1s, 10s) >= 10s + 10s);
static_assert(time_to_hear(60s, 10s) >= 10s + 60s);

TEST_F(KeptMomentsTest, WhatIsTakenBackIsLetGoAtOnce) {
  const Moment taken = keep("mark m");
  const Moment other = keep("view v");
  kept_.said(taken.number);
  const std::uint64_t last = kept_.last();
  const Moment anew = keep("mark m");  // while the one before was being taken back
  kept_.taken_back("mark m", last);
  EXPECT_TRUE(taken.held.expired());
  EXPECT_FALSE(other.held.expired());
  EXPECT_FALSE(anew.held.expired());
  executor_.advance(10s);
  EXPECT_FALSE(anew.held.expired()) << "that was about the first one";
}

TEST_F(KeptMomentsTest, AreLetGoWithTheirOwner) {
  std::weak_ptr<const void> held;
  {
    KeptMoments kept(executor_, 10s);
    const auto hold = std::make_shared<int>();
    held = hold;
    kept.keep("mark m", hold);
  }
  EXPECT_TRUE(held.expired());
}

}  // namespace
}  // namespace mariner::node
