// The log writer over several disks: which disk gets what, and its tracks. With one disk:
// log_writer_test.cc; disks that fail, hang, come and go: log_writer_disks_test.cc.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "logging/log_writer.h"
#include "tests/logging/array_rig.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::ArrayRig;
using test::record_of;
using test::Removal;

// ---- which disk ---------------------------------------------------------------------------------

TEST(LogWriterArray, ARecordGoesToAnIdleDiskWhileAnotherIsBusy) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  rig.disks[0]->hold();
  rig.append_now(record_of(1, 1));
  rig.append_now(record_of(1, 2));
  EXPECT_EQ(rig.outcomes_text(), "2:ok@1") << "completions of several disks are in any order";
  EXPECT_EQ(rig.writer().ordinal_frontier(), 1u) << "the first is still on its way";
  rig.disks[0]->release();
  EXPECT_EQ(rig.outcomes_text(), "2:ok@1 1:ok@0");
  EXPECT_EQ(rig.writer().ordinal_frontier(), 3u);
  EXPECT_EQ(rig.reopened(), "|1 2");
}

TEST(LogWriterArray, ABatchGathersOnABusyDiskForTWaitAndThenAnotherIsActive) {
  ArrayRig rig({.writer = {.t_wait = 200us}});
  ASSERT_TRUE(rig.open());
  for (const auto& disk : rig.disks) disk->hold();
  rig.append_now(record_of(1, 1));
  rig.append_now(record_of(1, 2));
  rig.append_now(record_of(1, 3));  // waits for one of them, and the other becomes idle
  rig.disks[1]->release();
  rig.executor.run_ready();
  ASSERT_EQ(rig.outcomes_text(), "2:ok@1");
  rig.executor.advance(100us);
  rig.append_now(record_of(1, 4));
  EXPECT_EQ(rig.outcomes_text(), "2:ok@1") << "it gathers with 3";
  rig.executor.advance(100us);
  rig.append_now(record_of(1, 5));  // 3 has waited long enough: the other disk gathers now
  rig.executor.advance(200us);
  EXPECT_EQ(rig.outcomes_text(), "2:ok@1 5:ok@1");
  rig.disks[0]->release();
  rig.executor.run_ready();
  EXPECT_EQ(rig.outcomes_text(), "2:ok@1 5:ok@1 1:ok@0 3:ok@0 4:ok@0");
  EXPECT_EQ(rig.reopened(), "|1 2 3 4 5");
}

TEST(LogWriterArray, OneDiskIsGoodForAllWhileTheOtherIsBusy) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  rig.disks[0]->hold();
  for (std::uint64_t i = 1; i <= 10; ++i) rig.append_now(record_of(1, i));
  EXPECT_EQ(rig.outcomes_text(), "2:ok@1 3:ok@1 4:ok@1 5:ok@1 6:ok@1 7:ok@1 8:ok@1 9:ok@1 10:ok@1");
}

TEST(LogWriterArray, EachDiskKeepsItsOrderAndItsChain) {
  ArrayRig rig({.disks = 3, .delay_max = 500us});
  ASSERT_TRUE(rig.open());
  for (std::uint64_t i = 1; i <= 200; ++i) {
    rig.append(record_of(1, i));
    rig.executor.advance(40us);
  }
  rig.executor.run_until_idle();
  ASSERT_EQ(rig.outcomes.size(), 200u);
  bool out_of_order = false;
  std::map<std::uint8_t, std::uint64_t> last;
  std::uint64_t highest = 0;
  for (const auto& outcome : rig.outcomes) {
    ASSERT_TRUE(outcome.result.has_value());
    std::uint64_t& before = last[outcome.result->disk];
    EXPECT_LT(before, outcome.record.sequence.value) << "in order on each disk";
    before = outcome.record.sequence.value;
    out_of_order = out_of_order || before < highest;
    highest = std::max(highest, before);
  }
  EXPECT_EQ(last.size(), 3u);
  EXPECT_TRUE(out_of_order) << "over all disks they are not";
  std::string all = "|1";
  for (int i = 2; i <= 200; ++i) all += " " + std::to_string(i);
  ASSERT_EQ(rig.reopened(), all);
  std::map<std::uint8_t, LogLocation> previous;
  for (const auto& v : rig.visited) {
    const LogLocation& back = previous[v.location.disk];
    EXPECT_EQ(v.record.previous_sector, back.batch_sector);
    EXPECT_EQ(v.record.previous_slot, back.slot);
    previous[v.location.disk] = v.location;
  }
}

