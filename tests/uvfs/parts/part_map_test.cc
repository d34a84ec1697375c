#include "uvfs/parts/part_map.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <vector>

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kVolume = 64 * kBlockBytes;

TEST(PartMapTest, PiecesArePlacesTurnedAround) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    std::mt19937_64 random(seed);
    // Extents of 7 bytes or more, in any order.
    std::vector<ByteRange> extents;
    std::uint64_t at = random() % 20;
    while (extents.size() < 8) {
      const std::uint64_t length = 7 + random() % 90;
      extents.push_back({at, length});
      at += length + random() % 3 * 11;
    }
    std::ranges::shuffle(extents, random);
    const PartMap map = PartMap::of(extents, kVolume).value();
    std::vector<std::uint64_t> on_volume;  // of each byte
    std::vector<std::optional<std::uint64_t>> in_part(at);
    for (const ByteRange& each : extents) {
      for (std::uint64_t i = 0; i < each.length; ++i) {
        in_part[each.offset + i] = on_volume.size();
        on_volume.push_back(each.offset + i);
      }
    }
    ASSERT_EQ(map.bytes(), on_volume.size());
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t begin = random() % map.bytes();
      const ByteRange range{begin, random() % (map.bytes() - begin + 1)};
      std::vector<std::uint64_t> found;
      map.for_each_piece(range, [&](const ByteRange& piece) {
        for (std::uint64_t j = 0; j < piece.length; ++j) found.push_back(piece.offset + j);
      });
      const auto first = on_volume.begin() + static_cast<std::ptrdiff_t>(range.offset);
      ASSERT_EQ(found, std::vector<std::uint64_t>(
                           first, first + static_cast<std::ptrdiff_t>(range.length)))
          << seed;
    }
    for (int i = 0; i < 100; ++i) {
      const std::uint64_t begin = random() % at;
      const ByteRange range{begin, random() % (at - begin + 1)};
      std::vector<std::uint64_t> found;
      map.for_each_place(range, [&](const ByteRange& place) {
        for (std::uint64_t j = 0; j < place.length; ++j) found.push_back(place.offset + j);
      });
      std::vector<std::uint64_t> expected;
      for (std::uint64_t j = range.offset; j < range.end(); ++j) {
        if (in_part[j]) expected.push_back(*in_part[j]);
      }
      ASSERT_EQ(found, expected) << seed;
    }
  }
}

TEST(PartMapTest, BlocksOfAPartAreBlocksOfItsVolumeOrNot) {
  const auto aligned = [](const std::vector<ByteRange>& extents) {
    return PartMap::of(extents, kVolume).value().aligned();
  };
  EXPECT_TRUE(aligned({}));
  EXPECT_TRUE(aligned({{8192, 4096}}));
  EXPECT_TRUE(aligned({{8192, 4096}, {0, 4096}}));
  EXPECT_TRUE(aligned({{8192, 4096}, {0, 100}}));  // the rest is left out
  EXPECT_TRUE(aligned({{0, 100}, {100, 4096}}));   // one extent in truth
  EXPECT_FALSE(aligned({{0, 100}, {8192, 4096}}));
  EXPECT_FALSE(aligned({{512, 4096}}));
}

TEST(PartMapTest, ExtentsAreWithinTheVolumeAndApart) {
  const auto refused = [](const std::vector<ByteRange>& extents) {
    const auto map = PartMap::of(extents, kVolume);
    return !map && map.error().code == ErrorCode::kInvalidArgument;
  };
  EXPECT_TRUE(refused({{0, 0}}));
  EXPECT_TRUE(refused({{kVolume, 1}}));
  EXPECT_TRUE(refused({{kVolume - 1, 2}}));
  EXPECT_TRUE(refused({{~std::uint64_t{0}, 2}}));
  EXPECT_TRUE(refused({{1, ~std::uint64_t{0}}}));
  EXPECT_TRUE(refused({{0, 10}, {20, 10}, {9, 1}}));
  EXPECT_TRUE(refused({{0, kVolume}, {0, kVolume}}));
  EXPECT_FALSE(refused({{0, 10}, {20, 10}, {10, 10}}));
  EXPECT_FALSE(refused({{0, kVolume}}));
}

}  // namespace
}  // namespace mariner::uvfs
