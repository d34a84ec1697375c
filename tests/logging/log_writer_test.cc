#include "logging/log_writer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "proto/crc32c.h"
#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using namespace std::chrono_literals;
using test::FaultyDisk;
using test::kTrackBlocks;
using test::LogRig;
using test::record_of;
using Remains = FaultyDisk::Remains;
using Urgency = LogWriter::Urgency;

constexpr std::uint64_t kFirstBatch = kReservedBlocks + 1;

// "1:ok 2:no-space": each outcome in the order in which it was told.
std::string outcomes_text(const LogRig& rig) {
  std::string text;
  for (const auto& outcome : rig.outcomes) {
    text += (text.empty() ? "" : " ") + std::to_string(outcome.record.sequence.value) + ":";
    text += outcome.result ? "ok" : std::string(error_code_name(outcome.result.error().code));
  }
  return text;
}

// The log as the next start finds it: damage, then the sequence numbers.
std::string reopened(LogRig& rig) {
  rig.close();
  if (!rig.open()) return "failed";
  for (const test::Visited& v : rig.visited) {
    EXPECT_TRUE(rig.verify(v.record, v.location).has_value());
  }
  return test::damage_text(rig.recovered) + "|" + test::sequences_text(rig.visited);
}

// Fills the log with records of 4 MiB, one to a track, until fewer than `room` blocks are left in
// the track and `tracks` tracks are free. Returns the next sequence number.
std::uint64_t fill(LogRig& rig, std::uint64_t tracks) {
  std::uint64_t sequence = 1;
  while (rig.writer->free_tracks() > tracks || rig.writer->free_tracks() == rig.options.tracks) {
    EXPECT_TRUE(rig.append_now(record_of(1, sequence++, 1024), Urgency::kEssential).has_value());
  }
  return sequence;
}

TEST(LogWriter, ALoneRecordLeavesAtTheEndOfItsTurn) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append(record_of(1, 1));
  EXPECT_TRUE(rig.disk.in_flight() == 0 && rig.outcomes.empty());
  rig.executor.turn();
  EXPECT_EQ(rig.disk.in_flight(), 1u);
  EXPECT_TRUE(rig.outcomes.empty());
  rig.executor.run_ready();
  ASSERT_EQ(outcomes_text(rig), "1:ok");
  const LogLocation at = *rig.outcomes[0].result;
  EXPECT_EQ(at.batch_sector, kFirstBatch);
  EXPECT_EQ(at.payload_sector(), kFirstBatch + 1);
  EXPECT_EQ(at.header_sectors, 1);
  EXPECT_EQ(at.slot, 0);
  EXPECT_EQ(at.disk, 0);
}

// Those of blocks that lie as in the payload are stored as they came, without another look.
TEST(LogWriter, TakesTheCrcsThatComeWithThePayload) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  Payload payload = test::payload_of(1, 4);
  const auto bytes = payload.bytes();
  payload.set_block_crc(0, 12345);
  payload.set_block_crc(1, crc32c(bytes.subspan(kBlockBytes, kBlockBytes)));
  // Of `blocks` blocks from `offset` on: how they read back.
  const auto reads = [&](std::size_t offset, std::uint32_t blocks) {
    const Record record = record_of(1, 1, blocks);
    const std::size_t length = std::size_t{blocks} * kBlockBytes;
    std::optional<Result<LoggedAt>> at;
    rig.writer->append(record, {payload, offset, length}, Urgency::kOrdinary,
                       [&](Result<LoggedAt> result) { at = std::move(result); });
    rig.executor.run_until_idle();
    Payload to = Payload::allocate(length);
    const auto read = read_log_blocking(rig.disks, {(**at).location, {1}, {1}, 0, to.bytes()});
    if (!read) return std::string(error_code_name(read.error().code));
    return std::string(std::ranges::equal(to.bytes(), bytes.subspan(offset, length)) ? "same"
                                                                                     : "other");
  };
  EXPECT_EQ(reads(0, 1), "corrupt");
  EXPECT_EQ(reads(0, 4), "corrupt");
  EXPECT_EQ(reads(kBlockBytes, 1), "same");
  EXPECT_EQ(reads(kBlockBytes, 3), "same") << "what is unknown is computed";
  EXPECT_EQ(reads(512, 1), "same") << "its blocks are others than the payload's";
}