TEST(LogWriterArray, OrdinalsAreTheOrderOfAppend) {
  ArrayRig rig({.disks = 3, .delay_max = 300us});
  ASSERT_TRUE(rig.open());
  for (std::uint64_t i = 1; i <= 50; ++i) {
    rig.append(record_of(static_cast<std::uint32_t>(1 + i % 3), i));
    if (i % 4 == 0) rig.executor.advance(60us);
  }
  rig.executor.run_until_idle();
  rig.reopened();
  ASSERT_EQ(rig.visited.size(), 50u);
  for (std::size_t i = 0; i < 50; ++i) {
    EXPECT_EQ(rig.visited[i].record.sequence.value, i + 1);
    EXPECT_EQ(rig.visited[i].record.ordinal, i + 1);
  }
}

TEST(LogWriterArray, EachBatchSaysHowFarTheWholeLogWasSettled) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  rig.append_now(record_of(1, 1));
  rig.disks[0]->hold();
  rig.append_now(record_of(1, 2));  // ordinal 2 hangs on disk 0
  rig.append_now(record_of(1, 3));
  rig.append_now(record_of(1, 4));
  ASSERT_EQ(rig.outcomes_text(), "1:ok@0 3:ok@1 4:ok@1");
  const LogLocation at = *rig.outcomes.back().result;
  const auto bytes = rig.disks[1]->bytes({at.batch_sector * kBlockBytes, kBlockBytes});
  const auto header = peek_batch(bytes, rig.superblocks[1].batch_format());
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->ordinal_frontier, 2u);
}

// ---- tracks -------------------------------------------------------------------------------------

// Records of 4 MiB, of which a track takes one.
TEST(LogWriterArray, WhatHasNoTrackOnOneDiskGoesToTheOther) {
  ArrayRig rig({.tracks = 5});
  ASSERT_TRUE(rig.open());
  rig.disks[1]->hold();
  std::uint64_t sequence = 1;
  rig.append_now(record_of(1, sequence++, 1024));
  rig.append_now(record_of(1, sequence++, 1024));
  for (int i = 0; i < 4; ++i) rig.append_now(record_of(1, sequence++, 1024));
  ASSERT_EQ(rig.member(0).log_disk->free_tracks(), 0u);
  rig.disks[1]->release();
  rig.executor.run_until_idle();
  const std::uint64_t on_other = rig.member(1).log_disk->free_tracks();
  ASSERT_GT(on_other, 2u);
  rig.append_now(record_of(1, sequence++, 1024));
  ASSERT_EQ(rig.outcomes.size(), sequence - 1);
  EXPECT_TRUE(std::ranges::all_of(rig.outcomes, [](const auto& o) { return o.result.has_value(); }))
      << rig.outcomes_text();
  EXPECT_EQ(rig.outcomes.back().result->disk, 1);
  std::string all = "|1";
  for (std::uint64_t i = 2; i < sequence; ++i) all += " " + std::to_string(i);
  EXPECT_EQ(rig.reopened(), all);
}

// Otherwise disks whose tracks end at different times would never work side by side again.
TEST(LogWriterArray, AnIdleDiskTakesItsNextTrackRatherThanLetARecordWaitForABusyOne) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  rig.disks[0]->hold();
  for (std::uint64_t i = 1; i <= 3; ++i) rig.append_now(record_of(1, i, 1020));
  ASSERT_EQ(rig.outcomes_text(), "2:ok@1 3:ok@1");
  rig.append_now(record_of(1, 4, 10));
  EXPECT_EQ(rig.outcomes_text(), "2:ok@1 3:ok@1 4:ok@1");
  EXPECT_EQ(rig.member(1).log_disk->current_allocation(), 2u);
  EXPECT_EQ(rig.reopened(), "|1 2 3 4");
}

