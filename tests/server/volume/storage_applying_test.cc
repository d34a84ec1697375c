// Tables and the backlog in turn.
#include <array>
#include <map>
#include <random>
#include <string>

#include "tests/server/volume/stored_volume_fixture.h"

namespace mariner::volume {
namespace {

using StorageApplyingTest = StoredVolumeTest;

TEST_F(StorageApplyingTest, WhatIsWrittenGoesOnWhileTheHistoryIsAskedForTheRest) {
  make({.frontier = {5}, .last = {5}});
  missed(20, {{1}, {2}});
  apply();
  ASSERT_EQ(history_.locates.size(), 1u);
  write(21, {{0}, {1}}, 'n');
  AskedHistory::next(history_.locates).done(Error{ErrorCode::kUnavailable, "away"});
  executor_.run_ready();
  apply();
  AskedHistory::next(history_.locates).done(Error{ErrorCode::kUnavailable, "away"});
  executor_.run_ready();
  EXPECT_EQ(failures_, 1) << "told once";
  EXPECT_EQ(image(), "niiiii") << "it waits for nobody";
  EXPECT_EQ(durable_, SequenceNumber{0}) << "but what was missed is older";
  apply();
  answer({run({{1}, {2}}, Source::kLog, 'h')});
  EXPECT_EQ(image(), "nhhiii");
  EXPECT_EQ(durable_, SequenceNumber{21});
}

TEST_F(StorageApplyingTest, WhatIsWrittenAnewNeedNotBeFetched) {
  Throttle throttle(2 * kBlockBytes);
  make({.frontier = {5}, .last = {5}}, {.catch_up = &throttle});
  missed(20, {{1}, {2}});
  apply();
  answer({run({{1}, {2}}, Source::kLog, 'h')});
  missed(30, {{1}, {4}});
  apply();
  write(31, {{2}, {2}}, 'n');
  apply();
  answer({run({{1}, {4}}, Source::kLog, 'g')});
  EXPECT_EQ(image(), "ignngi") << "it was under way";
  missed(40, {{1}, {4}});
  write(41, {{1}, {4}}, 'm');
  apply();
  EXPECT_EQ(image(), "immmmi");
  EXPECT_TRUE(history_.locates.empty());
  EXPECT_EQ(durable_, SequenceNumber{41});
}

TEST_F(StorageApplyingTest, WhoFetchesWhatItMissedRestsWhileHostsWrite) {
  make({.frontier = {5}, .last = {5}}, {.portion_bytes_max = kBlockBytes});
  missed(20, {{1}, {3}});
  apply();
  const auto fetch = [&](std::uint64_t block) {
    executor_.advance(std::chrono::seconds(1));
    answer({run({{block}, {1}}, Source::kLog, 'h')});
  };
  write(21, {{0}, {1}}, 'n');
  fetch(1);
  EXPECT_TRUE(history_.locates.empty());
  executor_.advance(std::chrono::milliseconds(2900));
  EXPECT_TRUE(history_.locates.empty());
  executor_.advance(std::chrono::milliseconds(200));
  fetch(2);
  fetch(3);
  EXPECT_EQ(image(), "nhhhii") << "when nobody writes there is no need for a rest";
}

// The log may have given up what it lacks, and would answer as if it had it.
TEST_F(StorageApplyingTest, WhoRestsAsksNothingAndWritesNothing) {
  make({.frontier = {5}, .last = {5}});
  missed(20, {{1}, {2}});
  apply();
  stored_->storage().rest(true);
  answer({run({{1}, {2}}, Source::kLog, 'h')});
  EXPECT_EQ(image(), "iiiiii");
  EXPECT_TRUE(history_.locates.empty());
  write(21, {{0}, {1}}, 'n');
  apply();
  apply();
  EXPECT_EQ(image(), "iiiiii");
  EXPECT_TRUE(history_.locates.empty());
  EXPECT_EQ(failures_, 0);
  EXPECT_EQ(durable_, SequenceNumber{0});
  stored_->storage().rest(false);
  executor_.run_ready();
  answer({run({{1}, {2}}, Source::kLog, 'h')});
  EXPECT_EQ(image(), "nhhiii");
  EXPECT_EQ(durable_, SequenceNumber{21});
}

// A rollback of blocks 1 to 5, at #20.
class StorageRestoringTest : public StorageApplyingTest {
 protected:
  using StorageApplyingTest::StorageApplyingTest;
  ~StorageRestoringTest() override {
    stored_->close();
    while (!history_.locates.empty()) {
      AskedHistory::next(history_.locates).done(Error{ErrorCode::kUnavailable, "the test is over"});
    }
  }
  void roll_back(SequenceNumber at = {20}) {
    replication::WriteMessage message;
    message.stamp.sequence = at;
    message.write.kind = replication::WriteKind::kRollback;
    message.write.target = {3};
    message.write.changed =
        std::make_shared<const std::vector<BlockRange>>(std::vector<BlockRange>{{{1}, {5}}});
    stored_->storage().prepare(message);
    stored_->storage().commit(at);
    executor_.run_ready();
  }
  // Where they stand, in the order of blocks 1 to 5.
  void answer_writes(std::array<std::uint64_t, 5> writes) {
    std::vector<PastRun> runs;
    for (std::uint64_t i = 0; i < 5; ++i) {
      runs.push_back({{{1 + i}, {1}}, Source::kLog, false, {writes[i]}});
    }
    answer(std::move(runs));
  }
  // Until all is fetched; in which order.
  std::vector<std::uint64_t> answer_each() {
    std::vector<std::uint64_t> order;
    while (!history_.locates.empty()) {
      EXPECT_LE(history_.locates.size(), 2u);
      order.push_back(asked_for().value);
      answer_bytes();
      executor_.run_ready();
    }
    return order;
  }
  Lbn asked_for() const { return history_.locates.at(0).lookups.at(0).range.first; }
  void answer_bytes() {
    ASSERT_FALSE(history_.locates.empty());
    const BlockRange range = history_.locates[0].lookups.at(0).range;
    answer({run(range, Source::kLog, 'p')});
  }
};

TEST_F(StorageRestoringTest, BeginsAtOnceInTheOrderOfTheLog) {
  make({.frontier = {5}, .last = {5}},
       {.portion_bytes_max = kBlockBytes, .unordered_bytes_max = 0});
  roll_back();
  EXPECT_TRUE(stored_->storage().restoring());
  answer_writes({3, 1, 2, 5, 4});
  EXPECT_EQ(answer_each(), (std::vector<std::uint64_t>{2, 3, 1, 5, 4}));
  EXPECT_EQ(image(), "ippppp");
  EXPECT_EQ(durable_, SequenceNumber{20});
  EXPECT_FALSE(stored_->storage().restoring());
}

TEST_F(StorageRestoringTest, TheOrderOfTheOneBeforeIsNotTakenForTheNext) {
  make({.frontier = {5}, .last = {5}},
       {.portion_bytes_max = kBlockBytes, .unordered_bytes_max = 0});
  roll_back();
  answer_writes({3, 1, 2, 5, 4});
  answer_each();
  EXPECT_EQ(durable_, SequenceNumber{20});
  roll_back({30});
  answer_writes({9, 8, 7, 11, 10});
  EXPECT_EQ(answer_each(), (std::vector<std::uint64_t>{3, 2, 1, 5, 4}));
  EXPECT_EQ(durable_, SequenceNumber{30});
}

// Tables of which the past takes many turns to get to the backlog, while that is looked up.
class StorageMovingTest : public StorageRestoringTest {
 protected:
  static constexpr std::uint64_t kMany = 100;  // runs