TEST(LogWriter, NothingIsAcknowledgedBeforeItsWriteCompletes) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.disk.hold();
  rig.append(record_of(1, 1));
  rig.executor.run_until_idle();
  rig.executor.advance(1h);
  EXPECT_EQ(outcomes_text(rig), "");
  EXPECT_FALSE(rig.writer->idle());
  rig.disk.release();
  EXPECT_EQ(outcomes_text(rig), "1:ok");
  EXPECT_TRUE(rig.writer->idle());
}

TEST(LogWriter, WhatIsAcknowledgedIsDurable) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  ASSERT_TRUE(rig.append_now(record_of(1, 1, 7)).has_value());
  rig.disk.cut_power();
  rig.disk.restore_power();
  EXPECT_EQ(reopened(rig), "|1");
}

TEST(LogWriter, CountsWhyItWasLogged) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  const auto of_type = [&](std::uint64_t sequence, std::uint32_t blocks, RecordType type,
                           std::uint16_t flags) {
    Record record = record_of(1, sequence, blocks, type);
    record.flags = flags;
    if (type == RecordType::kBeforeImage) record.sequence = {};
    ASSERT_TRUE(rig.append_now(record).has_value());
  };
  of_type(1, 7, RecordType::kWrite, 0);
  of_type(0, 3, RecordType::kBeforeImage, 0);
  of_type(0, 2, RecordType::kBeforeImage, kReplaces);
  const LogWriter::Payloads& payloads = rig.writer->payloads();
  EXPECT_EQ(payloads.written, 7 * kBlockBytes);
  EXPECT_EQ(payloads.before_images, 3 * kBlockBytes);
  EXPECT_EQ(payloads.moved, 2 * kBlockBytes);
  EXPECT_EQ(payloads.kept, 0u);
}

TEST(LogWriter, ABurstIsOneBatch) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  const std::size_t before = rig.disk.writes().size();
  for (std::uint64_t i = 1; i <= 10; ++i) rig.append(record_of(1, i));
  rig.executor.run_until_idle();
  EXPECT_EQ(outcomes_text(rig), "1:ok 2:ok 3:ok 4:ok 5:ok 6:ok 7:ok 8:ok 9:ok 10:ok");
  EXPECT_EQ(rig.disk.writes().size(), before + 1u);
}

TEST(LogWriter, OneBatchIsInFlightAndTheNextGathers) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  const std::size_t before = rig.disk.writes().size();
  rig.disk.hold();
  rig.append(record_of(1, 1));
  rig.executor.run_until_idle();
  for (std::uint64_t i = 2; i <= 5; ++i) {
    rig.append(record_of(1, i));
    rig.executor.run_until_idle();
    EXPECT_EQ(rig.disk.in_flight(), 1u);
  }
  rig.disk.release();
  rig.executor.run_until_idle();
  EXPECT_EQ(outcomes_text(rig), "1:ok 2:ok 3:ok 4:ok 5:ok");
  EXPECT_EQ(rig.disk.writes().size(), before + 2u);
}

// The disk does not stand still while completions run.
TEST(LogWriter, WhatHasGatheredIsWrittenBeforeCompletionsRun) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.disk.hold();
  std::size_t in_flight = 99;
  rig.writer->append(record_of(1, 1), test::whole(test::payload_of(1, 1)), Urgency::kOrdinary,
                     [&](const Result<LoggedAt>&) { in_flight = rig.disk.in_flight(); });
  rig.executor.run_until_idle();
  rig.append(record_of(1, 2));
  rig.executor.run_until_idle();
  const std::size_t submits = rig.disk.submits();
  rig.disk.release();
  EXPECT_EQ(in_flight, 1u) << "the second batch";
  EXPECT_EQ(rig.disk.submits(), submits + 1);
  rig.executor.run_until_idle();
  EXPECT_EQ(outcomes_text(rig), "2:ok");
}

