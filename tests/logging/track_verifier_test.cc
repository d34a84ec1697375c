#include "logging/track_verifier.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::kTrackBlocks;
using test::LogRig;
using test::record_of;
using Kind = TrackDamage::Kind;

// "batches 2..3", "payload 1/7 +100..101", "header": one word after another for each damage.
std::string text(const TrackDamage& damage) {
  const std::string how = damage.unreadable ? "unreadable " : "";
  switch (damage.kind) {
    case Kind::kTrackHeader:
      return how + "header" +
             (damage.last_batch == 0 ? "" : " ..." + std::to_string(damage.last_batch));
    case Kind::kBatches:
      return how + "batches " + std::to_string(damage.first_batch) + ".." +
             std::to_string(damage.last_batch);
    case Kind::kPayload:
      return how + "payload " + std::to_string(damage.volume.value) + "/" +
             std::to_string(damage.sequence.value) + " +" +
             std::to_string(damage.extent.first.value) + ".." +
             std::to_string(damage.extent.end().value);
    case Kind::kMore: return how + "more";
  }
  return "?";
}

std::string text(const std::vector<TrackDamage>& damage) {
  std::string all;
  for (const TrackDamage& each : damage) all += (all.empty() ? "" : ", ") + text(each);
  return all;
}

// Batches of a writer in the first track, which is complete when the second is begun.
class TrackVerifierTest : public ::testing::Test {
 protected:
  TrackVerifierTest() { rig_.open(); }

  // Ends the first track; the next one begins with `sequence`.
  void complete(std::uint64_t sequence) {
    end_batch_ = sequence;
    rig_.writer->leave_tracks();
    rig_.append_batches(sequence, 1);
  }
  // The numbers of batches and sequence numbers agree in these tests.
  TrackVerifier::Request request() const {
    return {.track = 0, .allocation = 1, .expected_batch = 1, .end_batch = end_batch_};
  }
  TrackVerifier run(const TrackVerifier::Request& request) {
    TrackVerifier verifier(rig_.superblock, request);
    Payload buffer = Payload::allocate(std::size_t{TrackVerifier::kPieceBlocks} * kBlockBytes);
    blocks_read_ = 0;
    for (;;) {
      const TrackVerifier::Piece piece = verifier.next();
      if (piece.count == 0) return verifier;
      EXPECT_LE(piece.count, TrackVerifier::kPieceBlocks);
      const auto to = buffer.bytes().first(std::size_t{piece.count} * kBlockBytes);
      ++reads_;
      if (rig_.disk.read(piece.block * kBlockBytes, to)) {
        blocks_read_ += piece.count;
        verifier.take(to);
      } else {
        verifier.unreadable();
      }
    }
  }
  std::string verify() { return text(run(request()).damage()); }

  void flip(std::uint64_t block, std::uint64_t byte = 77) {
    rig_.disk.flip_bit(block * kBlockBytes + byte, 3);
  }

  LogRig rig_;
  std::uint64_t end_batch_ = 0;
  std::uint64_t blocks_read_ = 0;
  std::size_t reads_ = 0;
};

TEST_F(TrackVerifierTest, AWholeTrackIsSoundAndReadToItsLastBatchOnly) {
  rig_.append_batches(1, 40, 3);
  rig_.append_now(record_of(1, 41, 1, RecordType::kZero));
  complete(42);
  const TrackVerifier verifier = run(request());
  EXPECT_EQ(text(verifier.damage()), "");
  EXPECT_EQ(verifier.damaged_blocks(), 0u);
  EXPECT_EQ(verifier.next_batch(), 42u);
  EXPECT_EQ(verifier.last_time(), record_of(1, 41).time);
  EXPECT_LT(blocks_read_, 40u * 4 + 2 + TrackVerifier::kPieceBlocks);
}

