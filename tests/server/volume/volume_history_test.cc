#include "server/volume/volume_history.h"

#include <gtest/gtest.h>

namespace mariner::volume {
namespace {

using logging::Record;
using logging::RecordType;

constexpr BlockCount kBlocks{16};

class VolumeHistoryTest : public ::testing::Test {
 protected:
  static Record write(std::uint64_t sequence, std::uint64_t time) {
    Record record;
    record.sequence = {sequence};
    record.time = {time};
    record.extent = {{0}, {1}};
    record.payload_blocks = 1;
    return record;
  }
  Result<void> add(const Record& record) {
    const Result<bool> taken = history_.add(record, kBlocks);
    if (!taken) return taken.error();
    taken_ += *taken ? 1 : 0;
    return {};
  }

  VolumeHistory history_;
  int taken_ = 0;  // that belong into the index
};

TEST_F(VolumeHistoryTest, TakesWritesInOrderAndTheirFrontier) {
  Record second = write(2, 20);
  second.frontier = {1};
  EXPECT_TRUE(add(write(1, 10)));
  EXPECT_TRUE(add(second));
  EXPECT_EQ(history_.last, SequenceNumber{2});
  EXPECT_EQ(history_.last_time, VersionTime{20});
  EXPECT_EQ(history_.frontier, SequenceNumber{1});
  EXPECT_EQ(taken_, 2);
}

TEST_F(VolumeHistoryTest, ABatchThatStandsThereTwiceCountsOnce) {
  EXPECT_TRUE(add(write(1, 10)));
  EXPECT_TRUE(add(write(1, 10)));
  EXPECT_EQ(taken_, 1);
}

TEST_F(VolumeHistoryTest, VoidsUseTheirNumbersUp) {
  Record lost;
  lost.type = RecordType::kVoid;
  lost.sequence = {5};
  lost.target_sequence = {9};
  EXPECT_TRUE(add(lost));
  EXPECT_EQ(history_.last, SequenceNumber{9});
  EXPECT_EQ(taken_, 0);
}

TEST_F(VolumeHistoryTest, KnowsHowMuchIsBehindTheImage) {
  EXPECT_TRUE(add(write(1, 10)));
  const std::uint64_t each = history_.unapplied_bytes.bytes();
  EXPECT_EQ(each, write(1, 10).extent.count.bytes());
  EXPECT_TRUE(add(write(2, 20)));
  EXPECT_EQ(history_.unapplied_bytes.bytes(), 2 * each);
  history_.set_horizon({.moment = {}, .last = {}, .frontier = {2}, .given_up = {}});
  EXPECT_EQ(history_.unapplied_bytes.bytes(), 0u);
}

TEST_F(VolumeHistoryTest, AHorizonBeforeWhichTheLogHasNothingMoreToSayNamesWhatIsLost) {
  EXPECT_TRUE(add(write(1, 10)));
  EXPECT_TRUE(add(write(2, 20)));
  history_.set_horizon({.moment = {{2}, {20}}, .last = {1}, .frontier = {1}, .given_up = {1}});
  EXPECT_TRUE(history_.lost().empty());
  EXPECT_EQ(history_.settled, SequenceNumber{2});
  history_.set_horizon({.moment = {{5}, {50}}, .last = {1}, .frontier = {1}, .given_up = {1}});
  ASSERT_EQ(history_.lost().size(), 1u);
  EXPECT_EQ(history_.lost()[0].first, SequenceNumber{3});
  EXPECT_EQ(history_.lost()[0].last, SequenceNumber{5});
  EXPECT_EQ(history_.last, SequenceNumber{5});
}

TEST_F(VolumeHistoryTest, RefusesWhatCannotBe) {
  EXPECT_TRUE(add(write(1, 10)));
  Record outside = write(2, 20);
  outside.extent = {{15}, {2}};
  Record early = write(2, 10);
  Record ahead = write(2, 20);
  ahead.frontier = {2};
  Record unknown = write(2, 20);
  unknown.type = RecordType::kEncoded;
  for (const Record& record : {outside, early, ahead, unknown}) {
    const Result<void> added = add(record);
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().code, ErrorCode::kCorrupt);
  }
  EXPECT_EQ(history_.last, SequenceNumber{1});
  EXPECT_TRUE(add(write(2, 20)));
}

}  // namespace
}  // namespace mariner::volume
