#include "server/volume/slow_erase.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

constexpr std::size_t kPiece = SlowErase::kEachTurn;

std::shared_ptr<PendingTable> table_of(std::uint64_t runs) {
  auto table = std::make_shared<PendingTable>();
  for (std::uint64_t i = 0; i < runs; ++i) {
    PendingContent content;
    content.kind = PendingContent::Kind::kMemory;
    content.payload = Payload::allocate(kBlockBytes);
    table->put({{10 * i}, {1}}, std::move(content));
  }
  return table;
}

class SlowEraseTest : public testing::Test {
 protected:
  // Runs that leave in each turn, until all is quiet.
  std::vector<std::size_t> left_in_turns(const PendingTable& table) {
    std::vector<std::size_t> seen;
    for (int turn = 0; turn < 20; ++turn) {
      const std::size_t had = table.size();
      executor_.turn();
      if (table.size() != had) seen.push_back(had - table.size());
    }
    return seen;
  }

  test::ManualExecutor executor_;
  std::optional<SlowErase> leaving_{std::in_place, executor_};
};

TEST_F(SlowEraseTest, SomeInEachTurn) {
  const auto table = table_of(3 * kPiece);
  std::size_t told = 0;
  int done = 0;
  leaving_->add({table, Lbn{10 * (2 * kPiece + 7)},
                 [&](std::span<const BlockRange> gone) {
                   EXPECT_EQ(gone.front(), (BlockRange{{10 * told}, {1}}));
                   told += gone.size();
                   EXPECT_EQ(done, 0);
                 },
                 [&] { ++done; }});
  EXPECT_EQ(table->size(), 3 * kPiece) << "not in the turn of who adds it";
  EXPECT_EQ(left_in_turns(*table), (std::vector<std::size_t>{kPiece, kPiece, 7}));
  EXPECT_EQ(told, 2 * kPiece + 7);
  EXPECT_EQ(done, 1);
  leaving_->add({table, Lbn{UINT64_MAX}});
  EXPECT_EQ(left_in_turns(*table), (std::vector<std::size_t>{kPiece - 7})) << "it begins again";
}

TEST_F(SlowEraseTest, OneAfterTheOther) {
  const auto first = table_of(kPiece);
  const auto second = table_of(1);
  std::vector<int> done;
  leaving_->add({first, Lbn{UINT64_MAX}, {}, [&] { done.push_back(1); }});
  leaving_->add({second, Lbn{UINT64_MAX}, {}, [&] { done.push_back(2); }});
  executor_.run_until_idle();
  EXPECT_TRUE(first->empty());
  EXPECT_TRUE(second->empty());
  EXPECT_EQ(done, (std::vector<int>{1, 2}));
}

TEST_F(SlowEraseTest, KeepsATableThatNobodyElseKeeps) {
  const std::uint64_t before = Payload::total_bytes();
  leaving_->add({table_of(kPiece + 1), Lbn{UINT64_MAX}});
  EXPECT_EQ(Payload::total_bytes() - before, (kPiece + 1) * kBlockBytes);
  executor_.run_until_idle();
  EXPECT_EQ(Payload::total_bytes(), before);
}

TEST_F(SlowEraseTest, FinishesATableAtOnce) {
  const auto its = table_of(3 * kPiece);
  const auto other = table_of(3 * kPiece);
  std::size_t told = 0;
  int done = 0;
  leaving_->add({other, Lbn{UINT64_MAX}});
  leaving_->add({its, Lbn{10}, {}, [&] { ++done; }});
  leaving_->add(
      {its, Lbn{10 * 2 * kPiece}, [&](std::span<const BlockRange> gone) { told += gone.size(); }});
  leaving_->finish(*its);
  EXPECT_EQ(its->size(), kPiece);
  EXPECT_EQ(told, 2 * kPiece - 1);
  EXPECT_EQ(done, 1);
  EXPECT_EQ(other->size(), 3 * kPiece);
  executor_.run_until_idle();
  EXPECT_EQ(its->size(), kPiece);
  EXPECT_TRUE(other->empty());
}

TEST_F(SlowEraseTest, OfManyMoreLeaveInATurn) {
  const auto table = table_of(64 * 512);
  leaving_->add({table, Lbn{UINT64_MAX}});
  EXPECT_EQ(left_in_turns(*table).front(), 64u);
  leaving_->finish(*table);
}

TEST_F(SlowEraseTest, SaysWhatTablesStillKeep) {
  const auto first = table_of(3);
  const auto second = table_of(5);
  EXPECT_EQ(leaving_->memory_bytes_beside(nullptr), 0u);
  leaving_->add({first, Lbn{10}});
  leaving_->add({first, Lbn{30}});
  leaving_->add({second, Lbn{UINT64_MAX}});
  EXPECT_EQ(leaving_->memory_bytes_beside(nullptr), 8 * kBlockBytes);
  EXPECT_EQ(leaving_->memory_bytes_beside(second.get()), 3 * kBlockBytes);
  EXPECT_EQ(leaving_->memory_bytes_beside(first.get()), 5 * kBlockBytes);
  executor_.run_until_idle();
  EXPECT_EQ(leaving_->memory_bytes_beside(nullptr), 0u);
}

TEST_F(SlowEraseTest, WhatIsStillToLeaveStaysWhenItEnds) {
  const auto table = table_of(3 * kPiece);
  leaving_->add({table, Lbn{UINT64_MAX}, {}, [] { FAIL(); }});
  leaving_.reset();
  executor_.run_until_idle();
  EXPECT_EQ(table->size(), 3 * kPiece);
}

}  // namespace
}  // namespace mariner::volume
