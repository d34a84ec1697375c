#include "server/volume/volume_log.h"

#include <gtest/gtest.h>

#include "logging/recovery.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/index_rig.h"
#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

using logging::Record;
using logging::RecordType;
using replication::WriteKind;
using replication::WriteMessage;

WriteMessage message(WriteKind kind, BlockRange extent, std::uint64_t payload_blocks) {
  WriteMessage out;
  out.volume = VolumeId{7};
  out.stamp = {Epoch{2}, SequenceNumber{5}, VersionTime{50}};
  out.settled = SequenceNumber{4};
  out.frontier = SequenceNumber{3};
  out.write.kind = kind;
  out.write.extent = extent;
  out.write.payload = {Payload::zeroed(payload_blocks * kBlockBytes), 0,
                       payload_blocks * kBlockBytes};
  return out;
}

TEST(RecordOf, SaysAllThatTheMessageSays) {
  const Record record = record_of(message(WriteKind::kData, {{1}, {2}}, 2));
  EXPECT_EQ(record.type, RecordType::kWrite);
  EXPECT_EQ(record.flags, 0);
  EXPECT_EQ(record.volume, VolumeId{7});
  EXPECT_EQ(record.epoch, Epoch{2});
  EXPECT_EQ(record.sequence, SequenceNumber{5});
  EXPECT_EQ(record.time, VersionTime{50});
  EXPECT_EQ(record.settled, SequenceNumber{4});
  EXPECT_EQ(record.frontier, SequenceNumber{3});
  EXPECT_EQ(record.payload_blocks, 2u);
  EXPECT_TRUE(logging::record_is_consistent(record));
}

TEST(RecordOf, EveryKindIsAConsistentRecord) {
  WriteMessage repeated = message(WriteKind::kRepeated, {{1}, {9}}, 3);
  repeated.write.has_head = repeated.write.has_tail = true;
  EXPECT_EQ(record_of(repeated).flags, logging::kRepeats | logging::kHasHead | logging::kHasTail);
  EXPECT_TRUE(logging::record_is_consistent(record_of(repeated)));
  WriteMessage zero = message(WriteKind::kZero, {{1}, {9}}, 1);
  zero.write.has_tail = true;
  EXPECT_EQ(record_of(zero).type, RecordType::kZero);
  EXPECT_TRUE(logging::record_is_consistent(record_of(zero)));
  WriteMessage rollback = message(WriteKind::kRollback, {}, 0);
  rollback.write.target = {2};
  rollback.write.target_time = {20};
  EXPECT_EQ(record_of(rollback).target_sequence, SequenceNumber{2});
  EXPECT_EQ(record_of(rollback).target_time, VersionTime{20});
  EXPECT_TRUE(logging::record_is_consistent(record_of(rollback)));
}

class VolumeLogTest : public ::testing::Test {
 protected:
  VolumeLogTest() { writer_.add(log_disk_); }

  test::ManualExecutor executor_;
  test::FaultyDisk disk_{
      executor_,
      {.size_bytes = logging::kReservedBytes + 4 * std::uint64_t{logging::kTrackBytesMin}}};
  logging::Superblock superblock_ =
      *logging::format_log(disk_, logging::LogId{}, 0, logging::kTrackBytesMin, 1);
  logging::TrackList tracks_{superblock_};
  logging::LogDisk log_disk_{{disk_, superblock_, tracks_}, {}};
  logging::LogWriter writer_{executor_, 1, {}};
  test::IndexRig index_{executor_};
  BaseMap base_{false};
  VolumeLog log_{VolumeId{7}, Epoch{2}, {writer_, index_.index(), base_}, Images::kHere};
};

TEST_F(VolumeLogTest, InTheIndexWhenDurableAndBeforeItIsSaid) {
  bool said = false;
  log_.log(message(WriteKind::kData, {{1}, {2}}, 2), [&](const Result<void>& result) {
    EXPECT_TRUE(result);
    EXPECT_EQ(index_.index().newest().sequence, SequenceNumber{5});
    EXPECT_EQ(log_.in_flight(), 0u);
    said = true;
  });
  EXPECT_EQ(log_.in_flight(), 1u);
  disk_.hold();
  executor_.run_ready();
  EXPECT_EQ(index_.index().newest().sequence, SequenceNumber{0});
  disk_.release();
  executor_.run_ready();
  EXPECT_TRUE(said);
}

TEST_F(VolumeLogTest, NotInTheIndexWhenItFailed) {
  disk_.fail_writes(1000, test::FaultyDisk::Remains::kNothing);
  int failed = 0;
  const auto count = [&](const Result<void>& result) { failed += result ? 0 : 1; };
  log_.log(message(WriteKind::kData, {{1}, {2}}, 2), count);
  log_.log_void({VolumeId{7}, Epoch{2}, SequenceNumber{5}, SequenceNumber{5}}, count);
  executor_.run_ready();
  EXPECT_EQ(failed, 2);
  EXPECT_EQ(index_.index().newest().sequence, SequenceNumber{0});
}

