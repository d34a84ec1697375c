#include "server/cluster/journal_history.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/server/cluster/journal_rig.h"

namespace mariner::cluster {
namespace {

using test::LoggedRig;

class JournalHistoryTest : public ::testing::Test {
 protected:
  void make(std::uint64_t since) {
    history_ = std::make_unique<JournalHistory>(*journal_.part, SequenceNumber{since});
  }
  // The extents, or what is wrong.
  std::string changed(std::uint64_t from, std::uint64_t to) {
    std::string text;
    std::optional<Result<void>> result;
    history_->changed(
        {from}, {to},
        [&](std::span<const BlockRange> extents) {
          EXPECT_FALSE(extents.empty());
          for (const BlockRange& extent : extents) {
            EXPECT_FALSE(extent.empty());
            text +=
                std::to_string(extent.first.value) + "+" + std::to_string(extent.count.value) + " ";
          }
        },
        [&](Result<void> r) { result = std::move(r); });
    journal_.run();
    if (!result) return "nothing";
    return *result ? text : std::string(error_code_name(result->error().code));
  }
  std::string read(BlockRange range, std::uint64_t at) {
    Payload to = Payload::allocate(range.count.bytes());
    std::string text = "nothing";
    history_->read(range, {at}, to.bytes(), [&](const Result<std::vector<BlockRange>>& in_base) {
      if (!in_base) {
        error_ = in_base.error().message;
        text = error_code_name(in_base.error().code);
        return;
      }
      EXPECT_TRUE(in_base->empty());
      text = LoggedRig::text_of(to.bytes());
    });
    journal_.run();
    return text;
  }

  test::JournalRig journal_;
  std::unique_ptr<JournalHistory> history_;
  std::string error_;
};

TEST_F(JournalHistoryTest, WhatWasWrittenSinceIsToldAndRead) {
  journal_.skip(1, 10);
  make(10);
  journal_.write(11, {{0}, {3}}, 'a');
  journal_.zero(12, {{2}, {4}});
  journal_.write(13, {{9}, {1}}, 'b');
  EXPECT_EQ(changed(10, 13), "0+6 9+1 ");
  EXPECT_EQ(changed(12, 13), "9+1 ");
  EXPECT_EQ(changed(13, 13), "");
  EXPECT_EQ(read({{0}, {6}}, 13), "aa0000");
  EXPECT_EQ(read({{0}, {3}}, 11), "aaa");
}

TEST_F(JournalHistoryTest, WhatIsOfAnEarlierTimeIsLeftOut) {
  journal_.write(1, {{5}, {1}}, 'o');
  journal_.skip(2, 10);
  make(10);
  journal_.write(11, {{4}, {1}}, 'a');
  journal_.write(12, {{6}, {1}}, 'b');
  EXPECT_EQ(changed(10, 12), "4+1 6+1 ");
  EXPECT_EQ(read({{4}, {1}}, 12), "a");
  EXPECT_EQ(read({{4}, {3}}, 12), "corrupt");
  EXPECT_NE(error_.find("block 5"), std::string::npos);
  EXPECT_EQ(read({{7}, {1}}, 12), "corrupt") << "and never as zeros";
}

// Writes that nobody had been told of, and what takes them back.
TEST_F(JournalHistoryTest, WhatWasRolledBackIsLeftOut) {
  journal_.write(1, {{2}, {1}}, 'o');
  journal_.skip(2, 10);
  journal_.write(11, {{1}, {4}}, 'x');
  journal_.roll_back(12, 10);
  make(10);
  journal_.write(13, {{3}, {1}}, 'a');
  EXPECT_EQ(changed(10, 13), "3+1 ");
  EXPECT_EQ(read({{3}, {1}}, 13), "a");
}

TEST_F(JournalHistoryTest, WhatIsNotSettledIsNotThereYet) {
  journal_.skip(1, 10);
  make(10);
  journal_.write(11, {{0}, {1}}, 'a');
  journal_.logged.disk.hold();
  journal_.write(12, {{1}, {1}}, 'b');
  EXPECT_EQ(changed(10, 12), "unavailable");
  EXPECT_EQ(read({{1}, {1}}, 12), "unavailable");
  journal_.logged.disk.release();
  journal_.run();
  EXPECT_EQ(changed(10, 12), "0+2 ");
  EXPECT_EQ(read({{1}, {1}}, 12), "b");
}

TEST_F(JournalHistoryTest, WhatIsTheLogsIsUnavailable) {
  journal_.skip(1, 10);
  make(10);
  journal_.write(11, {{0}, {1}}, 'a');
  EXPECT_EQ(changed(9, 11), "unavailable");
  EXPECT_EQ(read({{0}, {1}}, 10), "unavailable");
  int answers = 0;
  const auto unavailable = [&](const auto& result) {
    EXPECT_EQ(result.error().code, ErrorCode::kUnavailable);
    ++answers;
  };
  history_->locate({{{{0}, {1}}, {11}}}, unavailable);
  history_->hold({11}, unavailable);
  history_->log_before_image({{0}, {1}}, LoggedRig::blocks_of('b', 1), unavailable);
  history_->moment(SequenceNumber{11}, unavailable);
  history_->summarize({}, unavailable);
  history_->versions({{{0}, {10}}}, {11}, unavailable);
  EXPECT_EQ(answers, 6);
}

TEST_F(JournalHistoryTest, ItsBeginningIsHeldForAsLongAsItExists) {
  journal_.skip(1, 10);
  EXPECT_FALSE(journal_.part->oldest_pinned().has_value());
  make(10);
  EXPECT_EQ(journal_.part->oldest_pinned(), SequenceNumber{10});
  history_.reset();
  EXPECT_FALSE(journal_.part->oldest_pinned().has_value());
}

TEST_F(JournalHistoryTest, AJournalThatHasGivenUpItsBeginningSaysSo) {
  journal_.skip(1, 10);
  journal_.write(11, {{0}, {1}}, 'a');
  journal_.write(12, {{0}, {1}}, 'b');
  journal_.part->logged().index().set_horizon({{11}, {1011}});
  make(10);
  EXPECT_EQ(changed(10, 12), "outside-window");
  EXPECT_EQ(read({{0}, {1}}, 12), "outside-window");
}

TEST_F(JournalHistoryTest, AnAnswerMayComeWhenItIsNoMore) {
  journal_.skip(1, 10);
  make(10);
  journal_.write(11, {{0}, {1}}, 'a');
  Payload to = Payload::allocate(kBlockBytes);
  journal_.logged.disk.hold();
  bool read = false;
  history_->read({{0}, {1}}, {11}, to.bytes(),
                 [&](const Result<std::vector<BlockRange>>& r) { read = r.has_value(); });
  history_.reset();
  EXPECT_FALSE(read);
  journal_.logged.disk.release();
  journal_.run();
  EXPECT_TRUE(read);
  EXPECT_EQ(LoggedRig::text_of(to.bytes()), "a");
}

}  // namespace
}  // namespace mariner::cluster
