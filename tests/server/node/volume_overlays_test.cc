// The hidden volumes behind writable views: server/node/volume_overlays.cc.
#include <gtest/gtest.h>

#include "tests/server/node/node_parts.h"

namespace mariner::node {
namespace {

TEST(VolumeOverlays, AnOrphanIsGoneAfterARestart) {
  testing::NodeParts parts;
  ServedVolume& volume = parts.create("db1");
  parts.write(*volume.volume->live_layer(), 0, '1');
  std::uint32_t id = 0;
  {
    const auto made = parts.volumes().create_overlay(volume, parts.newest(volume), id);
    ASSERT_TRUE(made);
    EXPECT_EQ(parts.read(*(*made)->live_layer(), 0), '1');
  }
  ASSERT_NE(id, 0u);
  EXPECT_EQ(parts.store().volumes()->size(), 2u);
  parts.stop();
  parts.start();  // no view claims it
  EXPECT_EQ(parts.store().volumes()->size(), 1u);
  EXPECT_EQ(parts.volumes().open_overlay(id).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mariner::node