TEST_F(TrackVerifierTest, BatchesOfManyRecords) {
  for (std::uint64_t i = 1; i <= 300; ++i) rig_.append(record_of(1, i, 5));
  rig_.executor.run_until_idle();
  rig_.writer->leave_tracks();
  const Result<LogLocation> behind = rig_.append_now(record_of(1, 301));
  ASSERT_TRUE(behind);
  // How many batches the burst has made is the writer's affair: the header of track 1 tells.
  Payload block = Payload::allocate(kBlockBytes);
  ASSERT_TRUE(rig_.disk.read(rig_.superblock.track_first_sector(1) * kBlockBytes, block.bytes()));
  const auto header = unpack_track_header(
      std::span<const std::byte, kBlockBytes>(block.data(), kBlockBytes), rig_.superblock.log, 1);
  ASSERT_TRUE(header);
  end_batch_ = header->first_batch;
  EXPECT_EQ(verify(), "");
  flip(rig_.outcomes[299].result->payload_sector() + 4);
  EXPECT_EQ(verify(), "payload 1/300 +30004..30005");
}

TEST_F(TrackVerifierTest, AFlippedPayloadBlockIsNamed) {
  const auto at = rig_.append_batches(1, 4, 3);
  complete(5);
  flip(at[1].payload_sector() + 2);
  const TrackVerifier verifier = run(request());
  ASSERT_EQ(text(verifier.damage()), "payload 1/2 +202..203");
  const TrackDamage& damage = verifier.damage().front();
  EXPECT_EQ(damage.first_block, at[1].payload_sector() + 2);
  EXPECT_EQ(damage.block_count, 1u);
  EXPECT_EQ(damage.time, record_of(1, 2).time);
  EXPECT_EQ(damage.type, RecordType::kWrite);
  EXPECT_EQ(damage.allocation, 1u);
  EXPECT_EQ(verifier.damaged_blocks(), 1u);
}

TEST_F(TrackVerifierTest, NeighbouringBlocksOfARecordAreOneRange) {
  const auto at = rig_.append_batches(1, 3, 6);
  complete(4);
  for (const std::uint64_t i : {0, 1, 4, 5}) flip(at[0].payload_sector() + i);
  flip(at[1].payload_sector());
  const TrackVerifier verifier = run(request());
  EXPECT_EQ(text(verifier.damage()),
            "payload 1/1 +100..102, payload 1/1 +104..106, payload 1/2 +200..201");
  EXPECT_EQ(verifier.damaged_blocks(), 5u);
}

TEST_F(TrackVerifierTest, ABlockOfAPatternDamagesAllThatItFills) {
  Record record = record_of(1, 1);
  record.flags = kRepeats | kHasHead | kHasTail;
  record.extent = {Lbn{500}, BlockCount{50}};
  record.payload_blocks = 3;
  const Result<LogLocation> at = rig_.append_now(record);
  complete(2);
  flip(at->payload_sector() + 1);
  EXPECT_EQ(verify(), "payload 1/1 +501..549");
  flip(at->payload_sector());
  flip(at->payload_sector() + 2);
  EXPECT_EQ(verify(), "payload 1/1 +500..550");
}

TEST_F(TrackVerifierTest, AFlippedBatchHeaderLosesItsBatchAndNoOther) {
  const auto at = rig_.append_batches(1, 5, 3);
  complete(6);
  flip(at[1].batch_sector, 100);
  flip(at[2].batch_sector, 9);  // the version: it is not even recognised
  const TrackVerifier verifier = run(request());
  ASSERT_EQ(text(verifier.damage()), "batches 2..3");
  const TrackDamage& damage = verifier.damage().front();
  EXPECT_EQ(damage.first_block, at[1].batch_sector);
  EXPECT_EQ(damage.block_count, at[3].batch_sector - at[1].batch_sector);
  EXPECT_EQ(damage.after, record_of(1, 1).time);
  EXPECT_EQ(damage.before, record_of(1, 4).time);
  EXPECT_EQ(verifier.next_batch(), 6u);
}

// A header whose length is damaged must not swallow the batches that it seems to cover.
TEST_F(TrackVerifierTest, ADamagedLengthHidesNothingBehindIt) {
  const auto at = rig_.append_batches(1, 6, 3);
  complete(7);
  rig_.disk.flip_bit(at[1].batch_sector * kBlockBytes + 12, 4);  // header_blocks: 1 becomes 17
  rig_.disk.flip_bit(at[1].batch_sector * kBlockBytes + 16, 6);  // total_blocks: room for them
  flip(at[3].payload_sector());
  EXPECT_EQ(verify(), "batches 2..2, payload 1/4 +400..401");
}