TEST(LogWriterArray, TheReserveIsOfAllDisksTogether) {
  ArrayRig rig({.tracks = 4});
  ASSERT_TRUE(rig.open());
  std::uint64_t sequence = 1;
  for (; sequence < 20; ++sequence) {
    rig.append_now(record_of(1, sequence, 1024));
    if (!rig.outcomes.back().result) break;
  }
  EXPECT_EQ(sequence, 7u) << "of eight tracks two are reserved";
  EXPECT_EQ(rig.outcomes.back().result.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(rig.writer().free_tracks(), 2u);
  EXPECT_TRUE(rig.writer().short_of_tracks());
  rig.append_now(record_of(1, 100, 1024), Urgency::kEssential);
  rig.append_now(record_of(1, 101, 1024), Urgency::kEssential);
  rig.append_now(record_of(1, 102, 1024), Urgency::kEssential);
  ASSERT_EQ(rig.outcomes.size(), 10u);
  EXPECT_TRUE(rig.outcomes[7].result && rig.outcomes[8].result);
  EXPECT_EQ(rig.outcomes[9].result.error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(rig.reopened(), "|1 2 3 4 5 6 100 101");
}

TEST(LogWriterArray, AFullArrayWaitsAsLongAsTracksAreAboutToBeReleased) {
  ArrayRig rig({.tracks = 4});
  ASSERT_TRUE(rig.open());
  bool releasing = true;
  rig.writer().set_full_gate([&] { return releasing; });
  for (std::uint64_t i = 1; i <= 7; ++i) rig.append_now(record_of(1, i, 1024));
  ASSERT_EQ(rig.outcomes.size(), 6u);
  Record before = record_of(1, 50, 1, RecordType::kBeforeImage);
  rig.append_now(before, Urgency::kEssential);
  ASSERT_EQ(rig.outcomes.size(), 7u) << "before-images overtake what waits";
  // A track of one disk comes back.
  std::optional<Result<void>> released;
  rig.member(1).recycler->release(2, [&](Result<void> r) { released = std::move(r); });
  rig.executor.run_ready();
  ASSERT_TRUE(released && *released);
  EXPECT_EQ(rig.outcomes.size(), 8u);
  EXPECT_EQ(rig.outcomes.back().record.sequence.value, 7u);
  EXPECT_EQ(rig.outcomes.back().result->disk, 1);
  rig.append_now(record_of(1, 8, 1024));
  EXPECT_EQ(rig.outcomes.size(), 8u);
  releasing = false;
  rig.writer().retry();
  rig.executor.run_ready();
  ASSERT_EQ(rig.outcomes.size(), 9u);
  EXPECT_EQ(rig.outcomes.back().result.error().code, ErrorCode::kNoSpace);
  rig.writer().set_full_gate(nullptr);
}

TEST(LogWriterArray, ABeforeImageWithoutAnyRoomDoesNotWaitForTheReleaseThatMayNeedIt) {
  ArrayRig rig({.tracks = 4});
  ASSERT_TRUE(rig.open());
  rig.writer().set_full_gate([] { return true; });
  for (std::uint64_t i = 1; i <= 7; ++i) rig.append_now(record_of(1, i, 1024));
  ASSERT_EQ(rig.outcomes.size(), 6u) << "the seventh waits";
  // The reserve takes so many, and no more.
  for (std::uint64_t i = 50; i < 60; ++i) {
    rig.append_now(record_of(1, i, 1024, RecordType::kBeforeImage), Urgency::kBeforeImage);
  }
  ASSERT_EQ(rig.outcomes.size(), 16u);
  EXPECT_TRUE(rig.outcomes[6].result);
  EXPECT_EQ(rig.outcomes.back().result.error().code, ErrorCode::kNoSpace);
  rig.writer().set_full_gate(nullptr);
  rig.writer().retry();
  rig.executor.run_ready();
}

TEST(LogWriterArray, TheGateOfOneDisksTrackDoesNotStopTheOther) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  bool open = false;
  rig.writer().set_track_gate([&](std::uint8_t disk, std::uint64_t) { return disk != 0 || open; });
  for (std::uint64_t i = 1; i <= 3; ++i) rig.append_now(record_of(1, i));
  EXPECT_EQ(rig.outcomes_text(), "1:ok@1 2:ok@1 3:ok@1");
  open = true;
  rig.writer().retry();
  rig.disks[1]->hold();
  rig.append_now(record_of(1, 4));
  rig.append_now(record_of(1, 5));
  rig.disks[1]->release();
  EXPECT_EQ(rig.outcomes.size(), 5u);
  EXPECT_EQ(rig.member(0).log_disk->free_tracks(), 5u);
}

TEST(LogWriterArray, LeavesTheTrackOfEachDiskAlsoOfABusyOne) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  rig.disks[0]->hold();
  rig.append_now(record_of(1, 1));
  rig.append_now(record_of(1, 2));
  rig.writer().leave_tracks();
  rig.disks[0]->release();
  rig.executor.run_ready();
  for (std::uint64_t i = 3; i <= 4; ++i) {
    rig.disks[0]->hold();
    rig.append_now(record_of(1, i));
  }
  rig.disks[0]->release();
  ASSERT_EQ(rig.outcomes.size(), 4u);
  for (const auto& outcome : rig.outcomes) {
    const std::uint64_t track =
        (outcome.result->batch_sector - kReservedBlocks) / test::kTrackBlocks;
    EXPECT_EQ(track, outcome.record.sequence.value <= 2 ? 0u : 1u);
  }
  EXPECT_EQ(rig.reopened(), "|1 2 3 4");
}

