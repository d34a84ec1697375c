#include "server/node/window_shortening.h"

#include <gtest/gtest.h>

namespace mariner::node {
namespace {

constexpr VolumeId kDb{1};
constexpr VolumeId kWeb{2};

TEST(WindowShortening, WhoIsGreedyGivesUpAnEighthAtOnce) {
  WindowShortening windows;
  EXPECT_EQ(windows.left_of(kDb, 6400), 6400u);
  EXPECT_FALSE(windows.shortened(kDb));
  for (std::uint64_t eighths = 1; eighths <= 8; ++eighths) {
    EXPECT_TRUE(windows.shorten(kDb, true));
    EXPECT_EQ(windows.left_of(kDb, 6400), 6400 - 800 * eighths);
  }
  EXPECT_FALSE(windows.shorten(kDb, true)) << "nothing is left";
  EXPECT_EQ(windows.left_of(kDb, 6400), 0u);
  EXPECT_EQ(windows.left_of(kWeb, 6400), 6400u);
}

TEST(WindowShortening, WhoIsNotGivesUpLittleAndTwiceAsMuchEachTime) {
  WindowShortening windows;
  for (const std::uint64_t gone : {100, 200, 400, 800, 1600, 3200, 6400}) {
    EXPECT_TRUE(windows.shorten(kWeb, false));
    EXPECT_EQ(windows.left_of(kWeb, 6400), 6400 - gone);
  }
  EXPECT_FALSE(windows.shorten(kWeb, false));
}

TEST(WindowShortening, WhatWasFreedIsForgotten) {
  WindowShortening windows;
  EXPECT_TRUE(windows.shorten(kDb, false));
  EXPECT_TRUE(windows.shortened(kDb));
  windows.clear();
  EXPECT_FALSE(windows.shortened(kDb));
  EXPECT_EQ(windows.left_of(kDb, 6400), 6400u);
}

}  // namespace
}  // namespace mariner::node
