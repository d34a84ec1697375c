#include "replication/version_clock.h"

#include <gtest/gtest.h>

namespace mariner::replication {
namespace {

TEST(VersionClock, FollowsTheWallClockAndNeverGoesBack) {
  VersionClock clock;
  EXPECT_EQ(clock.next(VersionTime{1000}), VersionTime{1000});
  EXPECT_EQ(clock.next(VersionTime{1000}), VersionTime{1001}) << "the same instant";
  EXPECT_EQ(clock.next(VersionTime{500}), VersionTime{1002}) << "the wall clock was stepped back";
  EXPECT_EQ(clock.next(VersionTime{2000}), VersionTime{2000});
  EXPECT_EQ(clock.last(), VersionTime{2000});
}

TEST(VersionClock, IsAboveWhatItWasRaisedTo) {
  VersionClock clock;
  clock.raise(VersionTime{700});
  clock.raise(VersionTime{600});
  EXPECT_EQ(clock.last(), VersionTime{700});
  EXPECT_EQ(clock.next(VersionTime{100}), VersionTime{701});
}

}  // namespace
}  // namespace mariner::replication
