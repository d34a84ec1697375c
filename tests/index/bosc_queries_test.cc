#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "index/bosc.h"
#include "tests/index/bosc_rig.h"

namespace mariner::test {
namespace {

using index::BlockView;

TEST(BoscQueries, ABlockThatWasNeverWrittenIsAnsweredWithoutARead) {
  BoscRig rig;
  rig.add(3, 1, 5);
  EXPECT_EQ(rig.compare(), "");
  EXPECT_EQ(rig.store->statistics().reads, 0u);
  EXPECT_EQ(rig.store->queued({3}), 1u);
}

TEST(BoscQueries, AQueryForWhichTheQueueIsEnoughDoesNotRead) {
  const auto rig = written_rig();
  rig->add(7, 2, 9);
  std::string seen;
  bool answered = false;
  rig->store->query(
      {7},
      [&](const BlockView& view) {
        seen = view.complete ? "all" : "queue";
        EXPECT_EQ(view.pending.count(), 1u);
        return true;
      },
      [&](const Result<bool>& r) { answered = r && *r; });
  EXPECT_TRUE(answered) << "before the call returned";
  EXPECT_EQ(seen, "queue");
  EXPECT_EQ(rig->store->statistics().query_reads, 0u);
}

TEST(BoscQueries, ABlockThatIsReadHasItsQueueAppliedAtOnce) {
  const auto rig = written_rig();
  rig->add(7, 2, 9);
  rig->add(7, 2, 1);
  ASSERT_EQ(rig->store->queued({7}), 2u);
  EXPECT_EQ((*rig->read(7))[2], 10u);
  EXPECT_EQ(rig->store->queued({7}), 0u);
  EXPECT_EQ(rig->store->queued_bytes(), 4096u) << "one dirty block instead";
  rig->add(7, 2, 1);
  EXPECT_EQ(rig->store->queued({7}), 0u);
  EXPECT_EQ((*rig->read(7))[2], 11u);
  EXPECT_EQ(rig->store->statistics().reads, 1u);
  ASSERT_TRUE(rig->commit_all());
  EXPECT_EQ(rig->store->statistics().reads, 1u) << "the commit takes it from memory";
  rig->crash();
  EXPECT_EQ(rig->compare(), "");
}

TEST(BoscQueries, QueriesOfOneBlockShareItsRead) {
  const auto rig = written_rig();
  int answers = 0;
  for (int i = 0; i < 5; ++i) {
    rig->store->query(
        {7}, [](const BlockView& view) { return view.complete; },
        [&](const Result<bool>& r) { answers += r && *r ? 1 : 0; });
  }
  rig->turn(3);
  EXPECT_EQ(answers, 5);
  EXPECT_EQ(rig->store->statistics().query_reads, 1u);
}

TEST(BoscQueries, WhatIsReadAheadIsReadOnceAndWaitedForByItsQuery) {
  const auto rig = written_rig();
  rig->disk->hold();
  rig->store->read_ahead({7});
  rig->store->read_ahead({7});
  bool answered = false;
  rig->store->query(
      {7}, [](const BlockView& view) { return view.complete; },
      [&](const Result<bool>& r) { answered = r && *r; });
  rig->turn(3);
  EXPECT_FALSE(answered);
  rig->disk->release();
  rig->turn(3);
  EXPECT_TRUE(answered);
  rig->store->read_ahead({7});
  rig->turn(3);
  EXPECT_EQ(rig->store->statistics().query_reads, 1u) << "it is in memory";
  EXPECT_EQ(rig->compare(), "");
}

TEST(BoscQueries, WhatStandsBehindItInTheFileIsReadAheadWithIt) {
  const auto rig = written_rig();
  const std::size_t most = rig->store->read_ahead_max();
  ASSERT_GE(most, 2u);
  rig->store->read_ahead({1});
  rig->turn(3);
  EXPECT_EQ(rig->store->statistics().reads, 1u);
  const std::size_t count = std::min<std::size_t>(most, 7);  // of a group of 8
  EXPECT_EQ(rig->store->statistics().query_reads, count);
  for (std::uint32_t i = 1; i <= count; ++i) ASSERT_TRUE(rig->read(i));
  EXPECT_EQ(rig->store->statistics().reads, 1u) << "they are in memory";
  EXPECT_EQ(rig->compare(), "");
}

TEST(BoscQueries, OneThatCannotBeReadDoesNotHinderThoseThatAreReadAheadWithIt) {
  const auto rig = written_rig();
  ASSERT_GE(rig->store->read_ahead_max(), 2u);
  rig->disk->fail_reads({rig->superblock.offset_of({2}, 0), 4096});
  rig->store->read_ahead({1});
  const auto other = rig->read(1);
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ((*other)[0], 1u);
  EXPECT_EQ(rig->read(2).error().code, ErrorCode::kIo);
  rig->disk->fail_reads({});
  EXPECT_EQ(rig->compare(), "");
}

TEST(BoscQueries, WhatIsReadAheadAndFreedMeanwhileIsForgotten) {
  const auto rig = written_rig();
  rig->disk->hold();
  rig->store->read_ahead({7});
  rig->turn(1);
  rig->store->free({7});
  rig->disk->release();
  rig->turn(3);
  EXPECT_TRUE(rig->errors.empty());
  EXPECT_FALSE(rig->store->is_allocated({7}));
}

TEST(BoscQueries, DamageThatIsReadAheadIsToldAndMetAgain) {
  const auto rig = written_rig();
  rig->disk->flip_bit(rig->superblock.offset_of({7}, 0) + 999, 1);
  rig->store->read_ahead({7});
  rig->turn(3);
  EXPECT_EQ(rig->errors.size(), 1u);
  const auto found = rig->read(7);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
}

TEST(BoscQueries, SoMuchIsReadAheadThatItDoesNotPushItselfOut) {
  const auto rig = written_rig();
  const std::size_t cached = rig->options.store.cache_bytes / rig->store->block_bytes();
  const std::size_t most = rig->store->read_ahead_max();
  EXPECT_GT(most, 0u);
  EXPECT_LE(most, cached / 2);
  // Dirty blocks stay: there is less room.
  for (std::uint32_t i = 0; i < cached; ++i) {
    ASSERT_TRUE(rig->read(i));
    rig->add(i, 1);
  }
  EXPECT_LT(rig->store->read_ahead_max(), most);
}

TEST(BoscQueries, TheCacheMayHaveWhatShortQueuesDoNotWant) {
  for (const bool short_queues : {false, true}) {
    BoscRig::Options options;
    options.store.memory_bytes = std::size_t{12} << 20;
    options.store.commit_at_contents = short_queues ? 1.0 : 0;
    BoscRig rig(options);
    for (std::uint32_t i = 0; i < 40; ++i) rig.add(i, 1);
    ASSERT_TRUE(rig.commit_all());
    for (std::uint32_t twice = 0; twice < 80; ++twice) ASSERT_TRUE(rig.read(twice % 40));
    EXPECT_EQ(rig.store->statistics().query_reads, short_queues ? 40u : 80u);  // 16 fit into 64 KiB
  }
}

TEST(BoscQueries, QueuesThatGrowAllTheSameHaveTheirMemoryBack) {
  BoscRig::Options options;
  options.store.memory_bytes = std::size_t{12} << 20;
  options.store.commit_at_contents = 1.0;
  BoscRig rig(options);
  for (std::uint32_t i = 0; i < 40; ++i) rig.add(i, 1);
  ASSERT_TRUE(rig.commit_all());
  for (std::uint32_t i = 20; i < 40; ++i) ASSERT_TRUE(rig.read(i));
  const std::size_t cached = rig.store->memory_bytes();
  EXPECT_EQ(cached, 20u * 4096);
  rig.disk->hold();
  for (std::uint32_t i = 0; rig.store->has_room(); ++i) {
    rig.add(i % 20, 1);
    ASSERT_LE(rig.store->memory_bytes(), options.store.memory_bytes);
  }
  EXPECT_LT(rig.store->memory_bytes() - rig.store->queued_bytes(), cached);
  rig.disk->release();
  EXPECT_EQ(rig.compare(), "");
}

TEST(BoscQueries, WhatGoesOnInTheNextTurnIsWaitedForAtTheEnd) {
  const auto rig = written_rig();
  bool went_on = false;
  bool drained = false;
  rig->store->in_next_turn([&] { went_on = true; });
  rig->store->drain([&] { drained = true; });
  EXPECT_FALSE(went_on || drained);
  rig->turn(3);
  EXPECT_TRUE(went_on && drained);
}

TEST(BoscQueries, AQueryOfABlockThatIsFreedMeanwhileIsToBeAskedAgain) {
  const auto rig = written_rig();
  rig->add(7, 1);
  rig->disk->hold();
  std::optional<Result<bool>> answer;
  rig->store->query(
      {7}, [](const BlockView& view) { return view.complete; },
      [&](Result<bool> r) { answer = std::move(r); });
  rig->turn(1);
  rig->store->free({7});
  rig->disk->release();
  rig->turn(2);
  ASSERT_TRUE(answer && *answer);
  EXPECT_FALSE(**answer);
}

TEST(BoscQueries, ADamagedBlockIsAnErrorForItsQueryAndKeepsItsQueue) {
  const auto rig = written_rig();
  rig->disk->flip_bit(rig->superblock.offset_of({7}, 0) + 999, 1);
  rig->add(7, 2, 9);
  const auto found = rig->read(7);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(found.error().message, "index block 7 is damaged");
  EXPECT_EQ(rig->errors, std::vector<std::string>{"7: index block 7 is damaged"});
  EXPECT_EQ(rig->store->queued({7}), 1u);
  EXPECT_EQ(rig->store->statistics().damaged, 1u);
  EXPECT_TRUE(rig->read(6).has_value());
}

TEST(BoscQueries, ALostWriteIsFoundByTheVersion) {
  const auto rig = written_rig();
  rig->add(7, 2, 9);
  ASSERT_TRUE(rig->commit_all());  // to place 1
  rig->add(7, 2, 9);
  rig->disk->drop_next_write();
  ASSERT_TRUE(rig->commit_all());  // to place 0, where the first version still is
  rig->restart();
  const auto found = rig->read(7);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().message, "index block 7 is out of date (a write of it was lost)");
}

TEST(BoscQueries, AnUnreadableBlockIsAnErrorUntilItCanBeRead) {
  const auto rig = written_rig();
  rig->disk->fail_reads({rig->superblock.offset_of({7}, 0), 4096});
  const auto found = rig->read(7);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kIo);
  rig->disk->fail_reads({});
  EXPECT_EQ(rig->compare(), "");
}

}  // namespace
}  // namespace mariner::test
