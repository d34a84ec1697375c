#include "tests/bench/cleaner_model.h"

#include <gtest/gtest.h>

namespace mariner::bench {
namespace {

constexpr CleanerLogOptions kSmall{
    .tracks = 8, .track_blocks = 2, .volume_blocks = 4, .window = 5, .lag = 1};

CleanerModel::StreamOfSurvivor into(StreamId stream) {
  return [stream](WriteTime) { return stream; };
}

TEST(CleanerModel, AppendsABeforeImageWhereTheImageAloneHasABlock) {
  CleanerModel model(kSmall);
  model.write(0, 0, 1);
  EXPECT_EQ(model.counts().before_images, 1u) << "of what stood there before";
  model.write(0, 0, 1);
  EXPECT_EQ(model.counts().before_images, 1u) << "the log has what is replaced";
  EXPECT_EQ(model.counts().amplification(), 1.5);
}

TEST(CleanerModel, NeedsAVersionForAWindowAfterItWasReplaced) {
  CleanerModel model(kSmall);
  model.write(0, 0, 1);  // 1
  model.write(1, 0, 1);  // 2: the first track is complete
  const std::uint32_t first = model.oldest(0);
  EXPECT_EQ(model.tracks()[first].current, 2u);
  model.write(0, 2, 1);  // 3
  EXPECT_EQ(model.tracks()[first].history, 1u);
  for (int i = 4; i <= 7; ++i) model.write(2, 2, 1);
  EXPECT_EQ(model.horizon(), 2u);
  EXPECT_EQ(model.tracks()[first].history, 1u) << "moment 2 shows it";
  model.write(2, 2, 1);  // 8
  EXPECT_EQ(model.tracks()[first].history, 0u);
  EXPECT_EQ(model.tracks()[first].current, 1u);
}

TEST(CleanerModel, MovesWhatIsNeededAndDropsWhatIsCurrent) {
  CleanerModel model(kSmall);
  model.write(0, 0, 1);
  model.write(1, 0, 1);
  model.write(0, 2, 1);
  const std::uint32_t first = model.oldest(0);
  const std::uint32_t free = model.free_tracks();
  model.clean(first, true, into(2));
  EXPECT_EQ(model.counts().moved, 1u);
  EXPECT_EQ(model.counts().dropped, 1u);
  EXPECT_EQ(model.free_tracks(), free + 1);
  EXPECT_EQ(model.tracks_of(0), 0u);
  model.write(1, 0, 1);
  EXPECT_EQ(model.counts().before_images, 3u) << "of the one that was dropped, too";
}

TEST(CleanerModel, KeepsWhatTheImageLacks) {
  CleanerModel model({.tracks = 8, .track_blocks = 2, .volume_blocks = 4, .window = 5, .lag = 3});
  model.write(0, 0, 1);
  model.write(1, 0, 1);
  const std::uint32_t first = model.oldest(0);
  EXPECT_FALSE(model.can_clean(model.tracks()[first]));
  for (int i = 0; i < 3; ++i) model.write(2, 2, 1);
  EXPECT_TRUE(model.can_clean(model.tracks()[first])) << "5: what was written at 2 is there";
}

TEST(CleanerModel, ShortensTheWindow) {
  CleanerModel model(kSmall);
  for (int i = 0; i < 3; ++i) model.write(0, 0, 1);
  const std::uint32_t first = model.oldest(0);
  EXPECT_EQ(model.tracks()[first].history, 2u);
  model.shorten();
  model.shorten();
  EXPECT_EQ(model.horizon(), 2u);
  EXPECT_EQ(model.tracks()[first].history, 1u);
  for (int i = 0; i < 4; ++i) model.write(0, 0, 1);
  EXPECT_EQ(model.horizon(), 2u) << "until the window has come up to it";
}

TEST(CleanerModel, AdoptsATrackAsTheYoungest) {
  CleanerModel model(kSmall);
  for (int i = 0; i < 2; ++i) model.write(0, 0, 1);
  const std::uint32_t adopted = model.oldest(0);
  for (int i = 0; i < 2; ++i) model.write(1, 2, 3);
  const std::uint32_t older = model.oldest(2);
  model.adopt(adopted, 2);
  EXPECT_EQ(model.tracks_of(2), 2u);
  EXPECT_EQ(model.tracks_of(0), 0u);
  EXPECT_EQ(model.oldest(2), older);
}

}  // namespace
}  // namespace mariner::bench
