#include "replication/image_health.h"

#include <gtest/gtest.h>

namespace mariner::replication {
namespace {

using namespace std::chrono_literals;

const Error kUnwritable{ErrorCode::kIo, "the disk is broken"};

class ImageHealthTest : public ::testing::Test {
 protected:
  // Every second, from `from` on, until it has failed.
  std::chrono::nanoseconds fail_from(std::chrono::nanoseconds from) {
    while (!health_.failed(kUnwritable, from)) from += 1s;
    return from;
  }

  ImageHealth health_{
      {.failures_min = 3, .failing_min = 10s, .rest_min = 15s, .rest_max = 50s, .sound_after = 1h}};
};

TEST_F(ImageHealthTest, ItHasFailedWhenItFailsAgainAndAgainForAWhile) {
  for (int at = 0; at < 10; ++at) EXPECT_FALSE(health_.failed(kUnwritable, 1s * at)) << at;
  EXPECT_FALSE(health_.failure());
  EXPECT_TRUE(health_.failed(kUnwritable, 10s));
  ASSERT_TRUE(health_.failure());
  EXPECT_EQ(health_.failure()->message, kUnwritable.message);
  EXPECT_EQ(health_.rest(), 15s);
  EXPECT_FALSE(health_.failed(kUnwritable, 11s)) << "that is known";
}

TEST_F(ImageHealthTest, FewErrorsAreNoneHoweverLongTheyTake) {
  EXPECT_FALSE(health_.failed(kUnwritable, 0s));
  EXPECT_FALSE(health_.failed(kUnwritable, 30s));
  EXPECT_TRUE(health_.failed(kUnwritable, 60s));
}

TEST_F(ImageHealthTest, WhatWorksEndsARow) {
  for (int at = 0; at < 10; ++at) EXPECT_FALSE(health_.failed(kUnwritable, 1s * at));
  EXPECT_FALSE(health_.worked(10s)) << "it had not failed";
  EXPECT_FALSE(health_.failed(kUnwritable, 11s));
  EXPECT_EQ(fail_from(12s), 21s);
  EXPECT_TRUE(health_.worked(30s));
  EXPECT_FALSE(health_.failure());
}

// A disk that comes and goes.
TEST_F(ImageHealthTest, ItIsLeftAloneForLongerEachTime) {
  auto now = fail_from(0s);
  for (const auto rest : {30s, 50s, 50s}) {
    now += health_.rest();
    health_.try_again(now);
    EXPECT_FALSE(health_.failure());
    EXPECT_TRUE(health_.failed(kUnwritable, now + 2s)) << "one error is enough";
    EXPECT_EQ(health_.rest(), rest);
  }
  now += 10min;
  EXPECT_TRUE(health_.worked(now));
  fail_from(now + 1h);
  EXPECT_EQ(health_.rest(), 15s) << "it failed when an hour was over";
}

TEST_F(ImageHealthTest, OneThatWorksAgainIsSoundOnlyInTime) {
  auto now = fail_from(0s) + 15s;
  health_.try_again(now);
  EXPECT_FALSE(health_.worked(now + 2s));
  EXPECT_FALSE(health_.failed(kUnwritable, now + 20s)) << "it is tried no more";
  fail_from(now + 21s);
  EXPECT_EQ(health_.rest(), 30s);
}

}  // namespace
}  // namespace mariner::replication
