#include "ifsck/commit_search.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_commits.h"
#include "tests/ifsck/made_history.h"

namespace mariner::ifsck {
namespace {

class CommitSearchTest : public ::testing::TestWithParam<const char*> {};

TEST_P(CommitSearchTest, FindsEachTransaction) {
  MadeCommits made(GetParam(), 9);
  const SequenceNumber newest = made.past->reach()->newest;
  const auto all = CommitSearch::run(*made.past, {}, newest);
  ASSERT_TRUE(all.has_value()) << all.error().message;
  EXPECT_TRUE(all->journal);
  EXPECT_FALSE(all->some_skipped);
  EXPECT_EQ(all->commits, made.commits);
  // From the middle on, and up to just before the last one.
  const auto some =
      CommitSearch::run(*made.past, made.commits[4].at, {made.commits.back().at.value - 1});
  ASSERT_TRUE(some.has_value());
  ASSERT_FALSE(some->commits.empty());
  EXPECT_EQ(some->commits.back(), made.commits[7]);
  for (const CommitSearch::Commit& each : some->commits) EXPECT_GT(each.at, made.commits[4].at);
}

TEST_P(CommitSearchTest, ReadsTheNewestWhereThereAreTooMany) {
  MadeCommits made(GetParam(), 9);
  const auto some = CommitSearch::run(*made.past, {}, made.past->reach()->newest, 3);
  ASSERT_TRUE(some.has_value());
  EXPECT_TRUE(some->some_skipped);
  ASSERT_FALSE(some->commits.empty());
  EXPECT_EQ(some->commits.back(), made.commits.back());
  EXPECT_LT(some->commits.size(), made.commits.size());
}

INSTANTIATE_TEST_SUITE_P(Kinds, CommitSearchTest,
                         ::testing::Values("-t ext3 -b 1024", "-t ext4 -b 4096"));

TEST(CommitSearch, WithoutAJournalThereAreNone) {
  MadeHistory history("-t ext2 -b 4096", 3);
  const auto none = CommitSearch::run(*history.past, {}, history.ends.back());
  ASSERT_TRUE(none.has_value());
  EXPECT_FALSE(none->journal);
  EXPECT_TRUE(none->commits.empty());
}

}  // namespace
}  // namespace mariner::ifsck
