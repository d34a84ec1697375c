#include "server/volume/throttle.h"
#include "tests/server/volume/stored_volume_fixture.h"

namespace mariner::volume {
namespace {

class StorageCatchUpTest : public StoredVolumeTest {
 protected:
  // Block 1 is in the image, and block 2 waits for a time that does not come.
  void rest() {
    make({.frontier = {5}, .last = {5}}, {.catch_up = &slow_});
    missed(20, {{1}, {1}});
    apply();
    answer({run({{1}, {1}}, Source::kLog, 'h')});
    missed(30, {{2}, {1}});
    apply();
  }

  Throttle slow_{1};
};

TEST_F(StorageCatchUpTest, WhatWasMissedIsWhatTheHistorySays) {
  make({.frontier = {5}, .last = {5}});
  bool caught_up = false;
  stored_->storage().catch_up({5}, {20}, {20}, [&] { caught_up = true; });
  AskedHistory::Changed asked = AskedHistory::next(history_.changes);
  EXPECT_EQ(asked.from, SequenceNumber{5});
  EXPECT_EQ(asked.to, SequenceNumber{20});
  const std::vector<BlockRange> extents{{{1}, {2}}, {{4}, {1}}};
  asked.portion(std::span(extents).first(1));
  // It breaks off, and is asked again.
  asked.done(Error{ErrorCode::kUnavailable, "away"});
  EXPECT_FALSE(caught_up);
  EXPECT_TRUE(history_.changes.empty());
  executor_.advance(std::chrono::milliseconds(1100));
  asked = AskedHistory::next(history_.changes);
  asked.portion(extents);
  asked.done({});
  EXPECT_TRUE(caught_up);
  write(21, {{2}, {1}}, 'n');
  begin_read({{1}, {1}});
  AskedHistory::Read read = AskedHistory::next(history_.reads);
  EXPECT_EQ(read.at, SequenceNumber{20});
  std::memset(read.to.data(), 'h', read.to.size());
  read.done(std::vector<BlockRange>{});
  executor_.run_ready();
  EXPECT_EQ(read_, "h");
  apply();
  EXPECT_EQ(history_.locates.front().lookups.at(0).at, SequenceNumber{20});
  answer({run({{1}, {1}}, Source::kLog, 'h'), run({{4}, {1}}, Source::kLog, 'g')}, 21);
  EXPECT_EQ(image(), "ihnigi");
  EXPECT_EQ(durable_, SequenceNumber{21});
}

TEST_F(StorageCatchUpTest, WhatIsForgottenIsNeverSeenAndGrantedAnew) {
  make({.frontier = {5}, .last = {5}});
  const std::uint64_t granted = stored_->storage().granted_bytes();
  WriteMessage message;
  message.stamp = {Epoch{1}, SequenceNumber{6}, VersionTime{6}};
  message.write.kind = replication::WriteKind::kZero;
  message.write.extent = {{1}, {1}};
  stored_->storage().prepare(message);
  stored_->storage().forget();
  EXPECT_EQ(stored_->storage().granted_bytes(), granted + kBlockBytes);
  // The numbers go on behind what the next coordinator has voided.
  stored_->storage().catch_up({5}, {70}, {70}, [] {});
  AskedHistory::next(history_.changes).done({});
  write(71, {{2}, {1}}, 'n');
  apply();
  EXPECT_EQ(image(), "iiniii");
}

TEST_F(StorageCatchUpTest, WhoStopsIsNotCaughtUpAnyMore) {
  make({.frontier = {5}, .last = {5}});
  bool caught_up = false;
  stored_->storage().catch_up({5}, {20}, {20}, [&] { caught_up = true; });
  EXPECT_FALSE(stored_->idle());
  stored_->close();
  AskedHistory::next(history_.changes).done({});
  EXPECT_TRUE(stored_->idle());
  EXPECT_FALSE(caught_up);
}

TEST_F(StorageCatchUpTest, ItTellsHowFarItIs) {
  using Progress = replication::CatchUpProgress;
  make({.frontier = {5}, .last = {5}});
  EXPECT_EQ(stored_->storage().catch_up_progress(), Progress{});
  missed(20, {{1}, {4}});
  EXPECT_EQ(fetched_, (Progress{4 * kBlockBytes, 4 * kBlockBytes, 0}));
  write(21, {{8}, {1}}, 'n');
  apply();
  EXPECT_EQ(image().substr(0, 1), "i");
  EXPECT_EQ(stored_->storage().catch_up_progress(),
            (Progress{4 * kBlockBytes, 4 * kBlockBytes, 0}));
  answer({run({{1}, {4}}, Source::kLog, 'h')}, 21);
  EXPECT_EQ(image(), "ihhhhi");
  EXPECT_EQ(fetched_, Progress{}) << "all";
}

TEST_F(StorageCatchUpTest, AnAnswerThatBreaksOffCountsOnce) {
  make({.frontier = {5}, .last = {5}});
  stored_->storage().catch_up({5}, {20}, {20}, [] {});
  AskedHistory::Changed asked = AskedHistory::next(history_.changes);
  const std::vector<BlockRange> extents{{{1}, {2}}};
  asked.portion(extents);
  asked.done(Error{ErrorCode::kUnavailable, "away"});
  EXPECT_EQ(stored_->storage().catch_up_progress().total_bytes, 2 * kBlockBytes);
  executor_.advance(std::chrono::milliseconds(1100));
  AskedHistory::Changed again = AskedHistory::next(history_.changes);
  again.done({});
  EXPECT_EQ(stored_->storage().catch_up_progress().total_bytes, 2 * kBlockBytes);
}

TEST_F(StorageCatchUpTest, WhatWasMissedIsFetchedAtItsRateAndWhatIsWrittenIsNot) {
  Throttle throttle(kBlockBytes);
  make({.frontier = {5}, .last = {5}}, {.catch_up = &throttle});
  missed(20, {{1}, {4}});
  apply();
  answer({run({{1}, {4}}, Source::kLog, 'h')});
  EXPECT_EQ(image(), "ihhhhi") << "nothing was fetched before";
  write(21, {{0}, {1}}, 'n');
  apply();
  EXPECT_EQ(image(), "nhhhhi");
  missed(30, {{2}, {2}});
  executor_.advance(std::chrono::milliseconds(1500));
  EXPECT_TRUE(history_.locates.empty()) << "four seconds are not over";
  apply();
  answer({run({{2}, {2}}, Source::kLog, 'g')});
  EXPECT_EQ(image(), "nhgghi");
}

TEST_F(StorageCatchUpTest, WhoRestsStopsAtOnce) {
  rest();
  EXPECT_TRUE(history_.locates.empty());
  EXPECT_FALSE(stored_->idle());
  stored_->close();
  executor_.run_ready();
  EXPECT_TRUE(stored_->idle());
  EXPECT_EQ(image(), "ihiiii");
}

TEST_F(StorageCatchUpTest, WhoRestsStartsOverAtOnce) {
  rest();
  bool empty = false;
  stored_->storage().start_over([&] { empty = true; });
  executor_.run_ready();
  EXPECT_TRUE(empty);
  EXPECT_EQ(image(), "000000");
  EXPECT_EQ(stored_->storage().catch_up_progress(), replication::CatchUpProgress{});
}

}  // namespace
}  // namespace mariner::volume
