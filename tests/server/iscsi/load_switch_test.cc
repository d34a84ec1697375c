#include "server/iscsi/load_switch.h"

#include <gtest/gtest.h>

namespace mariner::iscsi {
namespace {

using Time = LoadSwitch::Time;

class LoadSwitchTest : public testing::Test {
 protected:
  // Looks `times`, between which the thread has worked for `share` of the time.
  void work(double share, int times) {
    for (int i = 0; i < times; ++i) {
      now_ += LoadSwitch::kInterval;
      busy_ += Time(
          static_cast<Time::rep>(share * static_cast<double>(Time(LoadSwitch::kInterval).count())));
      ASSERT_TRUE(load_.due(now_));
      load_.look(now_, busy_);
    }
  }
  static constexpr int kLooksOfASecond = 40;

  Time now_ = std::chrono::hours(1000);
  Time busy_ = std::chrono::hours(1);
  LoadSwitch load_{0.75};
};

TEST_F(LoadSwitchTest, IsOnAfterTwoBusyLooksInARow) {
  EXPECT_FALSE(load_.on());
  work(0.5, 1);
  work(0.9, 1);
  work(0.5, 1);
  work(0.9, 1);
  EXPECT_FALSE(load_.on());
  work(0.9, 1);
  EXPECT_TRUE(load_.on());
}

TEST_F(LoadSwitchTest, StaysOnWithWhatTheOthersLeave) {
  work(0.75, 3);
  EXPECT_TRUE(load_.on());
  work(0.2, 10 * kLooksOfASecond);
  EXPECT_TRUE(load_.on());
}

TEST_F(LoadSwitchTest, IsOffAfterAQuietSecond) {
  work(1, 3);
  work(0.1, kLooksOfASecond - 1);
  work(0.5, 1);
  work(0.1, kLooksOfASecond - 1);
  EXPECT_TRUE(load_.on());
  work(0.1, 1);
  EXPECT_FALSE(load_.on());
}

TEST_F(LoadSwitchTest, WhoComesBackAfterALongTimeFindsItOff) {
  work(1, 3);
  EXPECT_TRUE(load_.on());
  now_ += std::chrono::hours(1);
  work(1, 1);
  EXPECT_FALSE(load_.on());
}

TEST_F(LoadSwitchTest, OneLookIsNoLoadThatLasts) {
  work(0.5, 1);
  now_ += std::chrono::hours(1);
  busy_ += std::chrono::hours(1);
  work(1, 1);
  EXPECT_FALSE(load_.on());
}

TEST_F(LoadSwitchTest, IsNotAskedMoreOftenThanItLooks) {
  work(0.5, 1);
  EXPECT_FALSE(load_.due(now_ + LoadSwitch::kInterval - Time(1)));
  EXPECT_TRUE(load_.due(now_ + LoadSwitch::kInterval));
}

TEST_F(LoadSwitchTest, AShareOfNothingIsAlwaysReached) {
  const LoadSwitch always(0);
  EXPECT_TRUE(always.on());
  EXPECT_FALSE(always.due(now_));
}

}  // namespace
}  // namespace mariner::iscsi
