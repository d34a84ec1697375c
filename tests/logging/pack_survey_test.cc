#include "logging/pack_survey.h"

#include <gtest/gtest.h>

#include "tests/logging/pack_testing.h"

namespace mariner::logging {
namespace {

using test::Bytes;
using test::MemoryTracks;
using test::noise;

constexpr std::uint32_t kNone = PackSurvey::kNone;

PackSurvey survey_of(MemoryTracks& tracks, PackSurvey::Options options = {}) {
  const PackPause none;
  PackPace pace(none);
  PackWindow window(tracks.tracks(), tracks, pace);
  auto survey = PackSurvey::of(tracks.tracks(), window, options);
  EXPECT_TRUE(survey);
  return std::move(*survey);
}

// 0: A of LBN 5; 1 and 2: zero and B of 6 and 7; in the second track 3: A of 6; 4: A of LBN 5 of
// another volume; 5: C of 5; 6: B, of nobody knows which.
void fill(MemoryTracks& tracks) {
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

TEST(PackSurvey, FindsZeroAndEqualBlocks) {
  MemoryTracks tracks;
  fill(tracks);
  const PackSurvey survey = survey_of(tracks);
  ASSERT_EQ(survey.blocks(), 7u);
  for (std::uint32_t block = 0; block < 7; ++block) EXPECT_EQ(survey.is_zero(block), block == 1);
  EXPECT_EQ(survey.first_equal(0), 0u);
  EXPECT_EQ(survey.first_equal(2), 2u);
  EXPECT_EQ(survey.first_equal(3), 0u);
  EXPECT_EQ(survey.first_equal(4), 0u);
  EXPECT_EQ(survey.first_equal(5), 5u);
  EXPECT_EQ(survey.first_equal(6), 2u);
}

TEST(PackSurvey, FindsVersions) {
  MemoryTracks tracks;
  fill(tracks);
  const PackSurvey survey = survey_of(tracks);
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

TEST(PackSurvey, FindsNothingThatIsNotAskedFor) {
  MemoryTracks tracks;
  fill(tracks);
  const PackSurvey survey = survey_of(tracks, {.equals = false, .versions = false});
  EXPECT_TRUE(survey.is_zero(1));
  EXPECT_EQ(survey.first_equal(3), 3u);
  EXPECT_EQ(survey.previous_version(5), kNone);
  EXPECT_FALSE(survey.has_later_version(0));
}

TEST(PackSurvey, KnowsWhereBlocksStand) {
  MemoryTracks tracks;
  fill(tracks);
  const PackSurvey survey = survey_of(tracks);
  EXPECT_EQ(survey.place_of(0).at, 512u);
  EXPECT_EQ(survey.place_of(1).at, 5120u);
  EXPECT_EQ(survey.place_of(2).at, 9216u);
  EXPECT_EQ(survey.place_of(2).track, 0u);
  EXPECT_EQ(survey.place_of(3).at, 0u);
  EXPECT_EQ(survey.place_of(3).track, 1u);
  EXPECT_EQ(survey.place_of(6).at, 12288u);
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
  const PackSurvey survey = survey_of(tracks);
  for (std::uint32_t i = 0; i < 10000; ++i) {
    ASSERT_EQ(survey.first_equal(i), i % 1000);
    ASSERT_EQ(survey.previous_version(i), i < 777 ? kNone : i - 777);
  }
}

TEST(IsZeroBlock, EveryByteCounts) {
  Bytes block(kBlockBytes);
  EXPECT_TRUE(is_zero_block(block));
  for (std::size_t i = 0; i < block.size(); ++i) {
    block[i] = std::byte{1};
    ASSERT_FALSE(is_zero_block(block)) << i;
    block[i] = std::byte{0};
  }
  EXPECT_TRUE(is_zero_block({}));
  EXPECT_TRUE(is_zero_block(std::span(block).first(8)));
  block[6] = std::byte{1};
  EXPECT_FALSE(is_zero_block(std::span(block).first(7)));
}

}  // namespace
}  // namespace mariner::logging
