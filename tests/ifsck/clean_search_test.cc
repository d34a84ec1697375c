#include "ifsck/clean_search.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_history.h"

namespace mariner::ifsck {
namespace {

class CleanSearchTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CleanSearchTest, TheNewestIsFound) {
  MadeHistory history(GetParam(), 31);
  KnownStates states;
  // From within the third round back to the end of the second, or somewhere between them.
  const SequenceNumber before{(history.ends[1].value + history.ends[2].value) / 2};
  std::uint64_t told = 0;
  CleanSearch::Options options;
  options.looked = [&](const MomentReport&) { ++told; };
  const auto search = CleanSearch::run(*history.past, before, states, options);
  ASSERT_TRUE(search.has_value()) << search.error().message;
  ASSERT_TRUE(search->found.has_value());
  EXPECT_EQ(told, search->looks);
  EXPECT_FALSE(search->some_skipped);
  EXPECT_GE(*search->found, history.ends[1]);
  EXPECT_EQ(MadeMoment(*history.past, *search->found).census().findings_all, 0u);
  for (SequenceNumber at = before; at > *search->found; at.value -= 1) {
    ASSERT_NE(MadeMoment(*history.past, at).census().findings_all, 0u) << at.value;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, CleanSearchTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext4 -b 4096",
                                           "-t ext2 -b 4096"));

TEST(CleanSearch, EndsWhereItMayLookNoFurther) {
  MadeHistory history("-t ext2 -b 4096", 32);
  KnownStates states;
  SequenceNumber before{history.ends[2].value - 1};
  while (MadeMoment(*history.past, before).census().findings_all == 0) before.value -= 1;
  const auto search =
      CleanSearch::run(*history.past, before, states, {.looks_max = 1, .looked = {}});
  ASSERT_TRUE(search.has_value());
  EXPECT_EQ(search->looks, 1u);
  EXPECT_FALSE(search->found.has_value());
}

}  // namespace
}  // namespace mariner::ifsck