TEST_F(TrackVerifierTest, TheLastBatchIsMissedBecauseTheNextTrackSaysSo) {
  const auto at = rig_.append_batches(1, 5, 3);
  complete(6);
  flip(at[4].batch_sector, 100);
  EXPECT_EQ(verify(), "batches 5..5");
  EXPECT_EQ(blocks_read_, kTrackBlocks) << "it was searched for";
}

TEST_F(TrackVerifierTest, ATornBatchInTheMiddle) {
  const auto at = rig_.append_batches(1, 3, 4);
  complete(4);
  const std::vector<std::byte> zeros(512, std::byte{0});
  rig_.disk.overwrite((at[1].payload_sector() + 3) * kBlockBytes + 1024, zeros);
  EXPECT_EQ(verify(), "payload 1/2 +203..204");
}

TEST_F(TrackVerifierTest, AMisdirectedBatchIsNone) {
  const auto at = rig_.append_batches(1, 4, 3);
  complete(5);
  const auto third = rig_.disk.bytes({at[2].batch_sector * kBlockBytes, 4 * kBlockBytes});
  rig_.disk.overwrite(at[1].batch_sector * kBlockBytes, third);
  EXPECT_EQ(verify(), "batches 2..2");
}

TEST_F(TrackVerifierTest, StaleBytesAreNone) {
  const auto at = rig_.append_batches(1, 4, 3);
  complete(5);
  // A lost write: in the place of batch 3 stands one of an earlier use of the track.
  const Payload stale =
      test::area_of({.batch_number = 3, .allocation = 7, .sector = at[2].batch_sector},
                    {record_of(1, 3, 3)}, rig_.superblock.log);
  rig_.disk.overwrite(at[2].batch_sector * kBlockBytes, stale.bytes());
  EXPECT_EQ(verify(), "batches 3..3");
}

TEST_F(TrackVerifierTest, ADamagedTrackHeaderIsReportedAndTheRestVerified) {
  const auto at = rig_.append_batches(1, 4, 3);
  complete(5);
  flip(rig_.superblock.track_first_sector(0), 50);
  flip(at[2].payload_sector());
  EXPECT_EQ(verify(), "header, payload 1/3 +300..301");
  TrackVerifier::Request unknown = request();
  unknown.expected_batch = 0;
  EXPECT_EQ(text(run(unknown).damage()), "header, payload 1/3 +300..301");
  flip(at[0].batch_sector, 100);
  EXPECT_EQ(verify(), "header, batches 1..1, payload 1/3 +300..301");
  EXPECT_EQ(text(run(unknown).damage()), "header, batches 1..1, payload 1/3 +300..301");
}

TEST_F(TrackVerifierTest, AnUnusedTrackIsNoDamage) {
  // A write that failed has left track 1 behind; its batch stands in the next one.
  rig_.append_batches(1, 2);
  const TrackVerifier::Request unused{
      .track = 3, .allocation = 4, .expected_batch = 3, .end_batch = 3};
  EXPECT_EQ(text(run(unused).damage()), "");
}

TEST_F(TrackVerifierTest, ATrackThatIsGoneIsDamage) {
  const TrackVerifier::Request gone{
      .track = 3, .allocation = 4, .expected_batch = 3, .end_batch = 9};
  EXPECT_EQ(text(run(gone).damage()), "batches 3..8");
  TrackVerifier::Request unknown = gone;
  unknown.expected_batch = 0;
  EXPECT_EQ(text(run(unknown).damage()), "header ...8");
}

TEST_F(TrackVerifierTest, WhatMayStandInATrackBetweenIsNotMissedHere) {
  rig_.append_batches(1, 4, 3);
  complete(5);
  TrackVerifier::Request between = request();
  between.end_batch = 9;
  between.ends_here = false;
  const TrackVerifier verifier = run(between);
  EXPECT_EQ(text(verifier.damage()), "");
  EXPECT_EQ(verifier.next_batch(), 5u);
}

TEST_F(TrackVerifierTest, AFailedWritesRemainsAreNotOfTheTrack) {
  const auto at = rig_.append_batches(1, 3, 3);
  rig_.disk.fail_writes(1, test::FaultyDisk::Remains::kEverything);
  rig_.append_batches(4, 1, 3);  // written again in the next track
  end_batch_ = 4;
  flip(at[2].payload_sector() + 3 + 2);  // the payload of what is left behind
  EXPECT_EQ(verify(), "");
}

