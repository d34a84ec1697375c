#include "server/volume/headway.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/server/volume/kept_headway.h"

namespace mariner::volume {
namespace {

using test::KeptHeadway;

constexpr std::uint64_t kPage = BlockSet::kPageBlocks;

std::vector<bool> bits_of(const std::vector<BlockRange>& ranges, std::uint64_t blocks) {
  std::vector<bool> out(blocks, false);
  for (const BlockRange& range : ranges) {
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(range.first.value),
              out.begin() + static_cast<std::ptrdiff_t>(range.end().value), true);
  }
  return out;
}

// Whatever of it was kept last, and whatever was not: what a start then finds lacking is what was.
TEST(Headway, IsFoundAsItWasKept) {
  constexpr std::uint64_t kBlocks = 20'000;
  std::mt19937_64 random(7);
  const auto any_range = [&] {
    const std::uint64_t first = random() % kBlocks;
    const std::uint64_t count = 1 + random() % (random() % 2 == 0 ? 40 : 9'000);
    return BlockRange{{first}, {std::min(count, kBlocks - first)}};
  };
  Headway headway;
  KeptHeadway kept;
  std::vector<bool> backlog(kBlocks, false);
  const auto set = [&](BlockRange range, bool to) {
    for (std::uint64_t at = range.first.value; at < range.end().value; ++at) backlog[at] = to;
  };
  for (std::uint64_t round = 1; round < 1000; ++round) {
    const BlockRange range = any_range();
    switch (random() % 8) {
      case 0:
      case 1:
        set(range, true);
        headway.lacks(range);
        break;
      case 2:
      case 3:
      case 4:
        set(range, false);
        headway.has(range);
        break;
      case 5: {
        const Lbn from = headway.through();
        headway.reach(range.first);
        for (std::uint64_t at = from.value; at < range.first.value; ++at) {
          if (backlog[at]) headway.lacks({{at}, {1}});
        }
        break;
      }
      case 6:
        if (random() % 20 == 0) headway.forget();
        break;
      default: {
        const auto change = headway.take_change({round}, round);
        if (!change) break;
        if (random() % 4 == 0) {
          headway.keep_anew();
          break;
        }
        kept.keep(*change);
        const Headway found(kept.kept());
        EXPECT_EQ(found.through(), headway.through());
        if (found.through().value > 0) {
          EXPECT_EQ(found.as_of(), SequenceNumber{round});
        }
        std::vector<bool> expected = backlog;
        std::fill(expected.begin() + static_cast<std::ptrdiff_t>(found.through().value),
                  expected.end(), true);
        ASSERT_EQ(bits_of(found.lacking({{{0}, {kBlocks}}}, {}), kBlocks), expected)
            << "round " << round;
        break;
      }
    }
  }
}

TEST(Headway, LacksWhatHasChangedSinceAsWell) {
  Headway headway;
  headway.reach({100});
  headway.lacks({{10}, {10}});
  EXPECT_EQ(headway.lacking({{{15}, {50}}, {{90}, {20}}}, {{{30}, {2}}}),
            (std::vector<BlockRange>{{{15}, {5}}, {{30}, {2}}, {{100}, {10}}}));
}

TEST(Headway, IsNotKeptTwice) {
  Headway headway;
  EXPECT_FALSE(headway.take_change({5}, 0)) << "nothing is said";
  headway.reach({100});
  EXPECT_TRUE(headway.take_change({5}, 0));
  EXPECT_FALSE(headway.take_change({5}, 0));
  EXPECT_TRUE(headway.take_change({6}, 0));
  EXPECT_FALSE(headway.take_change({4}, 0)) << "what it was before says less";
  headway.forget();
  const auto gone = headway.take_change({7}, 0);
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->anew);
  EXPECT_EQ(gone->statement.as_of, SequenceNumber{0});
  EXPECT_FALSE(headway.take_change({8}, 0));
}

TEST(Headway, SaysNothingWhereItWouldHaveTooManyPages) {
  Headway headway;
  headway.reach({UINT64_MAX});
  for (std::uint64_t page = 0; page < Headway::kPagesMax + 10; ++page) {
    EXPECT_EQ(headway.full(), page >= Headway::kPagesMax);
    headway.lacks({{page * kPage + 7}, {1}});
  }
  EXPECT_EQ(headway.through(), Lbn{Headway::kPagesMax * kPage});
  // What comes below takes the place of what is above.
  headway.has({{3 * kPage}, {1 * kPage}});
  EXPECT_FALSE(headway.full());
  headway.lacks({{3 * kPage}, {kPage}});
  EXPECT_EQ(headway.through(), Lbn{Headway::kPagesMax * kPage});
  KeptHeadway kept;
  kept.keep(*headway.take_change({9}, 0));
  EXPECT_EQ(kept.kept().left.size(), Headway::kPagesMax);
}

// All of a volume of the greatest length may be written to zeros at once.
TEST(Headway, TakesARangeOfAnyLength) {
  Headway headway;
  headway.reach({UINT64_MAX});
  headway.lacks({{5}, {std::uint64_t{1} << 38}});
  EXPECT_EQ(headway.through(), Lbn{Headway::kPagesMax * kPage});
  headway.has({{0}, {std::uint64_t{1} << 38}});
  EXPECT_TRUE(headway.lacking({{{0}, {Headway::kPagesMax * kPage}}}, {}).empty());
}

}  // namespace
}  // namespace mariner::volume
