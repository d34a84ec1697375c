#include "logging/packing_job.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/logging/slot_rig.h"

namespace mariner::logging {
namespace {

using test::kTrackBytes;
using test::SlotRig;
using What = PackingFailure::What;

class PackingJobTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(rig_.open()); }
  void TearDown() override { rig_.slotted().end_building(); }
  // Of the tracks at these places among the live ones.
  PackingJob job_of(std::vector<std::size_t> tracks) {
    PackingJob job{.disk = rig_.member().slotted,
                   .live = live_tracks(*rig_.array).front(),
                   .tracks = std::move(tracks),
                   .leave_slots = 1};
    return job;
  }
  // "ok", or what it failed of.
  std::string outcome_of(const PackingJob& job, const PackPause& pause = {}) {
    const auto always = [] { return Result<void>{}; };
    const PackingResult result = pack_tracks(job, pause ? pause : PackPause(always));
    if (result) {
      packed_ = *result;
      return "ok";
    }
    failure_ = result.error();
    EXPECT_EQ(rig_.slotted().usable_slots(), rig_.slotted().map().free_slots())
        << "what it had taken is free";
    switch (failure_.what) {
      case What::kError: return std::string(error_code_name(failure_.error.code));
      case What::kTooYoung: return "too young";
      case What::kDamaged: return "damaged";
      case What::kNotSmaller: return "not smaller";
    }
    return "?";
  }
  std::vector<std::byte> track_bytes(std::uint64_t allocation) {
    Payload to = Payload::allocate(kTrackBytes);
    const std::uint64_t track = *rig_.member().tracks.track(allocation);
    EXPECT_TRUE(rig_.slotted().read(rig_.offset_of(track), to.bytes()).has_value());
    return {to.data(), to.data() + to.size()};
  }

  SlotRig rig_;
  Packed packed_;
  PackingFailure failure_;
};

TEST_F(PackingJobTest, ThePackReadsAsItsTracks) {
  rig_.leave_track();
  for (std::uint64_t i = 1; i <= 5; ++i) rig_.append(i, 30 * static_cast<std::uint32_t>(i));
  rig_.leave_track();
  rig_.append(6, 700, false);
  rig_.append(7, 600);
  rig_.append(8, 0);
  rig_.leave_track();
  rig_.append(9);
  const auto before_1 = track_bytes(1);
  const auto before_2 = track_bytes(2);
  ASSERT_EQ(outcome_of(job_of({0, 1})), "ok");
  EXPECT_GT(packed_.used_bytes, 1700u * kBlockBytes);
  EXPECT_LT(packed_.used_bytes, 1800u * kBlockBytes);
  EXPECT_LT(packed_.place.bytes(), 800u * kBlockBytes) << "700 blocks are noise";
  EXPECT_EQ(track_bytes(1), before_1) << "nothing counts yet";
  SlotMap map = rig_.slotted().map();
  packed_.place.id = map.next_pack();
  map.add_pack(packed_.place);
  rig_.slotted().adopt(std::move(map), rig_.slotted().generation() + 1);
  rig_.slotted().end_building();
  EXPECT_EQ(rig_.place(2).kind, TrackPlace::Kind::kPack);
  EXPECT_EQ(track_bytes(1), before_1);
  EXPECT_EQ(track_bytes(2), before_2);
}

TEST_F(PackingJobTest, WhatCannotBeCompressedIsNotSmaller) {
  rig_.fill_tracks(1, 2, false);
  EXPECT_EQ(outcome_of(job_of({0, 1})), "not smaller");
}

TEST_F(PackingJobTest, TracksThatAreTooYoungWait) {
  rig_.fill_tracks(1, 2);
  PackingJob job = job_of({0, 1});
  const VersionTime youngest = test::record_of(1, 2).time;
  job.cold_before = youngest;
  EXPECT_EQ(outcome_of(job), "too young");
  EXPECT_EQ(failure_.until.ns, youngest.ns);
  EXPECT_EQ(failure_.track, 1u);
  job.cold_before = {youngest.ns + 1};
  EXPECT_EQ(outcome_of(job), "ok");
}

