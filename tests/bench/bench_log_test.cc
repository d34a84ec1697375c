#include "tests/bench/bench_log.h"

#include <gtest/gtest.h>

#include "tests/bench/vanilla_load.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::bench {
namespace {

constexpr std::uint64_t kTrack = logging::kTrackBytesMin;

class BenchLogTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kRecordBytes = 1u << 20;

  std::unique_ptr<BenchLog> create(std::uint64_t log_bytes) {
    auto log = BenchLog::create({folder_.file(""), log_bytes, kTrack, kRecordBytes}, loop_);
    EXPECT_TRUE(log) << to_string(log.error());
    return std::move(*log);
  }

  // Appends one record after another until the log is full or `count` are durable.
  std::uint64_t append(BenchLog& log, std::uint64_t count) {
    std::uint64_t durable = 0;
    const Payload payload = Payload::zeroed(kRecordBytes);
    UniqueFunction<void()> next = [&] {
      if (durable == count || log.full()) return loop_.stop();
      log.append({payload, 0, payload.size()}, [&](const BenchLog::Outcome& outcome) {
        EXPECT_TRUE(outcome);
        EXPECT_EQ(log.batch().records, 1u);
        EXPECT_LE(log.batch().dispatched, log.batch().durable);
        ++durable;
        next();
      });
    };
    loop_.post([&] { next(); });
    loop_.run();
    return durable;
  }

  logging::test::TemporaryDirectory folder_;
  node::EventLoop loop_;
};

TEST_F(BenchLogTest, ARecordIsDurableAndCounted) {
  const auto log = create(16 * kTrack);
  EXPECT_EQ(append(*log, 1), 1u);
  EXPECT_GT(log->written_bytes(), kRecordBytes);
  EXPECT_LT(log->written_bytes(), log->limit_bytes());
}

TEST_F(BenchLogTest, GoesRoundAsALogInUseDoes) {
  const auto log = create(16 * kTrack);
  EXPECT_EQ(append(*log, 1000), 1000u);
  EXPECT_GT(log->written_bytes(), log->limit_bytes());
  EXPECT_GT(log->releases(), 0u);
}

TEST_F(BenchLogTest, MayAppendToAFileInstead) {
  auto log = BenchLog::create({.folder = folder_.file(""), .appends_to_file = true}, loop_);
  ASSERT_TRUE(log) << to_string(log.error());
  EXPECT_EQ(append(**log, 40), 40u);
  EXPECT_EQ((*log)->written_bytes(), 40u * kRecordBytes);
  EXPECT_FALSE((*log)->full());
  // What waits together is written together, and each hears of it, in order.
  std::vector<int> durable;
  const Payload payload = Payload::zeroed(kBlockBytes);
  loop_.post([&] {
    for (int i = 0; i < 50; ++i) {
      (*log)->append({payload, 0, payload.size()}, [&, i](const BenchLog::Outcome& outcome) {
        EXPECT_TRUE(outcome);
        durable.push_back(i);
        if (durable.size() == 50) loop_.stop();
      });
    }
  });
  loop_.after(std::chrono::seconds(10), [&] { loop_.stop(); });
  loop_.run();
  ASSERT_EQ(durable.size(), 50u);
  EXPECT_TRUE(std::ranges::is_sorted(durable));
}

TEST_F(BenchLogTest, WhatIsDurableIsIndexedByTheUsualIndexToo) {
  constexpr std::uint64_t kVersions = 1'000;
  for (const bool to_file : {false, true}) {
    auto log = BenchLog::create({.folder = folder_.file(""),
                                 .log_bytes = 16 * kTrack,
                                 .track_bytes = kTrack,
                                 .outstanding_bytes = kRecordBytes,
                                 .appends_to_file = to_file},
                                loop_);
    ASSERT_TRUE(log) << to_string(log.error());
    auto index = VanillaLoad::create({folder_.file(""), std::size_t{1} << 20, kVersions}, **log);
    ASSERT_TRUE(index) << to_string(index.error());
    EXPECT_EQ((*index)->index().scan(0, std::uint64_t{1} << 28), kVersions);
    EXPECT_EQ(append(**log, 10), 10u);
    // The last one is indexed in a later turn.
    const std::uint64_t indexed = (*index)->index().scan(0, std::uint64_t{1} << 28) - kVersions;
    EXPECT_GE(indexed, 9 * kRecordBytes / kBlockBytes);
    EXPECT_LE(indexed, 10 * kRecordBytes / kBlockBytes);
    log->reset();
  }
}

TEST_F(BenchLogTest, TheNextRunBeginsWithAnEmptyLog) {
  {
    const auto log = create(16 * kTrack);
    append(*log, 3);
  }
  const auto log = create(16 * kTrack);
  EXPECT_EQ(log->written_bytes(), 0u);
  EXPECT_FALSE(log->full());
}

TEST_F(BenchLogTest, AnotherSizeIsAnotherFile) {
  create(16 * kTrack);
  EXPECT_GT(create(32 * kTrack)->limit_bytes(), 16 * kTrack);
}

}  // namespace
}  // namespace mariner::bench
