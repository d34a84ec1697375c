#include "logging/pack_survey.h"

#include <gtest/gtest.h>

#include "tests/logging/pack_testing.h"

namespace mariner::logging {
namespace {

using test::Bytes;
using test::MemoryTracks;
using test::noise;

constexpr std::uint32_t kNone = PackSurvey::kNone;

// 0: A of LBN 5; 1 and 2: zero and B of 6 and 7; in the second track 3: A of 6; 4: A of LBN 5 of
// another volume; 5: C of 5; 6: B, of nobody knows which.
void fill_tracks(MemoryTracks& tracks) {
  const Bytes a = noise(1, kBlockBytes);
  const Bytes b = noise(2, kBlockBytes);
  tracks.begin_track(1u << 20);
  tracks.add_header(noise(9, 512));
  tracks.add_payload(a, 5);
  Bytes two(kBlockBytes);
  two.insert(two.end(), b.begin(), b.end());
  tracks.add_header(noise(9, 512));
  tracks.add_payload(two, 6);
  tracks.begin_track(1u << 20);
  tracks.add_payload(a, 6);
  tracks.add_payload(a, 5, 2);
  tracks.add_payload(noise(3, kBlockBytes), 5);
  tracks.add_payload(b);
}

TEST(PackSurvey, FindsVersions) {
  MemoryTracks tracks;
  fill_tracks(tracks);
  const PackSurvey survey(tracks.tracks());
  ASSERT_EQ(survey.blocks(), 7u);
  EXPECT_EQ(survey.previous_version(0), kNone);
  EXPECT_EQ(survey.previous_version(2), kNone);
  EXPECT_EQ(survey.previous_version(3), 1u);
  EXPECT_EQ(survey.previous_version(4), kNone);
  EXPECT_EQ(survey.previous_version(5), 0u);
  EXPECT_EQ(survey.previous_version(6), kNone);
  EXPECT_TRUE(survey.has_later_version(0));
  EXPECT_TRUE(survey.has_later_version(1));
  EXPECT_FALSE(survey.has_later_version(2));
  EXPECT_FALSE(survey.has_later_version(5));
}

TEST(PackSurvey, FindsNoVersionsUnlessAsked) {
  MemoryTracks tracks;
  fill_tracks(tracks);
  const PackSurvey survey(tracks.tracks(), false);
  EXPECT_EQ(survey.blocks(), 7u);
  EXPECT_EQ(survey.previous_version(5), kNone);
  EXPECT_FALSE(survey.has_later_version(0));
}

TEST(PackSurvey, KnowsWhereBlocksStand) {
  MemoryTracks tracks;
  fill_tracks(tracks);
  const PackSurvey survey(tracks.tracks());
  EXPECT_EQ(survey.place_of(0).at, 512u);
  EXPECT_EQ(survey.place_of(1).at, 5120u);
  EXPECT_EQ(survey.place_of(2).at, 9216u);
  EXPECT_EQ(survey.place_of(2).track, 0u);
  EXPECT_EQ(survey.place_of(3).at, 0u);
  EXPECT_EQ(survey.place_of(3).track, 1u);
  EXPECT_EQ(survey.place_of(6).at, 12288u);
}

TEST(PackSurvey, ReadsNothing) {
  MemoryTracks tracks;
  fill_tracks(tracks);
  const PackSurvey survey(tracks.tracks());
  EXPECT_EQ(tracks.reads, 0u);
}

TEST(PackSurvey, ManyBlocksOfManyVersions) {
  MemoryTracks tracks;
  tracks.begin_track(64u << 20);
  Bytes block(kBlockBytes);
  for (std::uint32_t i = 0; i < 10000; ++i) {
    block[0] = static_cast<std::byte>(1 + i % 250);
    block[1] = static_cast<std::byte>(i % 1000 / 250);
    tracks.add_payload(block, i % 777);
  }
  const PackSurvey survey(tracks.tracks());
  for (std::uint32_t i = 0; i < 10000; ++i) {
    ASSERT_EQ(survey.previous_version(i), i < 777 ? kNone : i - 777);
  }
}

}  // namespace
}  // namespace mariner::logging