TEST_F(PackingJobTest, ADamagedTrackIsNamed) {
  rig_.leave_track();
  rig_.append(1);
  rig_.append(2);
  rig_.append(3);
  rig_.fill_tracks(4, 1);
  const std::uint64_t sector = rig_.durable.at(2).location.batch_sector;
  const std::uint64_t in_track =
      sector * kBlockBytes - rig_.offset_of(*rig_.member().tracks.track(1));
  const std::uint64_t slot = rig_.place(1).number;
  rig_.disk.flip_bit(kReservedBytes + slot * kTrackBytes + in_track + 70, 0);
  EXPECT_EQ(outcome_of(job_of({1, 0})), "damaged");
  EXPECT_EQ(failure_.track, 0u);
}

// It stays as it is, to be found by who reads it: a pack is not made of what is not what was
// written.
TEST_F(PackingJobTest, ATrackWithADamagedPayloadIsNamed) {
  rig_.fill_tracks(1, 2);
  const std::uint64_t in_track = rig_.durable.at(2).location.payload_sector() * kBlockBytes -
                                 rig_.offset_of(*rig_.member().tracks.track(2));
  rig_.disk.flip_bit(kReservedBytes + rig_.place(2).number * kTrackBytes + in_track + 9, 0);
  EXPECT_EQ(outcome_of(job_of({0, 1})), "damaged");
  EXPECT_EQ(failure_.track, 1u);
  EXPECT_NE(failure_.error.message.find("does not read back: block "), std::string::npos)
      << failure_.error.message;
  EXPECT_EQ(outcome_of(job_of({0})), "ok");
  EXPECT_FALSE(rig_.readable(2));
}

TEST_F(PackingJobTest, WithoutASlotThereIsNoRoom) {
  rig_.fill_tracks(1, 2);
  PackingJob job = job_of({0, 1});
  job.leave_slots = rig_.slotted().usable_slots();
  EXPECT_EQ(outcome_of(job), "no-space");
}

TEST_F(PackingJobTest, EndsWhereverItIsStopped) {
  rig_.fill_tracks(1, 2);
  const PackingJob job = job_of({0, 1});
  std::size_t pauses = 0;
  ASSERT_EQ(outcome_of(job,
                       [&pauses]() -> Result<void> {
                         ++pauses;
                         return {};
                       }),
            "ok");
  ASSERT_GE(pauses, 2u);
  rig_.slotted().end_building();
  for (std::size_t stop = 0; stop < pauses; ++stop) {
    std::size_t left = stop;
    EXPECT_EQ(outcome_of(job,
                         [&left]() -> Result<void> {
                           if (left-- == 0) return Error{ErrorCode::kAborted, "stopped"};
                           return {};
                         }),
              "aborted")
        << stop;
  }
}

TEST_F(PackingJobTest, AWriteThatGoesAstrayOrIsLostIsNoticed) {
  rig_.fill_tracks(1, 2);
  const std::set<std::uint64_t> used{rig_.place(1).number, rig_.place(2).number,
                                     rig_.place(3).number};
  for (const bool lost : {true, false}) {
    if (lost) {
      rig_.disk.drop_next_write();
    } else {
      rig_.disk.misdirect_next_write(kReservedBytes + 7 * kTrackBytes + (4u << 20));
    }
    ASSERT_FALSE(used.contains(7));
    EXPECT_EQ(outcome_of(job_of({0, 1})), "corrupt");
  }
  EXPECT_TRUE(rig_.readable(1) && rig_.readable(2));
}

TEST_F(PackingJobTest, ErrorsOfTheDiskArePassedOn) {
  rig_.fill_tracks(1, 2);
  rig_.disk.fail_writes(1, test::FaultyDisk::Remains::kSomeSectors);
  EXPECT_EQ(outcome_of(job_of({0, 1})), "io");
  rig_.disk.fail_reads({kReservedBytes + rig_.place(2).number * kTrackBytes + 8192, 512});
  EXPECT_EQ(outcome_of(job_of({0, 1})), "io");
}

}  // namespace
}  // namespace mariner::logging
