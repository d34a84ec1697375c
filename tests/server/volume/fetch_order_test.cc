#include "server/volume/fetch_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/inline_worker.h"
#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

using test::AskedHistory;

class FetchOrderTest : public ::testing::Test {
 protected:
  void put(BlockRange range, std::uint64_t at = 9) {
    PendingContent content;
    content.kind = PendingContent::Kind::kHistory;
    content.at = {at};
    table_->put(range, content);
  }
  void look_up() {
    ended_.reset();
    order_.look_up(table_, nullptr, [this](const Result<void>& result) { ended_ = result; });
    executor_.run_ready();
  }
  // Each block is of the write that `writes_` says.
  void answer() {
    AskedHistory::Locate asked = AskedHistory::next(history_.locates);
    History::Located found;
    for (const History::Lookup& lookup : asked.lookups) {
      EXPECT_FALSE(lookup.with_bytes);
      for (Lbn at = lookup.range.first; at < lookup.range.end(); at = at + BlockCount{1}) {
        found.runs.push_back({{at, {1}}, PastRun::Source::kLog, false, {writes_[at.value]}});
      }
    }
    asked.done(std::move(found));
    executor_.run_ready();
  }
  std::vector<std::uint64_t> rest() {
    std::vector<std::uint64_t> out;
    for (const BlockRange& range : order_.rest(table_)) out.push_back(range.first.value);
    return out;
  }

  test::ManualExecutor executor_;
  test::InlineWorker worker_{executor_};
  AskedHistory history_;
  std::shared_ptr<PendingTable> table_ = std::make_shared<PendingTable>();
  std::map<std::uint64_t, std::uint64_t> writes_;
  FetchOrder order_{{history_, worker_, executor_}};
  std::optional<Result<void>> ended_;
};

TEST_F(FetchOrderTest, IsThatOfTheWritesAndAmongOneOfAddresses) {
  put({{2}, {2}});
  put({{10}, {3}});
  writes_ = {{2, 7}, {3, 4}, {10, 5}, {11, 4}, {12, 1}};
  look_up();
  EXPECT_TRUE(order_.looking());
  answer();
  ASSERT_TRUE(ended_ && *ended_);
  EXPECT_FALSE(order_.looking());
  EXPECT_EQ(rest(), (std::vector<std::uint64_t>{12, 3, 11, 10, 2}));
}

TEST_F(FetchOrderTest, IsNoOrderOfAnotherTableWithTheSameBlocks) {
  put({{0}, {2}});
  writes_ = {{0, 4}, {1, 3}};
  look_up();
  answer();
  EXPECT_EQ(rest(), (std::vector<std::uint64_t>{1, 0}));
  table_ = std::make_shared<PendingTable>();
  put({{0}, {2}}, 12);
  EXPECT_TRUE(rest().empty());
}

TEST_F(FetchOrderTest, ForgetsWhatTheTableHasNoMore) {
  put({{0}, {4}});
  writes_ = {{0, 4}, {1, 3}, {2, 2}, {3, 1}};
  look_up();
  answer();
  table_->erase({{2}, {2}});
  EXPECT_EQ(rest(), (std::vector<std::uint64_t>{1, 0}));
  table_->erase({{0}, {1}});
  EXPECT_EQ(rest(), (std::vector<std::uint64_t>{1, 0})) << "what comes later is passed over later";
  table_->erase({{1}, {1}});
  EXPECT_TRUE(rest().empty());
}

TEST_F(FetchOrderTest, AsksForMuchInPartsAndForEachAsOfItsMoment) {
  put({{0}, {5000}}, 7);
  put({{9000}, {1}}, 8);
  look_up();
  ASSERT_EQ(history_.locates.size(), 1u);
  EXPECT_EQ(history_.locates[0].lookups[0].range, (BlockRange{{0}, {2048}}));
  EXPECT_EQ(history_.locates[0].lookups[0].at, SequenceNumber{7});
  answer();
  std::uint64_t at = 0;
  while (!history_.locates.empty()) {
    at = history_.locates[0].lookups.back().at.value;
    answer();
  }
  EXPECT_EQ(at, 8u);
  ASSERT_TRUE(ended_ && *ended_);
  EXPECT_EQ(rest().size(), 5001u);
}

// What follows a long stretch of little may be dense: one question about it all would take long.
TEST_F(FetchOrderTest, HoweverLittleIsFoundOneQuestionIsOfSoMuchAtMost) {
  put({{0}, {std::uint64_t{1} << 24}});
  look_up();
  std::uint64_t most = 0;
  while (!history_.locates.empty()) {
    AskedHistory::Locate asked = AskedHistory::next(history_.locates);
    std::uint64_t blocks = 0;
    History::Located found;
    for (const History::Lookup& lookup : asked.lookups) {
      blocks += lookup.range.count.value;
      found.runs.push_back({lookup.range, PastRun::Source::kZero, false, {1}});
    }
    most = std::max(most, blocks);
    asked.done(std::move(found));
    executor_.run_ready();
  }
  ASSERT_TRUE(ended_ && *ended_);
  EXPECT_EQ(most, std::uint64_t{1} << 18);
}

TEST_F(FetchOrderTest, LetsOthersHaveATurnBetweenTwoQuestions) {
  put({{0}, {5000}});
  look_up();
  std::size_t turns = 0;
  while (!history_.locates.empty()) {
    AskedHistory::Locate asked = AskedHistory::next(history_.locates);
    bool sent = false;  // what an event of the same turn has gathered
    executor_.post([&] {
      History::Located found;
      for (const History::Lookup& lookup : asked.lookups) {
        found.runs.push_back({lookup.range, PastRun::Source::kLog, false, {1}});
      }
      asked.done(std::move(found));
      executor_.defer([&] { sent = true; });
    });
    executor_.turn();
    EXPECT_TRUE(sent);
    EXPECT_TRUE(history_.locates.empty()) << "the next one comes in another turn";
    executor_.run_ready();
    ++turns;
  }
  EXPECT_GT(turns, 1u);
  ASSERT_TRUE(ended_ && *ended_);
}

TEST_F(FetchOrderTest, WhatTheTableLosesMeanwhileIsNotAskedFor) {
  put({{0}, {4000}});
  look_up();
  table_->erase_before({3999});
  answer();
  ASSERT_EQ(history_.locates.size(), 1u);
  EXPECT_EQ(history_.locates[0].lookups[0].range, (BlockRange{{3999}, {1}}));
  answer();
  EXPECT_EQ(rest(), std::vector<std::uint64_t>{3999});
}

TEST_F(FetchOrderTest, AHistoryThatIsAwayLeavesNoOrder) {
  put({{0}, {4}});
  look_up();
  AskedHistory::next(history_.locates).done(Error{ErrorCode::kUnavailable, "away"});
  executor_.run_ready();
  ASSERT_TRUE(ended_);
  EXPECT_EQ(ended_->error().code, ErrorCode::kUnavailable);
  EXPECT_TRUE(rest().empty());
}

TEST_F(FetchOrderTest, StopsAtTheNextAnswer) {
  put({{0}, {4000}});
  look_up();
  order_.stop();
  answer();
  ASSERT_TRUE(ended_);
  EXPECT_EQ(ended_->error().code, ErrorCode::kAborted);
  EXPECT_TRUE(rest().empty());
}

}  // namespace
}  // namespace mariner::volume
