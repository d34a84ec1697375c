#include "server/volume/base_map.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace mariner::volume {
namespace {

std::string text_of(const BaseMap& map, BlockRange range) {
  std::string text;
  Lbn at = range.first;
  map.visit(range, [&](BlockRange part, bool in_image) {
    EXPECT_EQ(part.first, at);
    EXPECT_FALSE(part.empty());
    at = part.end();
    text += (text.empty() ? "" : " ") + std::to_string(part.count.value) + (in_image ? "i" : "z");
  });
  EXPECT_EQ(at, range.end());
  return text;
}

TEST(BaseMap, AnImportedVolumeIsInTheImageEverywhere) {
  BaseMap map(true);
  EXPECT_FALSE(map.empty());
  EXPECT_EQ(text_of(map, {{5}, {100'000}}), "100000i");
  map.add({{1}, {1}});
  EXPECT_TRUE(map.changed().empty());
}

TEST(BaseMap, AHistoryThatBeginsAnewHasItsBaseInTheImageEverywhere) {
  BaseMap map(false);
  map.add({{1}, {1}});
  map.stored();
  map.add_all();
  EXPECT_FALSE(map.empty());
  EXPECT_EQ(text_of(map, {{0}, {100'000}}), "100000i");
  EXPECT_TRUE(map.is_stored({{0}, {100'000}}));
}

TEST(BaseMap, RangesAcrossPages) {
  BaseMap map(false);
  EXPECT_TRUE(map.empty());
  EXPECT_EQ(text_of(map, {{0}, {20'000}}), "20000z");
  map.add({{4090}, {10}});
  map.add({{4100}, {2}});
  map.add({{12'288}, {4096}});
  EXPECT_EQ(text_of(map, {{0}, {20'000}}), "4090z 12i 8186z 4096i 3616z");
  EXPECT_EQ(text_of(map, {{4095}, {2}}), "2i");
  EXPECT_EQ(map.changed().size(), 3u);
}

TEST(BaseMap, ComesBackFromItsPages) {
  std::mt19937_64 random(3);
  BaseMap map(false);
  std::vector<bool> model(30'000, false);
  std::map<std::uint64_t, BaseMap::Page> stored;
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t first = random() % 29'000;
    const std::uint64_t count = 1 + random() % (round % 10 == 0 ? 900 : 5);
    map.add({{first}, {count}});
    std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(first), count, true);
    for (const BaseMap::Page& page : map.changed()) stored[page.number] = page;
    map.stored();
    EXPECT_TRUE(map.changed().empty());
  }
  BaseMap again(false);
  for (const auto& [number, page] : stored) ASSERT_TRUE(again.load(page));
  for (const BaseMap* each : {&map, &again}) {
    each->visit({{0}, {30'000}}, [&](BlockRange part, bool in_image) {
      for (Lbn at = part.first; at < part.end(); at = at + BlockCount{1}) {
        ASSERT_EQ(model[at.value], in_image) << at.value;
      }
    });
  }
}

TEST(BaseMap, KnowsWhatACrashWouldTakeBack) {
  constexpr std::uint64_t kPage = BaseMap::kPageBlocks;
  BaseMap map(false);
  EXPECT_TRUE(map.is_stored({{0}, {5 * kPage}}));
  map.add({{2 * kPage + 7}, {1}});
  EXPECT_TRUE(map.is_stored({{kPage}, {kPage}}));
  EXPECT_FALSE(map.is_stored({{kPage}, {kPage + 1}})) << "by pages";
  EXPECT_FALSE(map.is_stored({{3 * kPage - 1}, {5}}));
  EXPECT_TRUE(map.is_stored({{3 * kPage}, {5}}));
  map.stored();
  EXPECT_TRUE(map.is_stored({{0}, {5 * kPage}}));
  map.add({{2 * kPage + 7}, {1}});
  EXPECT_TRUE(map.is_stored({{0}, {5 * kPage}})) << "nothing new";
}

TEST(BaseMap, WhereTheImageWasOverwrittenItIsTheBaseNoLonger) {
  for (const bool everywhere : {false, true}) {
    BaseMap map(everywhere);
    map.add({{10}, {100}});
    EXPECT_TRUE(map.may_hold_base({{0}, {50}}));
    map.overwritten({{10}, {20}});
    EXPECT_FALSE(map.may_hold_base({{10}, {20}}));
    EXPECT_FALSE(map.may_hold_base({{29}, {1}}));
    EXPECT_TRUE(map.may_hold_base({{29}, {2}}));
    EXPECT_EQ(map.may_hold_base({{5}, {5}}), everywhere);
    map.add({{15}, {1}});  // it became the base again
    EXPECT_TRUE(map.may_hold_base({{15}, {1}}));
    EXPECT_TRUE(map.may_hold_base({{10}, {20}}));
    EXPECT_FALSE(map.may_hold_base({{16}, {14}}));
    EXPECT_EQ(map.changed().size(), everywhere ? 0u : 1u);
    map.stored();
    map.overwritten({{0}, {4096}});
    EXPECT_TRUE(map.changed().empty()) << "nothing to store";
    EXPECT_FALSE(map.may_hold_base({{0}, {4096}}));
    map.add_all();
    EXPECT_TRUE(map.may_hold_base({{0}, {1}}));
  }
}

TEST(BaseMap, APageOfAnotherLengthIsRefused) {
  BaseMap map(false);
  EXPECT_FALSE(map.load({0, "short"}));
  EXPECT_TRUE(map.empty());
}

}  // namespace
}  // namespace mariner::volume
