#include "uvfs/watch_sweep.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/uvfs/counted_past.h"
#include "tests/uvfs/made_writes.h"

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kFree = 11'000;  // a block that nothing is in
using Told = std::map<std::uint64_t, std::vector<WatchSweep::Watcher>>;

TEST(WatchSweepTest, WhoHasReadIsToldOfWhatChangesThat) {
  MadeWrites made("-t ext2 -b 4096");
  made.put<std::uint8_t>(kFree * kBlockBytes + 10, 1);               // 1
  made.put<std::uint8_t>(kFree * kBlockBytes + 20, 1);               // 2
  made.put<std::uint8_t>(kFree * kBlockBytes + 10, 1);               // 3: as it is
  made.put<std::uint8_t>((kFree + 1) * kBlockBytes, 1);              // 4
  const auto last = made.put<std::uint8_t>(kFree * kBlockBytes, 1);  // 5
  auto past = made.past();
  auto timelines = BlockTimelines::open(past, {{}, last}).value();
  WatchSweep sweep(timelines);
  Told told;
  const auto done = sweep.run([&](const Instant& now, std::span<const std::size_t> watchers) {
    told[now.at.value] = {watchers.begin(), watchers.end()};
    EXPECT_EQ(sweep.blocks().at(), now.at);
    EXPECT_EQ(now.time.ns, now.at.value * MadeWrites::kSecond);
    if (now.at.value == 0) {
      EXPECT_TRUE(sweep.watch(0, {{kFree * kBlockBytes + 10, 1}}).has_value());
      EXPECT_TRUE(sweep.watch(1, {{kFree * kBlockBytes, 30}}).has_value());
    }
    // It reads elsewhere since.
    if (now.at.value == 2) {
      EXPECT_TRUE(sweep.watch(1, {{(kFree + 1) * kBlockBytes, 1}}).has_value());
    }
    return Result<void>{};
  });
  EXPECT_TRUE(done.has_value());
  EXPECT_EQ(told, (Told{{0, {}}, {1, {0, 1}}, {2, {1}}, {4, {1}}}));
}

TEST(WatchSweepTest, ManyWritesAreAskedForAtOnce) {
  MadeWrites made("-t ext2 -b 4096");
  SequenceNumber last;
  for (int i = 0; i < 300; ++i)
    last = made.put<std::uint8_t>(kFree * kBlockBytes, static_cast<std::uint8_t>(i % 2));
  auto past = made.past();
  CountedPast counted(past);
  auto timelines = BlockTimelines::open(counted, {{}, last}).value();
  WatchSweep sweep(timelines);
  int told = 0;
  const auto done = sweep.run([&](const Instant&, std::span<const std::size_t>) {
    ++told;
    return sweep.watch(0, {{kFree * kBlockBytes, 1}});
  });
  EXPECT_TRUE(done.has_value());
  EXPECT_EQ(told, 300);  // (the first write is of what was there)
  EXPECT_LT(counted.reads + counted.others, 10u);
}

TEST(WatchSweepTest, AnErrorEndsIt) {
  MadeWrites made("-t ext2 -b 4096");
  const auto last = made.put<std::uint8_t>(0, 1);
  auto past = made.past();
  auto timelines = BlockTimelines::open(past, {{}, last}).value();
  WatchSweep sweep(timelines);
  const auto done = sweep.run([](const Instant&, std::span<const std::size_t>) {
    return Result<void>(Error{ErrorCode::kIo, "no"});
  });
  EXPECT_EQ(done.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace mariner::uvfs
