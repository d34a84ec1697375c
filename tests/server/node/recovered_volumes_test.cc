#include "server/node/recovered_volumes.h"

#include <gtest/gtest.h>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

using logging::Record;
using logging::RecordType;
using Ordinals = std::vector<std::uint64_t>;

constexpr std::uint32_t kVolume = 77;

// The records of a volume of a cluster, as recovery gives them out.
class RecoveredVolumesTest : public ::testing::Test {
 protected:
  RecoveredVolumesTest() {
    recovered_.expect(kVolume, {256}, RecoveredVolumes::Order::kByNumber);
    EXPECT_TRUE(recovered_.open_indexes(parts_.indexes(), 0));
  }

  Record next(RecordType type, std::uint64_t sequence) {
    Record record;
    record.type = type;
    record.volume = VolumeId{kVolume};
    record.epoch = Epoch{1};
    record.ordinal = ++ordinal_ + parts_.indexes().frontier();
    record.sequence = SequenceNumber{sequence};
    return record;
  }
  std::uint64_t write(std::uint64_t sequence, std::uint64_t settled = 0) {
    Record record = next(RecordType::kZero, sequence);
    record.time = VersionTime{1000 + sequence};
    record.extent = {Lbn{sequence % 256}, {1}};
    record.settled = SequenceNumber{settled};
    recovered_.record(record, {});
    return record.ordinal;
  }
  void make_void(std::uint64_t first, std::uint64_t last) {
    Record record = next(RecordType::kVoid, first);
    record.target_sequence = SequenceNumber{last};
    recovered_.record(record, {});
  }
  // The highest number, and how much of it the index knows.
  std::pair<std::uint64_t, std::uint64_t> taken() {
    Result<RecoveredVolumes::Found> found = recovered_.take(kVolume);
    EXPECT_TRUE(found.has_value());
    std::pair<std::uint64_t, std::uint64_t> out{found->history.last.value,
                                                found->index->newest().sequence.value};
    found->index.reset();
    recovered_.remove_index(kVolume);
    return out;
  }

  testing::NodeParts parts_;
  RecoveredVolumes recovered_{parts_.store(), parts_.log()};
  std::uint64_t ordinal_ = 1000;
};

TEST_F(RecoveredVolumesTest, WhatFollowsInOrderIsTaken) {
  write(1);
  write(2);
  write(3);
  EXPECT_EQ(recovered_.taken_back(), Ordinals{});
  EXPECT_EQ(recovered_.held_from(), UINT64_MAX);
  EXPECT_EQ(taken(), std::pair(3ul, 3ul));
}

TEST_F(RecoveredVolumesTest, WhatStandsBehindAMissingNumberIsTakenBack) {
  write(1);
  const std::uint64_t third = write(3);
  const std::uint64_t fourth = write(4);
  EXPECT_EQ(recovered_.held_from(), third);
  EXPECT_EQ(recovered_.taken_back(), (Ordinals{third, fourth}));
  EXPECT_EQ(taken(), std::pair(1ul, 1ul));
}

TEST_F(RecoveredVolumesTest, ANumberThatWasVoidedIsNotMissing) {
  write(1);
  write(3);
  make_void(2, 2);  // it failed, and the coordinator said so
  EXPECT_EQ(recovered_.held_from(), UINT64_MAX);
  write(4);
  EXPECT_EQ(recovered_.taken_back(), Ordinals{});
  EXPECT_EQ(taken(), std::pair(4ul, 4ul));
}

TEST_F(RecoveredVolumesTest, WhenWhatWasMissingComesLaterTheRestComesAgain) {
  write(1);
  const std::uint64_t third = write(3);
  write(2);
  write(3);
  EXPECT_EQ(recovered_.taken_back(), Ordinals{third});
  EXPECT_EQ(taken(), std::pair(3ul, 3ul));
}

TEST_F(RecoveredVolumesTest, WhatWasVoidedBehindAMissingNumberIsTakenBackForGood) {
  write(1);
  const std::uint64_t third = write(3);
  make_void(2, 100);  // of a coordinator that was told of no more than 1
  write(101);
  EXPECT_EQ(recovered_.taken_back(), Ordinals{third});
  EXPECT_EQ(taken(), std::pair(101ul, 101ul));
}

TEST_F(RecoveredVolumesTest, WhatIsMissingBelowWhatWasSettledIsLostAndHoldsNothingUp) {
  write(1);
  write(4, 3);
  EXPECT_EQ(recovered_.taken_back(), Ordinals{});
  EXPECT_EQ(taken(), std::pair(4ul, 4ul));
}

TEST_F(RecoveredVolumesTest, OfAVolumeWhoseCoordinatorStandsBesideTheLogNothingIsTakenBack) {
  RecoveredVolumes standalone(parts_.store(), parts_.log());
  standalone.expect(78, {256});
  ASSERT_TRUE(standalone.open_indexes(parts_.indexes(), 0));
  Record record = next(RecordType::kZero, 5);
  record.volume = VolumeId{78};
  record.time = VersionTime{1};
  record.extent = {Lbn{0}, {1}};
  standalone.record(record, {});
  EXPECT_EQ(standalone.taken_back(), Ordinals{});
  Result<RecoveredVolumes::Found> found = standalone.take(78);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->history.last, SequenceNumber{5});
  found->index.reset();
  standalone.remove_index(78);
}

}  // namespace
}  // namespace mariner::node