TEST_F(TrackVerifierTest, ABlockThatCannotBeReadIsAloneInItsReport) {
  const auto at = rig_.append_batches(1, 40, 3);
  complete(41);
  rig_.disk.fail_reads({(at[20].payload_sector() + 1) * kBlockBytes, kBlockBytes});
  EXPECT_EQ(verify(), "unreadable payload 1/21 +2101..2102");
  EXPECT_LT(reads_, 40u) << "the pieces grow again behind it";
  rig_.disk.fail_reads({at[20].batch_sector * kBlockBytes, kBlockBytes});
  EXPECT_EQ(verify(), "unreadable batches 21..21");
  rig_.disk.fail_reads({rig_.superblock.track_first_sector(0) * kBlockBytes, kBlockBytes});
  EXPECT_EQ(verify(), "unreadable header");
}

TEST_F(TrackVerifierTest, AHeaderAreaThatEndsInAnUnreadableBlock) {
  for (std::uint64_t i = 1; i <= 100; ++i) rig_.append(record_of(1, i, 1));
  rig_.executor.run_until_idle();
  const LogLocation at = *rig_.outcomes[0].result;
  ASSERT_GT(at.header_sectors, 2);
  rig_.append_batches(101, 2);
  rig_.writer->leave_tracks();
  rig_.append_batches(103, 1);
  rig_.disk.fail_reads({(at.batch_sector + 1) * kBlockBytes, kBlockBytes});
  end_batch_ = 4;
  EXPECT_EQ(verify(), "unreadable batches 1..1");
}

TEST_F(TrackVerifierTest, ADiskThatGivesNothingEndsInOneRange) {
  rig_.append_batches(1, 4, 3);
  complete(5);
  rig_.disk.fail_reads({0, rig_.disk.size_bytes()});
  const TrackVerifier verifier = run(request());
  EXPECT_EQ(text(verifier.damage()), "unreadable batches 1..4");
  EXPECT_EQ(verifier.damaged_blocks(), kTrackBlocks - 1u);
}

TEST_F(TrackVerifierTest, MoreDamageThanIsListedIsOneRangeAtTheEnd) {
  const auto at = rig_.append_batches(1, 100);
  complete(101);
  const std::size_t at_the_bound = TrackVerifier::kDamageMax;
  for (std::size_t i = 0; i < at_the_bound; ++i) flip(at[i].payload_sector());
  EXPECT_EQ(run(request()).damage().size(), at_the_bound);
  EXPECT_EQ(run(request()).damage().back().kind, Kind::kPayload);
  for (std::size_t i = at_the_bound; i < 100; ++i) flip(at[i].payload_sector());
  const TrackVerifier verifier = run(request());
  ASSERT_EQ(verifier.damage().size(), at_the_bound);
  const TrackDamage& last = verifier.damage().back();
  EXPECT_EQ(last.kind, Kind::kMore);
  EXPECT_EQ(last.first_block, at[at_the_bound - 1].payload_sector());
  EXPECT_EQ(last.first_block + last.block_count, at[99].payload_sector() + 1);
  EXPECT_EQ(verifier.damaged_blocks(), 100u);
}

// Whatever the disk holds: it ends, and says that something is wrong.
TEST_F(TrackVerifierTest, AnyFlipAnywhereIsFound) {
  const auto at = rig_.append_batches(1, 12, 2);
  complete(13);
  std::mt19937_64 random(5);
  const std::uint64_t first = rig_.superblock.track_first_sector(0) * kBlockBytes;
  const std::uint64_t end = (at[11].payload_sector() + 2) * kBlockBytes;
  for (int i = 0; i < 400; ++i) {
    const std::uint64_t byte = first + random() % (end - first);
    const auto bit = static_cast<unsigned>(random() % 8);
    rig_.disk.flip_bit(byte, bit);
    EXPECT_EQ(run(request()).damage().size(), 1u) << "byte " << byte << " of " << first;
    rig_.disk.flip_bit(byte, bit);
  }
  EXPECT_EQ(verify(), "");
}

}  // namespace
}  // namespace mariner::logging
