#include "server/iscsi/task.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace mariner::iscsi {
namespace {

TEST(TaskTableTest, FindsByTagUntilReleased) {
  TaskTable table(4);
  Task* const task = table.allocate(7);
  ASSERT_NE(task, nullptr);
  EXPECT_EQ(table.find(7), task);
  EXPECT_EQ(table.find(8), nullptr);
  EXPECT_EQ(table.size(), 1u);
  const TaskRef ref = task->ref;
  EXPECT_EQ(table.get(ref), task);
  table.release(*task);
  EXPECT_EQ(table.find(7), nullptr);
  EXPECT_EQ(table.get(ref), nullptr);
}

TEST(TaskTableTest, ASlotsNextTenantIsAnother) {
  TaskTable table(1);
  Task* const first = table.allocate(7);
  const TaskRef old = first->ref;
  table.release(*first);
  Task* const second = table.allocate(7);
  EXPECT_EQ(second, first) << "the same slot";
  EXPECT_EQ(table.get(old), nullptr);
  EXPECT_NE(transfer_tag(old, 0), transfer_tag(second->ref, 0));
}

TEST(TaskTableTest, AReferenceToAPlaceThatWasNeverUsedIsToNoTask) {
  TaskTable table(100);
  Task* const first = table.allocate(7);
  EXPECT_EQ(first->ref.index, 0u);
  EXPECT_EQ(table.get({.index = 99, .generation = 0}), nullptr);
  EXPECT_EQ(table.get({.index = 1000, .generation = 0}), nullptr);
}

TEST(TaskTableTest, IsBounded) {
  TaskTable table(2);
  EXPECT_NE(table.allocate(1), nullptr);
  EXPECT_NE(table.allocate(2), nullptr);
  EXPECT_EQ(table.allocate(3), nullptr);
}

TEST(TaskTableTest, AnUnlistedTasksTagMayBeUsedAgain) {
  TaskTable table(2);
  Task* const aborted = table.allocate(1);
  table.unlist(*aborted);
  EXPECT_EQ(table.find(1), nullptr);
  EXPECT_EQ(table.get(aborted->ref), aborted);
  EXPECT_NE(table.allocate(1), nullptr);
  table.release(*aborted);
  EXPECT_NE(table.find(1), nullptr);
}

TEST(TaskTableTest, AgreesWithAMapUnderRandomUse) {
  std::mt19937 random(20261120);
  TaskTable table(144);
  std::map<std::uint32_t, Task*> model;
  for (int step = 0; step < 50000; ++step) {
    // Few distinct tags in steps of a power of two: the hash must cope.
    const std::uint32_t itt = (random() % 512) * 4096;
    const auto found = model.find(itt);
    ASSERT_EQ(table.find(itt), found == model.end() ? nullptr : found->second);
    if (found != model.end()) {
      table.release(*found->second);
      model.erase(found);
    } else if (Task* const task = table.allocate(itt)) {
      model[itt] = task;
    } else {
      ASSERT_EQ(model.size(), 144u);
    }
    ASSERT_EQ(table.size(), model.size());
  }
}

TEST(TransferTagTest, IsDistinctAndNeverReserved) {
  std::set<std::uint32_t> tags;
  for (std::uint32_t index = 0; index < kTasksMax; index += 31) {
    for (std::uint32_t sn = 0; sn < 256; sn += 17) {
      tags.insert(transfer_tag({.index = index, .generation = 0xffffffff}, sn));
    }
  }
  EXPECT_EQ(tags.size(), (kTasksMax + 30) / 31 * 16);
  EXPECT_EQ(tags.count(kReservedTag), 0u);
}

}  // namespace
}  // namespace mariner::iscsi