TEST_F(VolumeLogTest, ABeforeImageBecomesTheBase) {
  log_.log_before_image({{4}, {2}}, {Payload::zeroed(2 * kBlockBytes), 0, 2 * kBlockBytes}, false,
                        [](const Result<void>& result) { EXPECT_TRUE(result); });
  executor_.run_ready();
  EXPECT_EQ(index_.answers().locate({{4}, {1}}, SequenceNumber{0})[0].source,
            index::LocatedRun::Source::kLog);
}

// ---- room for before-images ---------------------------------------------------------------------

constexpr std::uint64_t kHeader = kBlockBytes;  // of each before-image, at most

TEST_F(VolumeLogTest, RoomIsSetAsideForTheBaseThatAWriteReplacesUntilAnImageHoldsIt) {
  base_.add({{0}, {4}});
  const auto write = [&](std::uint64_t sequence, BlockRange range) {
    WriteMessage of = message(WriteKind::kData, range, range.count.value);
    of.stamp.sequence = {sequence};
    of.stamp.time = {100 + sequence};
    log_.log(of, [](const Result<void>& result) { EXPECT_TRUE(result); });
    executor_.run_ready();
  };
  write(5, {{8}, {2}});
  EXPECT_EQ(writer_.set_aside_bytes(), 0u) << "the image holds no base there";
  write(6, {{3}, {2}});
  EXPECT_EQ(writer_.set_aside_bytes(), kBlockBytes + kHeader) << "of one of the two blocks";
  log_.applied({5});
  EXPECT_EQ(writer_.set_aside_bytes(), kBlockBytes + kHeader);
  log_.applied({6});
  EXPECT_EQ(writer_.set_aside_bytes(), 0u);
}

TEST_F(VolumeLogTest, TheBaseMayComeIntoTheImageWhileAWriteWaits) {
  disk_.hold();
  log_.log(message(WriteKind::kData, {{2}, {4}}, 4),
           [](const Result<void>& result) { EXPECT_TRUE(result); });
  executor_.run_ready();
  EXPECT_EQ(writer_.set_aside_bytes(), 4 * kBlockBytes + kHeader) << "of any of its blocks";
  base_.add({{0}, {4}});
  disk_.release();
  executor_.run_ready();
  EXPECT_EQ(writer_.set_aside_bytes(), 2 * kBlockBytes + kHeader);
}

TEST_F(VolumeLogTest, NoRoomIsSetAsideForAWriteThatFailed) {
  base_.add({{0}, {4}});
  disk_.fail_writes(1000, test::FaultyDisk::Remains::kNothing);
  log_.log(message(WriteKind::kData, {{0}, {2}}, 2),
           [](const Result<void>& result) { EXPECT_FALSE(result); });
  executor_.run_ready();
  EXPECT_EQ(writer_.set_aside_bytes(), 0u);
}

TEST_F(VolumeLogTest, AnImageHereKeepsItsBlocksUnderZerosAndOthersDoNot) {
  base_.add({{0}, {4}});
  const WriteMessage zeros = message(WriteKind::kZero, {{0}, {4}}, 0);
  log_.log(zeros, [](const Result<void>& result) { EXPECT_TRUE(result); });
  executor_.run_ready();
  EXPECT_EQ(writer_.set_aside_bytes(), 0u);
  {
    test::IndexRig index(executor_);
    VolumeLog elsewhere(VolumeId{7}, Epoch{2}, {writer_, index.index(), base_}, Images::kElsewhere);
    elsewhere.log(zeros, [](const Result<void>& result) { EXPECT_TRUE(result); });
    executor_.run_ready();
    EXPECT_EQ(writer_.set_aside_bytes(), 2 * (4 * kBlockBytes + kHeader)) << "each of two nodes";
    elsewhere.close(Error{ErrorCode::kUnavailable, "the volume goes"});
    EXPECT_EQ(writer_.set_aside_bytes(), 0u);
  }
}

TEST_F(VolumeLogTest, WhatIsUnderWayWhenItIsClosedLeavesNoRoomSetAside) {
  base_.add({{0}, {4}});
  bool logged = false;
  disk_.hold();
  log_.log(message(WriteKind::kData, {{0}, {2}}, 2),
           [&](const Result<void>& result) { logged = result.has_value(); });
  executor_.run_ready();
  EXPECT_EQ(writer_.set_aside_bytes(), 2 * kBlockBytes + kHeader);
  log_.close(Error{ErrorCode::kUnavailable, "the volume goes"});
  disk_.release();
  executor_.run_ready();
  EXPECT_TRUE(logged);
  EXPECT_EQ(writer_.set_aside_bytes(), 0u);
}

TEST_F(VolumeLogTest, RoomIsSetAsideForWhatAStartFinds) {
  UnappliedBytes unapplied;
  unapplied.add({4}, 2 * kBlockBytes);
  log_.found(unapplied);
  EXPECT_EQ(writer_.set_aside_bytes(), 0u) << "no base is in the image";
  base_.add({{0}, {4}});
  log_.found(unapplied);
  EXPECT_EQ(writer_.set_aside_bytes(), 2 * kBlockBytes + kHeader);
  log_.applied({4});
  EXPECT_EQ(writer_.set_aside_bytes(), 0u);
}

}  // namespace
}  // namespace mariner::volume