TEST(LogWriter, ABatchEndsAtItsBounds) {
  LogRig rig({.writer = {.batch_bytes_max = 64u << 10}});
  ASSERT_TRUE(rig.open());
  std::vector<std::uint32_t> records;
  std::vector<std::uint32_t> bytes;
  rig.writer->set_observer([&](const LogWriter::BatchReport& report) {
    records.push_back(report.records);
    bytes.push_back(report.bytes);
  });
  for (std::uint64_t i = 1; i <= 8; ++i) rig.append(record_of(1, i, 5));  // 20 KiB each
  rig.append(record_of(1, 9, 1024));                                      // alone above the bound
  for (std::uint64_t i = 10; i < 10 + kBatchRecordsMax + 1; ++i) {
    rig.append(record_of(1, i, 1, RecordType::kZero));
  }
  rig.executor.run_until_idle();
  EXPECT_EQ(records, (std::vector<std::uint32_t>{3, 3, 2, 1, kBatchRecordsMax, 1}));
  EXPECT_EQ(bytes[0], 16u * kBlockBytes);
  EXPECT_EQ(bytes[3], 1026u * kBlockBytes);
}

TEST(LogWriter, EachRecordPointsBackToTheOneBeforeOfItsVolume) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append(record_of(1, 1));
  rig.append(record_of(2, 1));
  rig.append(record_of(1, 2));
  rig.executor.run_until_idle();
  rig.append(record_of(2, 2));
  rig.executor.run_until_idle();
  ASSERT_EQ(reopened(rig), "|1 1 2 2");
  const auto back = [&](std::size_t i) {
    return std::pair(rig.visited[i].record.previous_sector, rig.visited[i].record.previous_slot);
  };
  EXPECT_EQ(back(0), std::pair(std::uint64_t{0}, std::uint16_t{0}));
  EXPECT_EQ(back(1), std::pair(std::uint64_t{0}, std::uint16_t{0}));
  EXPECT_EQ(back(2), std::pair(kFirstBatch, std::uint16_t{0}));
  EXPECT_EQ(back(3), std::pair(kFirstBatch, std::uint16_t{1}));
}

TEST(LogWriter, ATrackThatHasNoRoomIsLeftForTheNext) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  const auto at =
      rig.append_batches(1, 3, 1020);  // of 1022 blocks; the header of the track is one more
  ASSERT_EQ(at.size(), 3u);
  EXPECT_EQ(at[1].batch_sector, kFirstBatch + 1022);
  EXPECT_EQ(at[2].batch_sector, kReservedBlocks + kTrackBlocks + 1);
  EXPECT_EQ(rig.writer->free_tracks(), 4u);
  EXPECT_EQ(rig.writer->used_bytes(), std::uint64_t{kTrackBlocks + 1 + 1022} * kBlockBytes);
  EXPECT_EQ(reopened(rig), "|1 2 3");
}

TEST(LogWriter, ATrackIsFilledToItsLastBlock) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  // 1 header of the track + 2 x 1022 leaves three blocks: one of 2, one of 1.
  rig.append_batches(1, 2, 1020);
  rig.append_batches(3, 1, 1);
  const Result<LogLocation> last = rig.append_now(record_of(1, 4, 1, RecordType::kZero));
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->batch_sector, kReservedBlocks + kTrackBlocks - 1);
  EXPECT_EQ(rig.append_batches(5, 1)[0].batch_sector, kReservedBlocks + kTrackBlocks + 1);
  EXPECT_EQ(reopened(rig), "|1 2 3 4 5");
}

TEST(LogWriter, ABatchThatFailsIsWrittenInTheNextTrackUnderTheSameNumbers) {
  for (const Remains remains : {Remains::kNothing, Remains::kSomeSectors, Remains::kEverything}) {
    LogRig rig;
    ASSERT_TRUE(rig.open());
    rig.append_batches(1, 2);
    rig.disk.fail_writes(1, remains);
    rig.append(record_of(1, 3));
    rig.append(record_of(2, 1));
    rig.executor.run_until_idle();
    EXPECT_EQ(outcomes_text(rig), "3:ok 1:ok");
    EXPECT_EQ(rig.outcomes[0].result->batch_sector, kReservedBlocks + kTrackBlocks + 1);
    rig.append_batches(4, 1);
    EXPECT_EQ(reopened(rig), "|1 2 3 1 4");
    EXPECT_EQ(rig.recovered.disks[0].tail.next_batch, 5u);
    EXPECT_EQ(rig.visited[2].record.previous_sector, rig.visited[1].location.batch_sector);
  }
}

