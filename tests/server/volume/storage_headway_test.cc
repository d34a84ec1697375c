// What a storage keeps of how far it has got, and what the next one makes of it.
#include <string>

#include "tests/server/volume/stored_volume_fixture.h"

namespace mariner::volume {
namespace {

// A rollback of blocks 1 to 5, at #20.
class StorageHeadwayTest : public StoredVolumeTest {
 protected:
  ~StorageHeadwayTest() override { close(); }
  void close() {
    stored_->close();
    while (!history_.locates.empty()) {
      AskedHistory::next(history_.locates).done(Error{ErrorCode::kUnavailable, "the test is over"});
    }
    executor_.run_until_idle();
  }
  void make(std::uint64_t unordered_bytes_max = UINT64_MAX, std::uint64_t memory_max = 1u << 20) {
    options_ = {.pending_memory_max = memory_max,
                .portion_bytes_max = kBlockBytes,
                .unordered_bytes_max = unordered_bytes_max};
    StoredVolumeTest::make({.frontier = {5}, .last = {5}}, options_);
  }
  // As a restart does when writes up to `last` have changed `since_frontier`, and those behind the
  // headway `since_then`.
  void make_again(std::uint64_t last, std::vector<BlockRange> since_frontier,
                  std::vector<BlockRange> since_then) {
    close();
    stored_.reset();
    Headway headway(headway_.kept());
    Storage::Found found{.frontier = {5}, .last = {last}};
    found.unapplied = headway.lacking(since_frontier, since_then);
    found.restores = true;
    found.headway = std::move(headway);
    StoredVolumeTest::make(std::move(found), options_);
    executor_.advance(std::chrono::milliseconds(1));
  }
  void roll_back() {
    replication::WriteMessage message;
    message.stamp.sequence = {20};
    message.write.kind = replication::WriteKind::kRollback;
    message.write.target = {3};
    message.write.changed =
        std::make_shared<const std::vector<BlockRange>>(std::vector<BlockRange>{{{1}, {5}}});
    stored_->storage().prepare(message);
    stored_->storage().commit({20});
    executor_.run_ready();
  }
  // Of one portion.
  void answer_bytes() {
    ASSERT_FALSE(history_.locates.empty());
    const BlockRange range = history_.locates[0].lookups.at(0).range;
    answer({run(range, Source::kLog, 'p')});
  }
  std::vector<BlockRange> left() const {
    return Headway(headway_.kept()).lacking({{{0}, {kBlocks}}}, {});
  }

  Storage::Options options_;
};

TEST_F(StorageHeadwayTest, AStartGoesOnWhereTheLastOneWas) {
  make();
  roll_back();
  answer_bytes();
  executor_.advance(std::chrono::seconds(1));
  answer_bytes();
  EXPECT_EQ(image(), "ippiii");
  EXPECT_EQ(headway_.kept().statement.as_of, SequenceNumber{20});
  EXPECT_EQ(left(), (std::vector<BlockRange>{{{3}, {3}}}));
  make_again(20, {{{1}, {5}}}, {});
  const Storage::RestoreProgress progress = stored_->storage().restore_progress();
  EXPECT_EQ(progress.total_bytes, 5 * kBlockBytes);
  EXPECT_EQ(progress.left_bytes, 3 * kBlockBytes);
  EXPECT_EQ(progress.bytes_per_second, 0u) << "by this start";
  EXPECT_EQ(durable_, SequenceNumber{0});
  for (int i = 0; i < 3; ++i) answer_bytes();
  EXPECT_EQ(image(), "ippppp");
  EXPECT_EQ(durable_, SequenceNumber{20});
  ASSERT_TRUE(restored_);
  EXPECT_EQ(restored_->total_bytes, 5 * kBlockBytes);
  EXPECT_EQ(headway_.kept().statement.as_of, SequenceNumber{0}) << "nothing is left of it";
}

// However soon each of them ends, and though each uses numbers of its own.
TEST_F(StorageHeadwayTest, EachStartKeepsWhatItFetchesFirst) {
  make();
  roll_back();
  for (std::uint64_t next = 2; next < 6; ++next) {
    answer_bytes();
    EXPECT_EQ(left(), (std::vector<BlockRange>{{{next}, {6 - next}}}));
    headway_kept_ = Error{ErrorCode::kIo, "killed"};
    close();
    headway_kept_ = {};
    make_again(20 + next, {{{1}, {5}}}, {});
  }
}

TEST_F(StorageHeadwayTest, WhatIsFetchedInTheOrderOfTheLogIsNotFetchedAgain) {
  make(0);
  roll_back();
  std::vector<PastRun> runs;
  for (const std::uint64_t write : {3, 1, 2, 5, 4}) {
    runs.push_back({{{1 + runs.size()}, {1}}, Source::kLog, false, {write}});
  }
  answer(std::move(runs));
  answer_bytes();
  executor_.advance(std::chrono::seconds(1));
  answer_bytes();
  EXPECT_EQ(image(), "iippii") << "of the first writes";
  EXPECT_EQ(left(), (std::vector<BlockRange>{{{1}, {1}}, {{4}, {12}}})) << "behind 5 nobody looked";
}

TEST_F(StorageHeadwayTest, IsKeptNowAndThenAndAtTheEnd) {
  make();
  roll_back();
  for (int i = 0; i < 4; ++i) answer_bytes();
  EXPECT_EQ(kept_headways_, 1);
  EXPECT_EQ(left(), (std::vector<BlockRange>{{{2}, {4}}}));
  stored_->close();
  EXPECT_EQ(kept_headways_, 2);
  EXPECT_EQ(left(), (std::vector<BlockRange>{{{5}, {1}}}));
}

TEST_F(StorageHeadwayTest, WhatWasNotKeptIsKeptTheNextTime) {
  make();
  headway_kept_ = Error{ErrorCode::kIo, "the store is full"};
  roll_back();
  answer_bytes();
  headway_kept_ = {};
  executor_.advance(std::chrono::seconds(1));
  answer_bytes();
  EXPECT_EQ(left(), (std::vector<BlockRange>{{{3}, {3}}}));
}

// In memory it would be in the log's writes behind the headway.
TEST_F(StorageHeadwayTest, WhatIsWrittenAnewAndNotInMemoryIsLeftAgain) {
  make(UINT64_MAX, 0);
  roll_back();
  answer_bytes();
  answer_bytes();
  write(21, {{0}, {2}}, 'n');
  executor_.advance(std::chrono::seconds(3));
  for (int i = 0; i < 3; ++i) answer_bytes();
  stored_->close();
  EXPECT_EQ(headway_.kept().statement.as_of, SequenceNumber{21});
  EXPECT_EQ(left().front(), (BlockRange{{0}, {2}}));
}

TEST_F(StorageHeadwayTest, WhatWasWrittenBehindItIsFetchedByTheNextStart) {
  make();
  roll_back();
  answer_bytes();
  executor_.advance(std::chrono::seconds(1));
  answer_bytes();
  make_again(25, {{{0}, {6}}}, {{{0}, {2}}});
  std::vector<BlockRange> asked;
  while (!history_.locates.empty()) {
    asked.push_back(history_.locates[0].lookups.at(0).range);
    answer_bytes();
  }
  EXPECT_EQ(asked,
            (std::vector<BlockRange>{{{0}, {1}}, {{1}, {1}}, {{3}, {1}}, {{4}, {1}}, {{5}, {1}}}));
  EXPECT_EQ(durable_, SequenceNumber{25});
}

}  // namespace
}  // namespace mariner::volume
