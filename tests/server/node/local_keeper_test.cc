#include "server/node/local_keeper.h"

#include <gtest/gtest.h>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

TEST(LocalKeeper, KnowsWhatIsToBeKeptOfAVolume) {
  testing::NodeParts parts;
  std::string dropped;
  LocalKeeper keeper(parts.volumes(), parts.views(), parts.store(),
                     [&](const std::string& name) { dropped = name; });
  ServedVolume& volume = parts.create("db1");
  ServedVolume& other = parts.create("db2");
  const VolumeId id{volume.meta.id()};
  EXPECT_EQ(keeper.volumes(), (std::vector{id, VolumeId{other.meta.id()}}));
  EXPECT_EQ(keeper.find(id), volume.volume);
  EXPECT_EQ(keeper.find(VolumeId{99}), nullptr);
  EXPECT_EQ(keeper.window(id)->volume, "db1");
  EXPECT_EQ(keeper.window(id)->created.ns, volume.meta.created_ns());
  EXPECT_FALSE(keeper.window(VolumeId{99}).has_value());

  meta::Mark mark;
  mark.set_volume_id(id.value);
  mark.set_name("kept");
  ASSERT_TRUE(parts.store().put_mark(mark));
  EXPECT_EQ(keeper.marks(id)->size(), 1u);
  EXPECT_TRUE(keeper.marks(VolumeId{other.meta.id()})->empty());
  EXPECT_TRUE(keeper.drop_mark(mark));
  EXPECT_TRUE(keeper.marks(id)->empty());

  meta::GroupMark whole;
  whole.set_group("g1");
  whole.set_name("kept");
  whole.add_parts()->set_volume_id(id.value);
  whole.add_parts()->set_volume_id(other.meta.id());
  ASSERT_TRUE(parts.store().put_group_mark(whole));
  ASSERT_EQ(keeper.marks(id)->size(), 1u);
  EXPECT_TRUE(keeper.drop_mark(keeper.marks(id)->front()));
  EXPECT_TRUE(keeper.marks(id)->empty());
  EXPECT_TRUE(keeper.marks(VolumeId{other.meta.id()})->empty()) << "never one alone";

  NewView wanted;
  wanted.name = "v";
  wanted.writable = true;
  const Result<ServedView*> view = parts.views().expose(volume, wanted);
  ASSERT_TRUE(view);
  EXPECT_EQ(keeper.views(id).size(), 1u);
  EXPECT_EQ(keeper.views(VolumeId{(*view)->meta.overlay_volume_id()}).size(), 1u);
  EXPECT_TRUE(keeper.views(VolumeId{other.meta.id()}).empty());
  keeper.drop_view("v");
  EXPECT_EQ(dropped, "v");
}

}  // namespace
}  // namespace mariner::node