TEST(LogWriter, TheFirstBatchOfATrackMayFailToo) {
  for (const Remains remains : {Remains::kNothing, Remains::kSomeSectors, Remains::kEverything}) {
    LogRig rig;
    ASSERT_TRUE(rig.open());
    rig.disk.fail_writes(1, remains);
    rig.append_batches(1, 3);
    EXPECT_EQ(reopened(rig), "|1 2 3");
  }
}

TEST(LogWriter, AfterTwoFailuresInARowEveryAppendFails) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.append_batches(1, 1);
  rig.disk.fail_writes(2, Remains::kNothing);
  rig.append(record_of(1, 2));
  rig.executor.turn();
  rig.append(record_of(1, 3), Urgency::kEssential);
  rig.executor.run_until_idle();
  EXPECT_EQ(outcomes_text(rig), "2:io 3:io");
  EXPECT_TRUE(rig.writer->failed());
  rig.append(record_of(1, 4));
  EXPECT_EQ(rig.outcomes.size(), 2u) << "never before the call has returned";
  rig.executor.run_until_idle();
  EXPECT_EQ(outcomes_text(rig), "2:io 3:io 4:io");
  EXPECT_TRUE(rig.writer->idle());
  EXPECT_EQ(reopened(rig), "|1");
}

TEST(LogWriter, FailuresThatAreNotInARowDoNotEndIt) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  rig.disk.fail_writes(1, Remains::kNothing);
  rig.append_batches(1, 1);
  rig.disk.fail_writes(1, Remains::kNothing);
  rig.append_batches(2, 1);
  EXPECT_FALSE(rig.writer->failed());
  EXPECT_EQ(reopened(rig), "|1 2");
}

TEST(LogWriter, AFullLogRefusesOrdinaryRecordsAndKeepsAReserve) {
  LogRig rig({.tracks = 5});
  ASSERT_TRUE(rig.open());
  std::uint64_t sequence = 1;
  for (; rig.append_now(record_of(1, sequence, 1024)).has_value(); ++sequence) {
  }
  EXPECT_EQ(rig.writer->free_tracks(), 2u);
  rig.append(record_of(1, 100, 1024));
  rig.append(record_of(1, 101, 1024), Urgency::kEssential);
  rig.append(record_of(1, 102, 1024));
  rig.executor.run_until_idle();
  EXPECT_EQ(outcomes_text(rig), "100:no-space 102:no-space 101:ok");
  EXPECT_EQ(rig.writer->free_tracks(), 1u);
  EXPECT_EQ(reopened(rig), "|1 2 3 101");
}

TEST(LogWriter, OrdinaryRecordsDoNotEatTheReserveThatAnEssentialOneOpened) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  const std::uint64_t next = fill(rig, 2);
  ASSERT_TRUE(rig.append_now(record_of(1, next, 1024), Urgency::kEssential).has_value());
  ASSERT_EQ(rig.writer->free_tracks(), 1u);
  // There is room for it in the track, but that is not its room: also after a restart.
  for (int starts = 0; starts < 2; ++starts) {
    const Result<LogLocation> refused = rig.append_now(record_of(1, 1000));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kNoSpace);
    rig.close();
    ASSERT_TRUE(rig.open());
  }
  EXPECT_TRUE(rig.append_now(record_of(1, next + 1), Urgency::kEssential).has_value());
}

TEST(LogWriter, ARecordOfTheLastReserveFailsAloneWhenNothingIsLeft) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  const std::uint64_t next = fill(rig, 0);
  rig.append(record_of(1, next, 1024), Urgency::kEssential);
  rig.append(record_of(1, next + 1, 1), Urgency::kEssential);
  rig.executor.run_until_idle();
  ASSERT_EQ(rig.outcomes.size(), 2u);
  EXPECT_EQ(rig.outcomes[0].result.error().code, ErrorCode::kNoSpace);
  EXPECT_TRUE(rig.outcomes[1].result.has_value()) << "it fits into what is left of the track";
  EXPECT_EQ(reopened(rig).substr(0, 1), "|");
}

