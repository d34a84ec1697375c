#include "uvfs/path_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/ifsck/made_history.h"
#include "tests/uvfs/every_file.h"
#include "tests/uvfs/every_moment.h"
#include "tests/uvfs/made_writes.h"
#include "uvfs/ext_history.h"

namespace mariner::uvfs {
namespace {

using ifsck::MadeHistory;

class PathSearchTest : public ::testing::TestWithParam<const char*> {};

// (Whose blocks are written in any order: what is found on the way is torn in every way.)
TEST_P(PathSearchTest, FindsWhatLookingAtEveryMomentFinds) {
  for (unsigned seed = 0; seed < 2; ++seed) {
    MadeHistory history(GetParam(), 700 + seed);
    const Stretch stretch{{}, history.ends.back()};
    EveryMoment every(*history.past, stretch);
    const auto opened = ExtHistory::open(*history.past, stretch);
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    const auto found = PathSearch(**opened, {.every_write = true}).find_below("/");
    ASSERT_TRUE(found.has_value()) << found.error().message;
    auto ours = EveryMoment::lines(*found);
    auto wanted = every.lines();
    std::ranges::sort(ours);
    std::ranges::sort(wanted);
    EXPECT_EQ(ours.size(), wanted.size());
    ASSERT_EQ(first_difference(ours, wanted), "") << "seed " << seed;
    EXPECT_GT(ours.size(), 700u);
    for (const PathHistory& each : *found) {
      const auto alone = PathSearch(**opened, {.every_write = true}).find(each.path);
      ASSERT_TRUE(alone.has_value());
      ASSERT_EQ(EveryMoment::lines({*alone}), EveryMoment::lines({each}));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PathSearchTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext2 -b 4096",
                                           "-t ext4 -b 1024 -O ^has_journal",
                                           "-t ext4 -b 4096 -O inline_data,64bit,quota -I 256"));

// A directory is being written: its entries are in no block of its for a moment.
TEST(PathSearchTest, AGapIsNoEndUnlessTheObjectWasChanged) {
  for (const bool changed : {false, true}) {
    MadeWrites made("-t ext2 -b 4096");
    const auto file = made.volume.find("/a/large");
    const auto place = made.place_of(made.volume.find("/a"), "large");
    made.put<std::uint32_t>(place, 0);                                        // 1
    if (changed) made.put<std::uint32_t>(file, ifsck::InodeAt::kChanged, 9);  // 2
    const auto last = made.put<std::uint32_t>(place, file);
    auto past = made.past();
    const auto history = ExtHistory::open(past, {{}, last}).value();
    const auto count = [&](const VersionRule& rule) {
      return PathSearch(*history, rule).find("/a/large")->incarnations.size();
    };
    EXPECT_EQ(count({}), changed ? 2u : 1u);
    EXPECT_EQ(count({.every_write = true}), 2u);
    EXPECT_EQ(count({.under_way_max = std::chrono::milliseconds(1)}), 2u);
  }
}

// Another one had the number for a while, and the one that has the name again is a third: where the
// entry of a directory is the object, its time may be that of the first.
TEST(PathSearchTest, AGapInWhichTheObjectWasAnotherOneIsAnEnd) {
  MadeWrites made("-t ext2 -b 4096");
  const auto file = made.volume.find("/a/large");
  const auto place = made.place_of(made.volume.find("/a"), "large");
  made.put<std::uint32_t>(file, ifsck::InodeAt::kChanged, 7);
  const auto removed = made.put<std::uint32_t>(place, 0);
  made.put<std::uint32_t>(file, ifsck::InodeAt::kChanged, 9);
  made.put<std::uint32_t>(file, ifsck::InodeAt::kChanged, 7);
  const auto last = made.put<std::uint32_t>(place, file);
  auto past = made.past();
  const auto history = ExtHistory::open(past, {{}, last}).value();
  const auto found = PathSearch(*history).find("/a/large");
  ASSERT_EQ(found->incarnations.size(), 2u);
  EXPECT_EQ(found->incarnations[0].end.at, removed);
  EXPECT_EQ(found->incarnations[1].from.at, last);
}

TEST(PathSearchTest, PathsAreAbsolute) {
  using Parts = std::vector<std::string>;
  EXPECT_EQ(PathSearch::components_of("/").value(), Parts{});
  EXPECT_EQ(PathSearch::components_of("//a/./b/").value(), (Parts{"a", "b"}));
  EXPECT_EQ(PathSearch::components_of("a").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(PathSearch::components_of("").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(PathSearch::components_of("/a/../b").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(PathSearch::components_of("/" + std::string(256, 'n')).error().code,
            ErrorCode::kInvalidArgument);
  // Of characters, as NTFS has them.
  std::string many;
  for (int i = 0; i < 255; ++i) many += "ä";
  EXPECT_EQ(PathSearch::components_of("/" + many)->size(), 1u);
  EXPECT_FALSE(PathSearch::components_of("/" + many + "ä").has_value());
}

}  // namespace
}  // namespace mariner::uvfs
