// Views of groups: server/node/group_views.cc.
#include <gtest/gtest.h>

#include "server/node/names.h"
#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

class GroupViews : public ::testing::Test {
 protected:
  GroupViews() {
    for (const char* name : {"data", "log"}) {
      ServedVolume& volume = parts_.create(name);
      parts_.write(*volume.volume->live_layer(), 0, 'a');
    }
  }
  // Of both volumes, at their first writes.
  std::vector<ViewSet::OfVolume> both(const std::string& name, bool writable = false) {
    std::vector<ViewSet::OfVolume> out;
    for (const char* volume : {"data", "log"}) {
      NewView view;
      view.at.sequence = SequenceNumber{1};
      view.writable = writable;
      view.group = "g1";
      view.group_view = name;
      out.push_back({parts_.volumes().find(volume), view});
    }
    return out;
  }
  ViewSet& views() { return parts_.views(); }
  using Names = std::vector<std::string>;

  testing::NodeParts parts_;
};

TEST_F(GroupViews, AreThereTogetherAlsoAfterARestart) {
  const auto exposed = views().expose_together(both("snap", true));
  ASSERT_TRUE(exposed);
  ASSERT_EQ(exposed->size(), 2u);
  EXPECT_NE((*exposed)[0]->identity.serial, (*exposed)[1]->identity.serial);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(views().together("snap"), (Names{"snap-data", "snap-log"}));
    EXPECT_EQ(views().together("snap-log"), (Names{"snap-data", "snap-log"}));
    EXPECT_TRUE(views().together("log").empty());
    parts_.stop();
    parts_.start();
  }
  ASSERT_TRUE(views().unexpose("snap"));
  EXPECT_TRUE(views().all().empty());
  EXPECT_EQ(views().unexpose("snap").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(parts_.store().volumes()->size(), 2u) << "their overlays went with them";
}

TEST_F(GroupViews, GoWithAnyOfTheirParts) {
  ASSERT_TRUE(views().expose_together(both("snap")));
  ASSERT_TRUE(views().unexpose("snap-log")) << "as a full log asks for";
  EXPECT_TRUE(views().all().empty());
}

TEST_F(GroupViews, HaveNamesOfTheirOwn) {
  EXPECT_EQ(views().plan_together(both(""))->front().group_view(), "g1-1");
  ASSERT_TRUE(views().expose_together(both("")));
  EXPECT_EQ(views().plan_together(both(""))->front().group_view(), "g1-2");
  EXPECT_EQ(views().expose_together(both("g1-1")).error().code, ErrorCode::kAlreadyExists);
  NewView alone;
  alone.name = "g1-1";
  EXPECT_EQ(views().expose(*parts_.volumes().find("data"), alone).error().code,
            ErrorCode::kAlreadyExists);
  alone.name = "g1-2-log";
  ASSERT_TRUE(views().expose(*parts_.volumes().find("data"), alone));
  EXPECT_EQ(views().expose_together(both("g1-2", true)).error().code, ErrorCode::kAlreadyExists);
  EXPECT_EQ(views().all().size(), 3u) << "all or none";
  EXPECT_EQ(views().expose_together(both(std::string(kVolumeNameBytesMax - 4, 'x'))).error().code,
            ErrorCode::kInvalidArgument);
}

TEST_F(GroupViews, CountOnceForEachOfTheirVolumes) {
  NewView alone;
  for (std::size_t i = 0; i + 1 < ViewSet::kViewsMax; ++i) {
    ASSERT_TRUE(views().expose(*parts_.volumes().find("data"), alone));
  }
  EXPECT_EQ(views().expose_together(both("snap")).error().code, ErrorCode::kLimit);
  EXPECT_EQ(views().all().size(), ViewSet::kViewsMax - 1);
}

TEST_F(GroupViews, ExpireTogether) {
  auto parts = both("snap");
  for (ViewSet::OfVolume& part : parts) part.view.expires = VersionTime{100};
  ASSERT_TRUE(views().expose_together(parts));
  EXPECT_TRUE(views().expired(VersionTime{99}).empty());
  EXPECT_EQ(views().expired(VersionTime{100}), (Names{"snap"}));
}

TEST_F(GroupViews, APartThatCannotBeOpenedTakesTheOthersWithIt) {
  ASSERT_TRUE(views().expose_together(both("snap")));
  std::vector<meta::View> stored = *parts_.store().views();
  stored[1].set_volume_id(99);
  ASSERT_TRUE(parts_.store().put_view(stored[1]));
  parts_.stop();
  parts_.start();
  EXPECT_TRUE(views().all().empty());
  EXPECT_TRUE(parts_.store().views()->empty());
}

}  // namespace
}  // namespace mariner::node
