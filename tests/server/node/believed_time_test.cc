#include "server/node/believed_time.h"

#include <gtest/gtest.h>

namespace mariner::node {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kDay = 86'400 * kSecond;
constexpr std::uint64_t kStart = 20'000 * kDay;

class BelievedTimeTest : public ::testing::Test {
 protected:
  // What is believed after so long, with the wall clock so far ahead of the other.
  std::uint64_t after(std::chrono::nanoseconds passed, std::int64_t ahead_ns,
                      bool at_once = false) {
    monotonic_ += passed;
    const std::uint64_t wall = kStart + static_cast<std::uint64_t>(monotonic_.count() + ahead_ns);
    return time_.at({wall}, monotonic_, at_once).ns - kStart -
           static_cast<std::uint64_t>(monotonic_.count());
  }
  BelievedTime time_;
  std::chrono::nanoseconds monotonic_{5s};
};

TEST_F(BelievedTimeTest, IsTheWallClocks) {
  EXPECT_EQ(after(0s, 0), 0u);
  EXPECT_EQ(after(1h, 0), 0u);
  EXPECT_EQ(after(1s, 5'000'000), 5'000'000u) << "as a clock is slewed";
  EXPECT_EQ(after(1s, 905'000'000), 905'000'000u);
}

TEST_F(BelievedTimeTest, AStepAheadIsBelievedWhenItLasts) {
  const auto day = static_cast<std::int64_t>(kDay);
  after(0s, 0);
  EXPECT_EQ(after(1s, day), 0u);
  EXPECT_EQ(after(1min, day), 0u);
  EXPECT_EQ(after(1s, 0), 0u) << "put right";
  EXPECT_EQ(after(1s, day), 0u) << "another one, which is not as old";
  EXPECT_EQ(after(119s, day), 0u);
  EXPECT_EQ(after(1s, day), kDay);
  EXPECT_EQ(after(1s, day), kDay);
}

TEST_F(BelievedTimeTest, AStepAheadIsBelievedWhereThereIsNoTime) {
  const auto day = static_cast<std::int64_t>(kDay);
  after(0s, 0);
  EXPECT_EQ(after(1s, day), 0u);
  EXPECT_EQ(after(1s, day, true), kDay);
  EXPECT_EQ(after(1s, day), kDay) << "nor is it taken back";
}

TEST_F(BelievedTimeTest, AStepBackCountsAtOnce) {
  after(0s, 0);
  const auto back = -static_cast<std::int64_t>(5 * kSecond);
  EXPECT_EQ(after(10s, back), static_cast<std::uint64_t>(back));
  EXPECT_EQ(after(10s, back), static_cast<std::uint64_t>(back));
}

}  // namespace
}  // namespace mariner::node
