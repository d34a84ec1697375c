#include "logging/waiting_records.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::record_of;

PendingRecord pending(std::uint32_t volume, std::uint64_t sequence, std::uint32_t blocks = 1) {
  PendingRecord pending;
  pending.record = record_of(volume, sequence, blocks);
  pending.record.ordinal = 0;
  return pending;
}

// "1:3" is write 3 of volume 1.
std::string name(const PendingRecord& pending) {
  return std::to_string(pending.record.volume.value) + ":" +
         std::to_string(pending.record.sequence.value);
}

std::string take(WaitingRecords& waiting, std::size_t count = SIZE_MAX) {
  std::string text;
  for (; count > 0 && !waiting.empty(); --count) {
    text += (text.empty() ? "" : " ") + name(waiting.front());
    waiting.pop_front();
  }
  return text;
}

TEST(WaitingRecords, ThoseOfOneVolumeGoAsTheyCame) {
  WaitingRecords waiting;
  EXPECT_TRUE(waiting.empty());
  for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) {
    waiting.push_back(pending(1, sequence, 1024));
  }
  EXPECT_EQ(take(waiting), "1:1 1:2 1:3 1:4 1:5");
  EXPECT_TRUE(waiting.empty());
}

TEST(WaitingRecords, AllGoAsTheyCameWhileNobodyHasMoreThanATurn) {
  WaitingRecords waiting;
  for (const auto& [volume, sequence] :
       {std::pair{1u, 1u}, {2u, 1u}, {1u, 2u}, {3u, 1u}, {2u, 2u}}) {
    waiting.push_back(pending(volume, sequence, 8));
  }
  EXPECT_EQ(take(waiting), "1:1 2:1 1:2 3:1 2:2");
}

TEST(WaitingRecords, AVolumeThatWritesMuchHoldsAnotherUpForATurn) {
  WaitingRecords waiting;
  for (std::uint64_t sequence = 1; sequence <= 100; ++sequence) {
    waiting.push_back(pending(1, sequence, 32));  // half a turn, and its header
  }
  waiting.push_back(pending(2, 1));
  EXPECT_EQ(take(waiting, 4), "1:1 1:2 2:1 1:3");
  // That it has a turn to itself again costs it nothing.
  waiting.push_back(pending(2, 2));
  EXPECT_EQ(take(waiting, 3), "1:4 2:2 1:5");
}

TEST(WaitingRecords, WhatALongRecordTookIsMadeGood) {
  WaitingRecords waiting;
  waiting.push_back(pending(1, 1, 256));  // four turns
  waiting.push_back(pending(1, 2));
  for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) {
    waiting.push_back(pending(2, sequence, 64));  // one
  }
  EXPECT_EQ(take(waiting), "1:1 2:1 2:2 2:3 2:4 1:2 2:5");
  // Alone it waits for nothing.
  waiting.push_back(pending(1, 3, 1024));
  waiting.push_back(pending(1, 4, 1024));
  EXPECT_EQ(take(waiting), "1:3 1:4");
}

TEST(WaitingRecords, VolumesGetTheSameWhateverTheSizeOfTheirWrites) {
  WaitingRecords waiting;
  for (std::uint64_t sequence = 1; sequence <= 2048; ++sequence) {
    waiting.push_back(pending(1, sequence, 4));
    waiting.push_back(pending(2, sequence, 1024));
    waiting.push_back(pending(3, sequence, 33));
  }
  std::map<std::uint32_t, std::int64_t> bytes;
  std::int64_t all = 0;
  while (all < 64 << 20) {
    const PendingRecord& front = waiting.front();
    bytes[front.record.volume.value] += front.batch_bytes();
    all += front.batch_bytes();
    waiting.pop_front();
  }
  for (const auto& [volume, got] : bytes) {
    EXPECT_LT(std::abs(got - all / 3), 5 << 20) << "volume " << volume << " of " << all;
  }
}

TEST(WaitingRecords, WhatComesBackGoesFirstAsTheLogHasIt) {
  WaitingRecords waiting;
  waiting.push_back(pending(1, 7));
  std::deque<PendingRecord> back;
  for (const auto& [ordinal, sequence] : {std::pair{12u, 5u}, {10u, 3u}, {11u, 4u}}) {
    back.push_back(pending(sequence % 2 + 1, sequence));
    back.back().record.ordinal = ordinal;
  }
  waiting.put_back(std::move(back));
  waiting.push_before_new(pending(3, 1));
  std::deque<PendingRecord> more;
  more.push_back(pending(1, 2));
  more.back().record.ordinal = 9;
  waiting.put_back(std::move(more));
  EXPECT_EQ(take(waiting), "1:2 2:3 1:4 2:5 3:1 1:7");
}

TEST(WaitingRecords, TheBaseOvertakes) {
  WaitingRecords waiting;
  EXPECT_FALSE(waiting.base_first());
  waiting.push_back(pending(1, 1));
  EXPECT_FALSE(waiting.base_first());
  PendingRecord base = pending(1, 9);
  base.record.type = RecordType::kBeforeImage;
  waiting.push_back(std::move(base));
  PendingRecord alone = pending(2, 8);
  alone.record.type = RecordType::kRebase;
  waiting.push_back(std::move(alone));
  EXPECT_TRUE(waiting.base_first());
  EXPECT_TRUE(waiting.base_first()) << "it still is";
  EXPECT_EQ(take(waiting), "1:9 2:8 1:1");
}

TEST(WaitingRecords, GivesUpWhatIsOrdinaryOrAll) {
  WaitingRecords waiting;
  waiting.push_back(pending(1, 1));
  PendingRecord essential = pending(1, 2);
  essential.urgency = Urgency::kEssential;
  waiting.push_back(std::move(essential));
  waiting.push_back(pending(2, 1));
  std::string taken;
  for (const PendingRecord& each : waiting.take_ordinary()) taken += name(each) + " ";
  EXPECT_EQ(taken, "1:1 2:1 ");
  EXPECT_EQ(name(waiting.front()), "1:2");
  EXPECT_EQ(waiting.take_all().size(), 1u);
  EXPECT_TRUE(waiting.empty());
  waiting.push_back(pending(2, 3));
  EXPECT_EQ(take(waiting), "2:3");
}

}  // namespace
}  // namespace mariner::logging