  StorageMovingTest() : StorageRestoringTest(256) {
    make({.frontier = {5}, .last = {5}}, {.unordered_bytes_max = 0});
    roll_back();
    commit_change(21, {{{10}, {1}}});  // (it waits for no more)
    EXPECT_EQ(left_blocks(), 6u);
  }
  void prepare_change(std::uint64_t at, std::vector<BlockRange> changed) {
    replication::WriteMessage message;
    message.stamp.sequence = {at};
    message.write.kind = replication::WriteKind::kRollback;
    message.write.target = {3};
    message.write.changed = std::make_shared<const std::vector<BlockRange>>(std::move(changed));
    stored_->storage().prepare(message);
  }
  void commit_change(std::uint64_t at, std::vector<BlockRange> changed) {
    prepare_change(at, std::move(changed));
    stored_->storage().commit(SequenceNumber{at});
  }
  void turns(int count) {
    for (int turn = 0; turn < count; ++turn) executor_.turn();
  }
  static std::vector<BlockRange> many() {
    std::vector<BlockRange> all;
    for (std::uint64_t i = 0; i < kMany; ++i) all.push_back({{20 + 2 * i}, {1}});
    return all;
  }
  std::uint64_t left_blocks() const {
    return stored_->storage().restore_progress().left_bytes / kBlockBytes;
  }
  char in_image(std::uint64_t block) {
    return text_of(disk_.bytes({block * kBlockBytes, kBlockBytes}))[0];
  }
  void answer_next() {
    AskedHistory::Locate asked = AskedHistory::next(history_.locates);
    History::Located found;
    for (const History::Lookup& lookup : asked.lookups) {
      found.runs.push_back(run(lookup.range, Source::kLog, 'p'));
    }
    asked.done(std::move(found));
  }
  // Until nothing more is asked.
  void answer_all() {
    for (int i = 0; i < 100'000 && !(history_.locates.empty() && executor_.idle()); ++i) {
      if (history_.locates.empty()) {
        executor_.advance(std::chrono::milliseconds(10));
        continue;
      }
      answer_next();
      executor_.run_ready();
    }
  }
};

TEST_F(StorageMovingTest, TheNextTableIsOfThePastAlone) {
  stored_->storage().prepare(test::letter_write(22, {{0}, {1}}, 'n'));
  commit_change(23, many());
  turns(3);
  commit_change(24, {{{0}, {1}}});
  for (int i = 0; i < 100; ++i) {
    executor_.turn();
    ASSERT_EQ(left_blocks(), 7 + kMany) << "in turn " << i;
    ASSERT_EQ(durable_, SequenceNumber{0});
  }
  EXPECT_EQ(in_image(0), 'n');
  answer_all();
  EXPECT_EQ(durable_, SequenceNumber{24});
  EXPECT_EQ(image(), "pppppp");
  for (const BlockRange& range : many()) EXPECT_EQ(in_image(range.first.value), 'p');
}

TEST_F(StorageMovingTest, WhatIsWrittenMeanwhileIsAppliedThen) {
  commit_change(23, many());
  turns(2);
  write(24, {{0}, {1}}, 'n');
  executor_.advance(std::chrono::seconds(5));
  EXPECT_EQ(in_image(0), 'n') << "though the backlog is still being looked up";
  EXPECT_EQ(left_blocks(), 6 + kMany);
}

TEST_F(StorageMovingTest, WhatWasFetchedLeavesTheBacklogSomeRunsInATurn) {
  commit_change(23, many());
  std::uint64_t left = left_blocks();
  ASSERT_EQ(left, 6 + kMany);
  for (int i = 0; i < 1000 && left > 0; ++i) {
    if (!history_.locates.empty()) answer_next();
    executor_.turn();
    EXPECT_GE(left_blocks() + 64, left) << "in turn " << i;
    left = left_blocks();
    EXPECT_EQ(durable_ == SequenceNumber{23}, left == 0);
  }
  EXPECT_EQ(left, 0u);
  EXPECT_TRUE(restored_.has_value());
}

TEST_F(StorageMovingTest, WhoStopsDoesNotWaitForAllOfIt) {
  write(22, {{0}, {1}}, 'n');
  commit_change(23, many());
  turns(2);
  stored_->storage().stop();
  answer_all();
  EXPECT_TRUE(stored_->storage().idle());
  EXPECT_EQ(durable_, SequenceNumber{0});
}

TEST_F(StorageMovingTest, WhoStartsOverForgetsIt) {
  write(22, {{0}, {1}}, 'n');
  commit_change(23, many());
  turns(2);
  bool empty = false;
  stored_->storage().start_over([&] { empty = true; });
  answer_all();
  EXPECT_TRUE(empty);
  EXPECT_EQ(image(), "000000");
  EXPECT_FALSE(stored_->storage().restoring());
  EXPECT_EQ(stored_->storage().lag_bytes(), 0u);
  EXPECT_EQ(durable_, SequenceNumber{0});
}

TEST_F(StorageRestoringTest, HoldsUpNobodyWhoWrites) {
  make({.frontier = {5}, .last = {5}}, {.lag_bytes_max = 4 * kBlockBytes});
  const std::uint64_t granted = stored_->storage().granted_bytes();
  roll_back();
  EXPECT_GE(stored_->storage().granted_bytes(), granted);
  EXPECT_EQ(stored_->storage().lag_bytes(), 5 * kBlockBytes);
  answer_bytes();
}

TEST_F(StorageRestoringTest, SaysHowFarItIsAndHowLongItTook) {
  make({.frontier = {5}, .last = {5}}, {.portion_bytes_max = kBlockBytes});
  roll_back();
  executor_.advance(std::chrono::seconds(2));
  answer_bytes();
  answer_bytes();
  const Storage::RestoreProgress progress = stored_->storage().restore_progress();
  EXPECT_EQ(progress.total_bytes, 5 * kBlockBytes);
  EXPECT_EQ(progress.left_bytes, 3 * kBlockBytes);
  EXPECT_EQ(progress.bytes_per_second, kBlockBytes);
  EXPECT_DOUBLE_EQ(progress.ratio(), 0.4);
  while (!history_.locates.empty()) answer_bytes();
  ASSERT_TRUE(restored_);
  EXPECT_EQ(restored_->total_bytes, 5 * kBlockBytes);
  EXPECT_EQ(restored_->left_bytes, 0u);
}

TEST_F(StorageRestoringTest, GoesNoFasterThanItMay) {
  Throttle throttle(kBlockBytes);
  make({.frontier = {5}, .last = {5}}, {.portion_bytes_max = kBlockBytes, .restore = &throttle});
  roll_back();
  answer_bytes();
  EXPECT_TRUE(history_.locates.empty());
  executor_.advance(std::chrono::milliseconds(950));
  EXPECT_TRUE(history_.locates.empty());
  executor_.advance(std::chrono::milliseconds(100));
  ASSERT_EQ(history_.locates.size(), 1u);
  answer_bytes();
  EXPECT_EQ(image(), "ippiii");
}

TEST_F(StorageRestoringTest, RestsWhileHostsAreBusy) {
  make({.frontier = {5}, .last = {5}}, {.portion_bytes_max = kBlockBytes});
  roll_back();
  for (int i = 0; i < 300; ++i) begin_read({{8}, {1}});
  executor_.advance(std::chrono::seconds(1));
  answer_bytes();
  EXPECT_EQ(image(), "ipiiii");
  executor_.advance(std::chrono::milliseconds(2900));
  EXPECT_TRUE(history_.locates.empty());
  executor_.advance(std::chrono::milliseconds(200));
  answer_bytes();
  EXPECT_EQ(image(), "ippiii");
  answer_bytes();
}

// Writes, blocks that were missed, rollbacks, failures and little memory in any order: reads are
// right, the image holds at any time what was durable or something newer, and holds all in the end.
class StorageApplyingCampaign : public StorageApplyingTest,
                                public ::testing::WithParamInterface<std::uint64_t> {
 protected:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  BlockRange some_blocks() {
    const std::uint64_t first = below(kBlocks);
    return {{first}, {1 + below(std::min<std::uint64_t>(5, kBlocks - first))}};
  }
  void wrote(BlockRange extent, char letter) {
    for (std::uint64_t at = extent.first.value; at < extent.end().value; ++at) {
      blocks_[at][committed_.value] = letter;
    }
  }
  char as_of(std::uint64_t block, std::uint64_t at) const {
    const auto& versions = blocks_[block];
    const auto next = versions.upper_bound(at);
    return next == versions.begin() ? 'i' : std::prev(next)->second;
  }
  void answer_one() {
    if (history_.locates.empty()) return;
    AskedHistory::Locate asked = AskedHistory::next(history_.locates);
    if (below(8) == 0) return asked.done(Error{ErrorCode::kUnavailable, "away"});
    History::Located found;
    for (const History::Lookup& lookup : asked.lookups) {
      for (std::uint64_t at = lookup.range.first.value; at < lookup.range.end().value; ++at) {
        found.runs.push_back(run({{at}, {1}}, Source::kLog, as_of(at, lookup.at.value)));
      }
    }
    asked.done(std::move(found));
  }
  void answer_reads() {
    while (!history_.reads.empty()) {
      AskedHistory::Read asked = AskedHistory::next(history_.reads);
      for (std::uint64_t i = 0; i < asked.range.count.value; ++i) {
        std::memset(&asked.to[i * kBlockBytes], as_of(asked.range.first.value + i, asked.at.value),
                    kBlockBytes);
      }
      asked.done(std::vector<BlockRange>{});
      executor_.run_ready();
    }
  }
  void act() {
    const BlockRange extent = some_blocks();
    const char letter = static_cast<char>('A' + below(26));
    switch (below(9)) {
      case 8: stored_->storage().rest(below(3) == 0); break;
      case 0:
        committed_ = {committed_.value + 1 + below(3)};
        wrote(extent, letter);
        stored_->storage().catch_up({committed_.value - 1}, committed_, committed_, [] {});
        tell_changed(extent);
        break;
      case 1: {  // blocks become what they were
        const std::uint64_t target =
            committed_.value - below(std::min<std::uint64_t>(9, committed_.value));
        std::map<std::uint64_t, char> then;
        for (std::uint64_t at = 0; at < kBlocks; ++at) then[at] = as_of(at, target);
        const SequenceNumber before = committed_;
        committed_ = {committed_.value + 1};
        for (std::uint64_t at = 0; at < kBlocks; ++at) blocks_[at][committed_.value] = then[at];
        stored_->storage().catch_up({target}, before, committed_, [] {});
        tell_changed({{0}, {kBlocks}});
        break;
      }
      case 2: executor_.advance(std::chrono::milliseconds(below(1500))); break;
      case 3:
        if (below(4) == 0) {
          disk_.fail_writes(1 + below(2), test::FaultyDisk::Remains::kSomeSectors);
        }
        break;
      case 4:
      case 5: answer_one(); break;
      default:
        committed_ = {committed_.value + 1};
        wrote(extent, letter);
        write(committed_.value, extent, letter);
    }
    executor_.run_ready();
  }
  void tell_changed(BlockRange extent) {
    AskedHistory::Changed asked = AskedHistory::next(history_.changes);
    asked.portion(std::span(&extent, 1));
    asked.done({});
  }
  void check() {
    const std::uint64_t durable = stored_->storage().durable().value;
    const std::string image = text_of(disk_.bytes({0, kBlocks * kBlockBytes}));
    for (std::uint64_t at = 0; at < kBlocks; ++at) {
      bool held = as_of(at, durable) == image[at];
      const auto& versions = blocks_[at];
      for (auto it = versions.upper_bound(durable); it != versions.end(); ++it) {
        held |= it->second == image[at];
      }
      ASSERT_TRUE(held) << "block " << at << " has " << image[at] << ", durable is " << durable;
    }
  }
  void check_read() {
    const BlockRange range = some_blocks();
    begin_read(range);
    answer_reads();
    std::string expected;
    for (std::uint64_t at = range.first.value; at < range.end().value; ++at) {
      expected += as_of(at, committed_.value);
    }
    ASSERT_EQ(read_, expected);
  }

  std::mt19937_64 random_{GetParam()};
  std::map<std::uint64_t, char> blocks_[kBlocks];  // the contents that came with each write
};

TEST_P(StorageApplyingCampaign, TheImageGetsWhatItIsToHold) {
  make({.frontier = {5}, .last = {5}},
       {.pending_memory_max = (2 + below(6)) * kBlockBytes,
        .apply_delay = std::chrono::milliseconds(100),
        .portion_bytes_max = (1 + below(4)) * kBlockBytes,
        .unordered_bytes_max = below(2) == 0 ? 0 : kBlocks * kBlockBytes});
  for (int i = 0; i < 400 && !HasFatalFailure(); ++i) {
    act();
    check();
    check_read();
  }
  stored_->storage().rest(false);
  for (int i = 0; i < 500 && stored_->storage().durable() < committed_; ++i) {
    executor_.advance(std::chrono::milliseconds(100));
    answer_one();
    executor_.run_ready();
  }
  EXPECT_EQ(durable_, committed_);
  check();
  EXPECT_EQ(stored_->storage().lag_bytes(), 0u);
  EXPECT_EQ(stored_->storage().catch_up_progress(), replication::CatchUpProgress{});
  EXPECT_FALSE(stored_->storage().restoring());
  EXPECT_FALSE(stored_->storage().oldest_unapplied());
}

INSTANTIATE_TEST_SUITE_P(Seeds, StorageApplyingCampaign, ::testing::Range<std::uint64_t>(1, 101));

}  // namespace
}  // namespace mariner::volume
