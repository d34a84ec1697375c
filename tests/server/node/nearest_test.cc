#include "server/node/nearest.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

namespace mariner {
namespace {

TEST(Nearest, Distances) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(edit_distance("max_size", "max_size"), 0u);
  EXPECT_EQ(edit_distance("maxsize", "max_size"), 1u);
  EXPECT_EQ(edit_distance("max_sise", "max_size"), 1u);
  EXPECT_EQ(edit_distance("amx_size", "max_size"), 1u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance(std::string(1000, 'a'), ""), 64u);
}

TEST(Nearest, PicksTheNearestWord) {
  const std::vector<std::string> known{"disks", "max_size", "on_full", "t_wait", "track_size"};
  EXPECT_EQ(nearest("maxsize", known), "max_size");
  EXPECT_EQ(nearest("disk", known), "disks");
  EXPECT_EQ(nearest("twait", known), "t_wait");
  EXPECT_EQ(nearest("x", std::vector<std::string>{}), std::nullopt);
}

TEST(Nearest, TheDistanceIsSymmetricAndZeroOnlyForEqualWords) {
  EXPECT_TRUE(rc::check([](const std::string& a, const std::string& b) {
    RC_ASSERT(edit_distance(a, b) == edit_distance(b, a));
    RC_ASSERT((edit_distance(a, b) == 0) == (a.substr(0, 64) == b.substr(0, 64)));
  }));
}

}  // namespace
}  // namespace mariner