TEST(LogWriter, BeforeImagesLeaveTheLastTrackToWhatGivesTracksBack) {
  LogRig rig({.tracks = 6});
  ASSERT_TRUE(rig.open());
  std::uint64_t next = fill(rig, 2);
  const auto before_image = [&] {
    Record record = record_of(1, next++, 1024);
    record.type = RecordType::kBeforeImage;
    return rig.append_now(record, Urgency::kBeforeImage);
  };
  while (before_image().has_value()) {
  }
  EXPECT_EQ(rig.writer->free_tracks(), 1u);
  ASSERT_TRUE(rig.append_now(record_of(1, next++, 1024), Urgency::kEssential).has_value());
  ASSERT_EQ(rig.writer->free_tracks(), 0u);
  // There is room for it in the track, but that is not its room: also after a restart.
  for (int starts = 0; starts < 2; ++starts) {
    EXPECT_EQ(before_image().error().code, ErrorCode::kNoSpace);
    rig.close();
    ASSERT_TRUE(rig.open());
  }
  // One that waits in front does not hold up what comes behind it.
  Record record = record_of(1, next++, 1);
  record.type = RecordType::kBeforeImage;
  rig.append(record, Urgency::kBeforeImage);
  rig.append(record_of(1, 1000), Urgency::kEssential);
  rig.executor.run_until_idle();
  ASSERT_EQ(rig.outcomes.size(), 2u);
  EXPECT_FALSE(rig.outcomes[0].result.has_value());
  EXPECT_TRUE(rig.outcomes[1].result.has_value());
}

TEST(LogWriter, ARecordAppendedByACompletionGoesIntoTheNextBatch) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  bool second = false;
  const Record first = record_of(1, 1);
  rig.writer->append(first, test::whole(test::payload_of(1, 1)), Urgency::kOrdinary,
                     [&](const Result<LoggedAt>&) {
                       rig.append(record_of(1, 2));
                       second = rig.outcomes.empty();
                     });
  rig.executor.run_until_idle();
  EXPECT_TRUE(second);
  EXPECT_EQ(outcomes_text(rig), "2:ok");
}

TEST(LogWriter, WaitsWhileTheGateOfANewTrackIsShut) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  bool open = false;
  std::uint64_t asked = 99;
  rig.writer->set_track_gate([&](std::uint8_t, std::uint64_t track) {
    asked = track;
    return open;
  });
  rig.append(record_of(1, 1));
  rig.executor.run_until_idle();
  rig.append(record_of(1, 2));
  rig.executor.run_until_idle();
  EXPECT_EQ(outcomes_text(rig), "");
  EXPECT_EQ(asked, 0u);
  open = true;
  rig.writer->retry();
  rig.executor.run_until_idle();
  EXPECT_EQ(outcomes_text(rig), "1:ok 2:ok");
  asked = 99;
  rig.append_batches(3, 1);
  EXPECT_EQ(asked, 99u) << "only a track's first write asks";
  EXPECT_EQ(reopened(rig), "|1 2 3");
}

TEST(LogWriter, MeasuresFromDispatchToDurable) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  std::chrono::nanoseconds duration{0};
  rig.writer->set_observer(
      [&](const LogWriter::BatchReport& report) { duration = report.duration; });
  rig.disk.hold();
  rig.append(record_of(1, 1));
  rig.executor.run_until_idle();
  rig.executor.advance(3ms);
  rig.disk.release();
  EXPECT_EQ(duration, 3ms);
}

TEST(LogWriter, CountsItsSpace) {
  LogRig rig;
  ASSERT_TRUE(rig.open());
  EXPECT_EQ(rig.writer->used_bytes(), 0u);
  EXPECT_EQ(rig.writer->limit_bytes(), 6 * test::kTrackBytes);
  EXPECT_EQ(rig.log_disk->next_fresh_track(), 0u);
  rig.append_batches(1, 1);
  EXPECT_EQ(rig.writer->used_bytes(), 3u * kBlockBytes);
  EXPECT_EQ(rig.log_disk->next_fresh_track(), 1u);
}

}  // namespace
}  // namespace mariner::logging
