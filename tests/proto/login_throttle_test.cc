#include "proto/login_throttle.h"

#include <gtest/gtest.h>

namespace mariner {
namespace {

using namespace std::chrono_literals;

TEST(ThrottledAddress, LeavesOutWhatAHostMayChoose) {
  EXPECT_EQ(throttled_address("192.0.2.7:51234"), "192.0.2.7");
  EXPECT_EQ(throttled_address("[2001:db8::1]:3260"), "20010db800000000");
  EXPECT_EQ(throttled_address("[2001:db8::ffff:2]:99"), "20010db800000000");
  EXPECT_NE(throttled_address("[2001:db8:0:1::1]:3260"), throttled_address("[2001:db8::1]:3260"));
  EXPECT_EQ(throttled_address("[fe80::1%eth0]:3260"), "fe80000000000000");
}

class LoginThrottleTest : public ::testing::Test {
 protected:
  void fail(int times, std::string_view endpoint = "192.0.2.7:1",
            std::chrono::nanoseconds now = 100s) {
    for (int i = 0; i < times; ++i) throttle_.failed(endpoint, now);
  }
  LoginThrottle throttle_{{.failures_max = 20, .failures_per_s = 1, .addresses_max = 3}};
};

TEST_F(LoginThrottleTest, SomeFailuresAreNoMatter) {
  fail(20);
  EXPECT_EQ(throttle_.wait("192.0.2.7:2", 100s), 0s);
}

TEST_F(LoginThrottleTest, WhoFailsOftenWaits) {
  fail(23);
  EXPECT_EQ(throttle_.wait("192.0.2.7:2", 100s), 3s);
  EXPECT_EQ(throttle_.wait("192.0.2.8:2", 100s), 0s) << "others are unharmed";
  EXPECT_EQ(throttle_.wait("192.0.2.7:2", 102s), 1s);
  EXPECT_EQ(throttle_.wait("192.0.2.7:2", 103s), 0s);
  throttle_.failed("192.0.2.7:2", 103s);
  EXPECT_EQ(throttle_.wait("192.0.2.7:2", 103s), 1s);
}

TEST_F(LoginThrottleTest, RemembersABoundedNumber) {
  fail(30, "192.0.2.1:1", 100s);
  fail(30, "192.0.2.2:1", 101s);
  fail(30, "192.0.2.3:1", 102s);
  fail(30, "192.0.2.4:1", 103s);
  EXPECT_EQ(throttle_.wait("192.0.2.1:1", 103s), 0s) << "forgotten";
  EXPECT_GT(throttle_.wait("192.0.2.2:1", 103s), 0s);
  EXPECT_GT(throttle_.wait("192.0.2.4:1", 103s), 0s);
}

}  // namespace
}  // namespace mariner
