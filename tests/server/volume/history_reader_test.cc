#include "server/volume/history_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <string>

#include "tests/server/volume/asked_history.h"
#include "tests/server/volume/logged_rig.h"

namespace mariner::volume {
namespace {

using test::LoggedRig;

// A base whose reads wait until the test answers them.
class SlowBase final : public Base {
 public:
  void read(BlockRange range, std::span<std::byte> to, Done done) override {
    ranges.push_back(range);
    to_ = to;
    done_ = std::move(done);
  }
  [[nodiscard]] bool may_move() const override { return moves; }
  void answer(char byte, const Result<void>& result = {}) {
    std::memset(to_.data(), byte, to_.size());
    std::exchange(done_, nullptr)(result);
  }

  bool moves = true;
  std::vector<BlockRange> ranges;

 private:
  std::span<std::byte> to_;
  Done done_;
};

class HistoryReaderTest : public ::testing::Test {
 protected:
  void read(BlockRange range, std::uint64_t at) {
    to_ = Payload::allocate(range.count.bytes());
    result_.reset();
    reader_.read(range, SequenceNumber{at}, to_.bytes(),
                 [this](const Result<void>& r) { result_ = r; });
    rig_.executor.run_ready();
  }
  void read_each(std::vector<HistoryReader::Question> questions) {
    slices_.reset();
    reader_.read_each(std::move(questions),
                      [this](Result<std::vector<PayloadSlice>> r) { slices_ = std::move(r); });
    rig_.executor.run_ready();
  }
  std::string text_of_slices() const {
    if (!slices_) return "...";
    if (!*slices_) return std::string(error_code_name(slices_->error().code));
    std::string out;
    for (const PayloadSlice& each : **slices_) out += LoggedRig::text_of(each.bytes());
    return out;
  }
  std::string text() const { return LoggedRig::text_of(to_.bytes()); }

