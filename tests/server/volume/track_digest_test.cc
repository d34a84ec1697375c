#include "server/volume/track_digest.h"

#include <gtest/gtest.h>

#include "tests/logging/array_rig.h"

namespace mariner::volume {
namespace {

using logging::Record;
using logging::RecordType;

Record record(RecordType type, std::uint64_t sequence, BlockRange extent) {
  Record out;
  out.type = type;
  out.volume = {1};
  out.sequence = {sequence};
  out.extent = extent;
  if (type == RecordType::kWrite || type == RecordType::kBeforeImage) {
    out.payload_blocks = static_cast<std::uint32_t>(extent.count.value);
  }
  return out;
}

VolumeDigest digest_of(const std::vector<Record>& records) {
  VolumeDigest digest;
  for (const Record& each : records) digest.add(each);
  digest.complete();
  return digest;
}

TEST(VolumeDigestTest, NeighboursAreOne) {
  const VolumeDigest digest = digest_of(
      {record(RecordType::kWrite, 3, {{8}, {4}}), record(RecordType::kWrite, 4, {{0}, {2}}),
       record(RecordType::kBeforeImage, 0, {{2}, {6}}), record(RecordType::kWrite, 5, {{20}, {1}}),
       record(RecordType::kWrite, 6, {{8}, {1}})});
  EXPECT_EQ(digest.written, (std::vector<BlockRange>{{{0}, {12}}, {{20}, {1}}}));
  EXPECT_EQ(digest.payload_bytes, 14 * kBlockBytes);
  EXPECT_EQ(digest.given_up, SequenceNumber{6});
  EXPECT_FALSE(digest.has_rollback);
}

TEST(VolumeDigestTest, LongRunsOfZerosStayApartAndDoNotOverlap) {
  const VolumeDigest digest = digest_of({record(RecordType::kZero, 1, {{0}, {60'000}}),
                                         record(RecordType::kZero, 2, {{30'000}, {60'000}}),
                                         record(RecordType::kZero, 3, {{90'000}, {10}}),
                                         record(RecordType::kZero, 4, {{100}, {5}})});
  EXPECT_EQ(digest.zeroed, (std::vector<BlockRange>{{{0}, {60'000}}, {{60'000}, {30'010}}}));
  EXPECT_TRUE(digest.written.empty());
}

TEST(VolumeDigestTest, NumbersOfWritesAndOfAllElse) {
  Record back = record(RecordType::kRollback, 7, {});
  back.target_sequence = {2};
  Record voided = record(RecordType::kVoid, 8, {});
  voided.target_sequence = {19};
  const VolumeDigest digest = digest_of({back, voided});
  EXPECT_TRUE(digest.has_rollback);
  EXPECT_EQ(digest.given_up, SequenceNumber{7}) << "a void holds nothing";
  EXPECT_EQ(digest.highest, SequenceNumber{8});
  EXPECT_EQ(digest.last, SequenceNumber{19});
}

TEST(VolumeDigestTest, TwoTogether) {
  VolumeDigest sum;
  sum.add(digest_of({record(RecordType::kWrite, 1, {{4}, {4}})}));
  sum.add(digest_of(
      {record(RecordType::kWrite, 2, {{0}, {4}}), record(RecordType::kZero, 3, {{50}, {4}})}));
  sum.complete();
  EXPECT_EQ(sum.written, (std::vector<BlockRange>{{{0}, {8}}}));
  EXPECT_EQ(sum.zeroed, (std::vector<BlockRange>{{{50}, {4}}}));
  EXPECT_EQ(sum.given_up, SequenceNumber{3});
}

TEST(TrackDigestTest, AsManyTracksAsThereAreAndAsAreAskedFor) {
  logging::test::ArrayRig rig{{.disks = 1}};
  ASSERT_TRUE(rig.open());
  for (std::uint64_t i = 1; i <= 4; ++i) {
    rig.append_now(logging::test::record_of(i % 2 + 1, i));
    rig.member(0).log_disk->leave_track(std::chrono::nanoseconds{0});
  }
  const std::vector<logging::LiveTracks> live = logging::live_tracks(*rig.array);
  const auto few = digest_oldest_tracks(live, 1, 2);
  ASSERT_TRUE(few.has_value());
  ASSERT_EQ(few->size(), 2u);
  EXPECT_EQ((*few)[0].end_ordinal, 2u);
  EXPECT_EQ((*few)[1].end_ordinal, 3u);
  ASSERT_TRUE((*few)[0].volumes.contains({2}));
  EXPECT_EQ((*few)[0].volumes.size(), 1u);
  EXPECT_EQ((*few)[1].volumes.at({1}).given_up, SequenceNumber{2});
  const auto all = digest_oldest_tracks(live, 3, 8);
  ASSERT_TRUE(all.has_value());
  EXPECT_EQ(all->size(), 3u) << "the last one is being filled";
  EXPECT_TRUE((*all)[0].volumes.empty()) << "given up before";
}

}  // namespace
}  // namespace mariner::volume