// Each record makes both disks take a track, of which one remains empty.
TEST(LogWriterArray, LeavingTracksAgainAndAgainHidesNoRecord) {
  ArrayRig rig;
  ASSERT_TRUE(rig.open());
  for (std::uint64_t i = 1; i <= 4; ++i) {
    rig.append_now(record_of(1, i));
    rig.writer().leave_tracks();
  }
  rig.disks[0]->hold();
  rig.append_now(record_of(1, 5));
  rig.append_now(record_of(1, 6));
  rig.disks[0]->release();
  rig.executor.run_ready();
  ASSERT_EQ(rig.outcomes.size(), 6u);
  EXPECT_EQ(rig.reopened(), "|1 2 3 4 5 6");
}

TEST(LogWriterArray, CountsTheSpaceOfAllDisks) {
  ArrayRig rig({.disks = 3});
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(rig.writer().limit_bytes(), 18 * test::kTrackBytes);
  EXPECT_EQ(rig.writer().free_tracks(), 18u);
  rig.disks[0]->hold();
  rig.append_now(record_of(1, 1));
  rig.append_now(record_of(1, 2));
  EXPECT_FALSE(rig.writer().idle());
  rig.disks[0]->release();
  rig.executor.run_ready();
  EXPECT_TRUE(rig.writer().idle());
  EXPECT_EQ(rig.writer().used_bytes(), 7u * kBlockBytes) << "two records, three track headers";
  EXPECT_EQ(rig.writer().free_tracks(), 15u);
  const Removal removal(rig, 2);
  EXPECT_EQ(rig.writer().free_tracks(), 10u);
  rig.executor.run_ready();
  EXPECT_EQ(rig.writer().limit_bytes(), 12 * test::kTrackBytes);
}

// Virtual time for 200 records of 1 MiB, eight at a time.
std::chrono::nanoseconds time_of_load(std::size_t disks) {
  ArrayRig rig(
      {.disks = disks, .tracks = 60, .delay_max = 2ms, .writer = {.batch_bytes_max = 1u << 20}});
  if (!rig.open()) return 0ns;
  const auto start = rig.executor.monotonic_time();
  std::uint64_t sequence = 0;
  std::chrono::nanoseconds end{0};
  UniqueFunction<void()> next = [&] {
    if (sequence == 200) return;
    const Record record = record_of(1, ++sequence, 256);
    rig.writer().append(record, test::whole(test::payload_of(record.sequence.value, 256)),
                        Urgency::kOrdinary, [&](const Result<LoggedAt>& result) {
                          EXPECT_TRUE(result.has_value());
                          end = rig.executor.monotonic_time();
                          next();
                        });
  };
  for (int i = 0; i < 8; ++i) next();
  rig.executor.run_until_idle();
  return end - start;
}

TEST(LogWriterArray, SeveralDisksWriteSideBySide) {
  const auto one = time_of_load(1);
  EXPECT_LT(time_of_load(2), one * 6 / 10);
  EXPECT_LT(time_of_load(4), one * 35 / 100) << "each disk's writes take from nothing to 2 ms";
}

TEST(LogWriterArray, DisksThatRotateTakeTheirPart) {
  ArrayRig rig({.disks = 3, .tracks = 20, .delay_max = 6ms, .rotating = true});
  ASSERT_TRUE(rig.open());
  std::string all = "|";
  for (std::uint64_t i = 1; i <= 150; ++i) {
    rig.append(record_of(1, i, static_cast<std::uint32_t>(1 + i % 5)));
    rig.executor.advance(300us);
    all += (i == 1 ? "" : " ") + std::to_string(i);
  }
  rig.executor.run_until_idle();
  ASSERT_EQ(rig.outcomes.size(), 150u);
  std::map<std::uint8_t, std::size_t> records;
  for (const auto& outcome : rig.outcomes) {
    ASSERT_TRUE(outcome.result.has_value());
    ++records[outcome.result->disk];
  }
  EXPECT_EQ(records.size(), 3u);
  EXPECT_EQ(rig.reopened(), all);
}

}  // namespace
}  // namespace mariner::logging
