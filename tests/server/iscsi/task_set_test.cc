#include "server/iscsi/task_set.h"

#include <gtest/gtest.h>

namespace mariner::iscsi {
namespace {

using enum TaskAttribute;

TEST(TaskSetTest, SimpleCommandsAreOneGroup) {
  TaskSet set;
  EXPECT_TRUE(set.would_begin(kSimple));
  const auto first = set.enter(kSimple);
  const auto second = set.enter(kUntagged);
  EXPECT_EQ(first, second);
  EXPECT_TRUE(set.enabled(first));
  set.leave(first);
  EXPECT_TRUE(set.enabled(set.enter(kSimple)));
  set.leave(second);
}

TEST(TaskSetTest, AnOrderedCommandPartsThoseBeforeFromThoseBehind) {
  TaskSet set;
  const auto before = set.enter(kSimple);
  EXPECT_FALSE(set.would_begin(kOrdered));
  const auto ordered = set.enter(kOrdered);
  EXPECT_FALSE(set.would_begin(kSimple));
  const auto behind = set.enter(kSimple);
  EXPECT_TRUE(set.enabled(before));
  EXPECT_FALSE(set.enabled(ordered) || set.enabled(behind));
  set.leave(before);
  EXPECT_TRUE(set.enabled(ordered));
  EXPECT_FALSE(set.enabled(behind));
  set.leave(ordered);
  EXPECT_TRUE(set.enabled(behind));
  EXPECT_TRUE(set.would_begin(kSimple));
}

TEST(TaskSetTest, OrderedCommandsFollowEachOther) {
  TaskSet set;
  const auto first = set.enter(kOrdered);
  const auto second = set.enter(kOrdered);
  EXPECT_TRUE(set.enabled(first));
  EXPECT_FALSE(set.enabled(second));
  set.leave(second);  // aborted
  EXPECT_TRUE(set.enabled(first));
  set.leave(first);
  EXPECT_TRUE(set.would_begin(kOrdered));
}

TEST(TaskSetTest, BehindTheHeadOfTheQueueOthersWait) {
  TaskSet set;
  const auto before = set.enter(kSimple);
  EXPECT_TRUE(set.would_begin(kHeadOfQueue));
  const auto head = set.enter(kHeadOfQueue);
  const auto behind = set.enter(kSimple);
  EXPECT_FALSE(set.enabled(behind));
  set.leave(head);
  set.leave(before);
  EXPECT_TRUE(set.enabled(behind));
}

TEST(TaskSetTest, GroupsThatEndedOutOfTurnAreSkipped) {
  TaskSet set;
  const auto before = set.enter(kSimple);
  const auto ordered = set.enter(kOrdered);
  const auto behind = set.enter(kSimple);
  set.leave(ordered);
  EXPECT_FALSE(set.enabled(behind));
  set.leave(before);
  EXPECT_TRUE(set.enabled(behind));
  EXPECT_DEATH(set.leave(before), "");
}

}  // namespace
}  // namespace mariner::iscsi