  LoggedRig rig_{true};
  SlowBase base_;
  HistoryReader reader_{rig_.history, base_};
  Payload to_;
  std::optional<Result<void>> result_;
  std::optional<Result<std::vector<PayloadSlice>>> slices_;
};

TEST_F(HistoryReaderTest, GathersFromLogZerosAndBase) {
  rig_.write(1, {{1}, {2}}, 'a');
  rig_.write(2, {{3}, {3}}, 'r', replication::WriteKind::kRepeated);
  rig_.write(3, {{2}, {1}}, 0, replication::WriteKind::kZero);
  read({{0}, {6}}, 3);
  EXPECT_FALSE(result_.has_value()) << "the base has not answered";
  EXPECT_EQ(reader_.in_flight(), 1u);
  base_.answer('b');
  rig_.executor.run_ready();
  ASSERT_TRUE(result_.has_value() && *result_);
  EXPECT_EQ(text(), "ba0rrr");
  EXPECT_EQ(base_.ranges, (std::vector<BlockRange>{{{0}, {1}}}));
}

TEST_F(HistoryReaderTest, WhatMovesWhileItIsReadIsReadAgain) {
  read({{0}, {4}}, 0);
  rig_.capture({{1}, {2}}, 'm');
  base_.answer('x');  // the image has been overwritten by now
  EXPECT_FALSE(result_.has_value());
  rig_.executor.run_ready();
  ASSERT_TRUE(result_.has_value() && *result_);
  EXPECT_EQ(text(), "xmmx");
}

TEST_F(HistoryReaderTest, ABaseThatCannotMoveIsReadOnce) {
  base_.moves = false;
  read({{0}, {2}}, 0);
  rig_.capture({{0}, {1}}, 'm');
  base_.answer('b');
  rig_.executor.run_ready();
  EXPECT_EQ(text(), "bb");
}

TEST_F(HistoryReaderTest, OneErrorFailsTheWholeAfterAllHaveEnded) {
  rig_.write(1, {{1}, {1}}, 'a');
  read({{0}, {2}}, 1);
  EXPECT_FALSE(result_.has_value());
  base_.answer('b', Error{ErrorCode::kIo, "gone"});
  ASSERT_TRUE(result_.has_value());
  EXPECT_EQ(result_->error().message, "gone");
  EXPECT_EQ(reader_.in_flight(), 0u);
}

// By the time that the before-image is asked for, the log has given it up for a newer base.
TEST_F(HistoryReaderTest, WhatMovesToTheLogAndBackIsReadFromTheBaseAgain) {
  test::AskedHistory history;
  HistoryReader reader(history, base_);
  to_ = Payload::allocate(2 * kBlockBytes);
  reader.read({{4}, {2}}, SequenceNumber{3}, to_.bytes(),
              [this](const Result<void>& r) { result_ = r; });
  test::AskedHistory::next(history.reads).done(std::vector<BlockRange>{{{4}, {2}}});
  base_.answer('x');
  using Source = PastRun::Source;
  auto looked = test::AskedHistory::next(history.locates);
  EXPECT_EQ(looked.lookups[0].at, SequenceNumber{3});
  looked.done(History::Located{
      {{{{4}, {1}}, Source::kBase, false, {}}, {{{5}, {1}}, Source::kLog, false, {}, {}}}, {}});
  auto again = test::AskedHistory::next(history.reads);
  EXPECT_EQ(again.range, (BlockRange{{5}, {1}}));
  std::memset(again.to.data(), '!', again.to.size());
  again.done(std::vector<BlockRange>{{{5}, {1}}});
  base_.answer('y');
  EXPECT_FALSE(result_) << "and once more it may have moved";
  test::AskedHistory::next(history.locates)
      .done(History::Located{{{{{5}, {1}}, Source::kBase, false, {}}}, {}});
  ASSERT_TRUE(result_ && *result_);
  EXPECT_EQ(text(), "xy");
}

TEST_F(HistoryReaderTest, AHistoryThatIsAwayIsAnError) {
  test::AskedHistory history;
  HistoryReader reader(history, base_);
  to_ = Payload::allocate(kBlockBytes);
  const Error away{ErrorCode::kUnavailable, "the logger is away"};
  const auto begin = [&] {
    result_.reset();
    reader.read({{0}, {1}}, SequenceNumber{3}, to_.bytes(),
                [this](const Result<void>& r) { result_ = r; });
  };
  begin();
  test::AskedHistory::next(history.reads).done(away);
  EXPECT_EQ(result_->error().code, ErrorCode::kUnavailable);
  begin();
  test::AskedHistory::next(history.reads).done(std::vector<BlockRange>{{{0}, {1}}});
  base_.answer('b');
  test::AskedHistory::next(history.locates).done(away);
  EXPECT_EQ(result_->error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(reader.in_flight(), 0u);
}

TEST_F(HistoryReaderTest, AnswersManyQuestionsOfManyMomentsInTheirOrder) {
  rig_.write(1, {{1}, {3}}, 'a');
  rig_.write(2, {{3}, {3}}, 'r', replication::WriteKind::kRepeated);
  rig_.write(3, {{2}, {1}}, 0, replication::WriteKind::kZero);
  rig_.capture({{8}, {2}}, 'k');
  read_each({{{3}, {1}}, {{3}, {2}}, {{2}, {3}}, {{9}, {0}}, {{1}, {3}}, {{4}, {3}}, {{3}, {2}}});
  EXPECT_EQ(text_of_slices(), "ar0karr");
  EXPECT_TRUE(base_.ranges.empty());
  EXPECT_EQ(reader_.in_flight(), 0u);
  read_each({{{1}, {1}}, {{2}, {1}}, {{3}, {1}}});
  EXPECT_EQ(text_of_slices(), "aaa");
  EXPECT_EQ((*slices_)->size(), 1u) << "as they were read";
}

TEST_F(HistoryReaderTest, ManyQuestionsReachIntoTheBase) {
  rig_.write(1, {{4}, {1}}, 'a');
  read_each({{{2}, {1}}, {{3}, {1}}, {{4}, {1}}});
  EXPECT_EQ(text_of_slices(), "...");
  EXPECT_EQ(base_.ranges, (std::vector<BlockRange>{{{2}, {2}}})) << "neighbours at once";
  rig_.capture({{3}, {1}}, 'm');
  base_.answer('x');  // 3 has been overwritten by now
  rig_.executor.run_ready();
  EXPECT_EQ(text_of_slices(), "xma");
  EXPECT_EQ(reader_.in_flight(), 0u);

  base_.moves = false;
  read_each({{{6}, {1}}});
  rig_.capture({{6}, {1}}, 'm');
  base_.answer('b');
  EXPECT_EQ(text_of_slices(), "b");

  read_each({{{7}, {1}}, {{4}, {1}}});
  base_.answer('b', Error{ErrorCode::kIo, "gone"});
  EXPECT_EQ(text_of_slices(), "io");
  EXPECT_EQ(reader_.in_flight(), 0u);
}

TEST_F(HistoryReaderTest, ManyQuestionsToAHistoryThatIsAwayAreAnError) {
  test::AskedHistory history;
  HistoryReader reader(history, base_);
  const Error away{ErrorCode::kUnavailable, "the logger is away"};
  const auto begin = [&] {
    slices_.reset();
    reader.read_each({{{0}, {3}}},
                     [this](Result<std::vector<PayloadSlice>> r) { slices_ = std::move(r); });
  };
  begin();
  test::AskedHistory::next(history.locates).done(away);
  EXPECT_EQ(text_of_slices(), "unavailable");
  begin();
  test::AskedHistory::next(history.locates)
      .done(History::Located{{{{{0}, {1}}, PastRun::Source::kBase, false, {}}}, {}});
  base_.answer('b');
  EXPECT_EQ(text_of_slices(), "...") << "it is looked at again";
  test::AskedHistory::next(history.locates).done(away);
  EXPECT_EQ(text_of_slices(), "unavailable");
}

}  // namespace
}  // namespace mariner::volume
