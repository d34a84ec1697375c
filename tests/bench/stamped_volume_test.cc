#include "tests/bench/stamped_volume.h"

#include <gtest/gtest.h>

#include <array>

namespace mariner::bench {
namespace {

using Bytes = std::array<std::byte, kBlockBytes>;

const StampedVolume::Options kOptions{.seed = 7, .blocks = 100, .phase_blocks = 20, .phases = 30};

TEST(StampedVolume, ABlockIsOfTheLastPhaseThatWroteIt) {
  const StampedVolume volume(kOptions);
  std::array<StampedVolume::Phase, 100> last{};
  for (StampedVolume::Phase phase = 0; phase <= kOptions.phases; ++phase) {
    if (phase > 0) {
      const std::vector<Lbn> written = volume.written_in(phase);
      ASSERT_FALSE(written.empty());
      for (const Lbn block : written) last.at(block.value) = phase;
    }
    for (std::uint64_t block = 0; block < kOptions.blocks; ++block) {
      ASSERT_EQ(volume.last_write(Lbn{block}, phase), last.at(block)) << block << " in " << phase;
    }
  }
}

TEST(StampedVolume, ShowsOnlyWhatWasWrittenThereLast) {
  const StampedVolume volume(kOptions);
  const Lbn block = volume.written_in(5).front();
  Bytes bytes;
  volume.fill(bytes, block, 5);
  EXPECT_TRUE(volume.shows(bytes, block, 5));
  EXPECT_FALSE(volume.shows(bytes, block, 4)) << "a moment before";
  EXPECT_FALSE(volume.shows(bytes, volume.written_in(5).back(), 5)) << "another place";
  bytes.back() ^= std::byte{1};
  EXPECT_FALSE(volume.shows(bytes, block, 5)) << "a bit";
  volume.fill(bytes, block, 5);
  auto other = kOptions;
  other.seed = 8;
  EXPECT_FALSE(StampedVolume(other).shows(bytes, block, 5)) << "another story";
}

TEST(StampedVolume, TheSameStoryWhoeverTellsIt) {
  auto fewer = kOptions;
  fewer.phases = 0;  // as who only writes
  EXPECT_EQ(StampedVolume(fewer).written_in(9), StampedVolume(kOptions).written_in(9));
}

}  // namespace
}  // namespace mariner::bench
