#include "uvfs/map_spans.h"

#include <gtest/gtest.h>

#include <vector>

#include "ifsck/ext_inode.h"
#include "ifsck/moment.h"
#include "tests/uvfs/made_writes.h"

namespace mariner::uvfs {
namespace {

using ifsck::InodeAt;
using Moments = std::vector<std::uint64_t>;

class MapSpansTest : public ::testing::Test {
 protected:
  std::vector<MapSpan> spans(ifsck::InodeNumber number, const Stretch& stretch) {
    past_.emplace(made_.past());
    ifsck::Overlay none;
    ifsck::Moment moment(*past_, stretch.last, none);
    EXPECT_TRUE(moment.open().has_value());
    timelines_.emplace(BlockTimelines::open(*past_, stretch).value());
    VersionCache cache(*timelines_);
    const auto slices =
        InodeSliceReader(*timelines_, moment.context().layout).read(std::span(&number, 1));
    return read_map_spans(*timelines_, cache, moment.context(), number, slices->at(number)).value();
  }
  static Moments moments(const std::vector<MapSpan>& spans) {
    Moments all;
    for (const MapSpan& each : spans) all.push_back(each.from.value);
    return all;
  }

  MadeWrites made_{"-t ext2 -b 4096"};
  std::optional<ifsck::TracePast> past_;
  std::optional<BlockTimelines> timelines_;
};

TEST_F(MapSpansTest, AMapIsAnotherWhenTheInodeOrABlockThatSaysSoIs) {
  const auto file = made_.volume.find("/a/large");
  const auto before = made_.map_of(file);
  ASSERT_FALSE(before.nodes.empty());
  const std::uint64_t node = made_.offset_of(before.nodes.front().block);
  const auto free = static_cast<std::uint32_t>(made_.volume.layout->blocks() - 5);
  made_.put<std::uint32_t>(file, InodeAt::kMap, free);      // 1
  made_.put<std::uint32_t>(node + 8, free + 1);             // 2
  made_.put<std::uint16_t>(file, InodeAt::kMode, 0100600);  // 3: the same map
  made_.put<std::uint32_t>(node + 8, free + 1);             // 4: as it was
  made_.put<std::uint32_t>(node + 8, free + 2);             // 5
  made_.put<std::uint16_t>(file, InodeAt::kLinks, 0);       // 6: deleted
  const auto found = spans(file, {{}, {6}});
  EXPECT_EQ(moments(found), (Moments{0, 1, 2, 5, 6}));
  EXPECT_EQ(found[0].map.runs, before.runs);
  EXPECT_EQ(found[1].map.runs.front().physical, free);
  EXPECT_EQ(found[3].time.ns, 5 * MadeWrites::kSecond);
  EXPECT_TRUE(found[4].map.runs.empty());
}

TEST_F(MapSpansTest, WhatHasNoBlocksHasAnEmptyMap) {
  ext2_ino_t link = 0;
  ASSERT_EQ(ext2fs_lookup(made_.volume.volume->fs(), EXT2_ROOT_INO, "short", 5, nullptr, &link), 0);
  made_.put<std::uint32_t>(link, InodeAt::kChanged, 1);
  const auto found = spans(link, {{}, {1}});
  EXPECT_EQ(moments(found), Moments{0});
  EXPECT_TRUE(found[0].map.runs.empty());
}

}  // namespace
}  // namespace mariner::uvfs
