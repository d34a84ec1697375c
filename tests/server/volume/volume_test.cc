#include "server/volume/volume.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/volume/sectors.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::volume {
namespace {

using test::Sectors;
using test::VolumeRig;

constexpr BlockCount kBlocks{16};

class VolumeTest : public ::testing::Test {
 protected:
  VolumeTest() { rig_.start(); }
  void write(Volume& volume, std::uint64_t block, std::uint64_t tag) {
    volume.live().write({block * kBlockBytes, kBlockBytes},
                        {test::bytes_of(Sectors(8, tag)), 0, kBlockBytes},
                        [](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_.manual().run_ready();
  }
  bool holds(const std::shared_ptr<Layer>& layer, std::uint64_t block, std::uint64_t tag) {
    std::optional<bool> good;
    layer->read({block * kBlockBytes, kBlockBytes}, [&](const Result<PayloadSlice>& read) {
      good = read && !test::mismatch(read->bytes(), Sectors(8, tag));
    });
    rig_.manual().run_ready();
    return good.value_or(false);
  }
  VolumeRig rig_{{.blocks = kBlocks.value, .blocks_max = 2 * kBlocks.value}};
};

TEST_F(VolumeTest, AViewIsReadOnlyAndNeverChanges) {
  write(rig_.volume(), 0, 1);
  const auto view = rig_.volume().view_layer(SequenceNumber{1});
  write(rig_.volume(), 0, 2);
  EXPECT_TRUE(holds(view, 0, 1));
  EXPECT_TRUE(view->read_only());
  const auto refused = [](const Result<void>& r) {
    EXPECT_EQ(r.error().code, ErrorCode::kReadOnly);
  };
  view->write({0, kBlockBytes}, {Payload::zeroed(kBlockBytes), 0, kBlockBytes}, refused);
  view->write_same({0, kBlockBytes}, {Payload::zeroed(512), 0, 512}, refused);
  view->trim({0, kBlockBytes}, TrimMode::kUnmap, refused);
  std::size_t pieces = 0;
  view->allocation({0, 2 * kBlockBytes}, [&](const Result<std::vector<Allocation>>& r) {
    pieces = r.has_value() ? r->size() : 0;
  });
  rig_.manual().run_ready();
  EXPECT_EQ(pieces, 2u);
}

TEST_F(VolumeTest, ADamagedBlockOfTheLogIsAnErrorNotWrongBytes) {
  write(rig_.volume(), 0, 1);
  const index::LocatedRun run = rig_.answers().locate({{0}, {1}}, SequenceNumber{1})[0];
  rig_.log_disk().flip_bit(run.location.payload_sector() * kBlockBytes + 1000, 3);
  std::optional<ErrorCode> code;
  const auto view = rig_.volume().view_layer(SequenceNumber{1});
  view->read({0, kBlockBytes}, [&](const Result<PayloadSlice>& r) { code = r.error().code; });
  rig_.manual().run_ready();
  EXPECT_EQ(code, ErrorCode::kCorrupt);
}

TEST_F(VolumeTest, AWritableViewStartsAtItsMomentAndKeepsToItself) {
  write(rig_.volume(), 0, 1);
  write(rig_.volume(), 1, 1);
  rig_.add_overlay(SequenceNumber{2});
  write(rig_.volume(), 0, 9);
  write(*rig_.overlay(), 1, 5);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(holds(rig_.overlay()->live_layer(), 0, 1));
    EXPECT_TRUE(holds(rig_.overlay()->live_layer(), 1, 5));
    EXPECT_TRUE(holds(rig_.volume().live_layer(), 0, 9));
    EXPECT_TRUE(holds(rig_.volume().live_layer(), 1, 1));
    EXPECT_TRUE(holds(rig_.overlay()->view_layer(SequenceNumber{0}), 1, 1)) << "its own past";
    rig_.crash();
    rig_.start();
  }
}

TEST_F(VolumeTest, AVolumeGrowsAndWhatIsOpenKeepsItsSize) {
  constexpr std::uint64_t kBefore = kBlocks.value * kBlockBytes;
  const std::uint64_t behind = kBlocks.value + 3;
  write(rig_.volume(), 0, 1);
  rig_.add_overlay(SequenceNumber{1});
  auto view = rig_.volume().view_layer(SequenceNumber{1});
  auto snapshot = rig_.volume().open_snapshot(SequenceNumber{1});
  ASSERT_TRUE(snapshot);
  const auto live = rig_.volume().live_layer();
  rig_.grow(2 * kBlocks.value);
  EXPECT_EQ(live->size_bytes(), 2 * kBefore);
  EXPECT_EQ(rig_.volume().size_bytes(), 2 * kBefore);
  EXPECT_EQ(view->size_bytes(), kBefore);
  EXPECT_EQ((*snapshot)->size_bytes(), kBefore);
  EXPECT_EQ(rig_.overlay()->size_bytes(), kBefore);
  EXPECT_EQ(rig_.volume().view_layer(SequenceNumber{1}, kBefore)->size_bytes(), kBefore);
  EXPECT_TRUE(holds(live, behind, 0));
  write(rig_.volume(), behind, 7);
  EXPECT_TRUE(holds(live, behind, 7));
  const auto past = rig_.volume().view_layer(SequenceNumber{1});
  EXPECT_EQ(past->size_bytes(), 2 * kBefore);
  EXPECT_TRUE(holds(past, behind, 0)) << "it had nothing there";
  EXPECT_TRUE(holds(past, 0, 1));
}

TEST_F(VolumeTest, WhatWasWrittenBehindTheOldEndSurvivesAPowerCut) {
  const std::uint64_t behind = 2 * kBlocks.value - 1;
  write(rig_.volume(), 0, 1);
  rig_.grow(2 * kBlocks.value);
  write(rig_.volume(), behind, 7);
  for (int i = 0; i < 2; ++i) {
    rig_.crash();
    rig_.start();
    EXPECT_TRUE(holds(rig_.volume().live_layer(), behind, 7));
    EXPECT_TRUE(holds(rig_.volume().live_layer(), behind - 1, 0));
    EXPECT_TRUE(holds(rig_.volume().live_layer(), 0, 1));
  }
}

TEST_F(VolumeTest, ARollbackToBeforeTheGrowthLeavesTheSize) {
  const std::uint64_t behind = kBlocks.value;
  write(rig_.volume(), 0, 1);
  rig_.grow(2 * kBlocks.value);
  write(rig_.volume(), behind, 7);
  write(rig_.volume(), 0, 2);
  bool done = false;
  rig_.volume().live().rollback({SequenceNumber{1}, {}},
                                [&](const Result<replication::Stamp>& r) { done = r.has_value(); });
  rig_.manual().run_ready();
  ASSERT_TRUE(done);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(rig_.volume().size_bytes(), 2 * kBlocks.value * kBlockBytes);
    EXPECT_TRUE(holds(rig_.volume().live_layer(), behind, 0));
    EXPECT_TRUE(holds(rig_.volume().live_layer(), 0, 1));
    EXPECT_TRUE(holds(rig_.volume().view_layer(SequenceNumber{3}), behind, 7))
        << "and can be undone";
    rig_.crash();
    rig_.start();
  }
}

TEST_F(VolumeTest, ALayerKeepsItsVolumeAlive) {
  write(rig_.volume(), 0, 1);
  std::weak_ptr<Volume> weak = rig_.volume().weak_from_this();
  {
    const auto view = rig_.volume().view_layer(SequenceNumber{1});
    EXPECT_EQ(weak.use_count(), 2);
  }
  EXPECT_EQ(weak.use_count(), 1);
}

TEST_F(VolumeTest, TheNumbersThatACrashMayHaveUsedAreVoidOnRecord) {
  write(rig_.volume(), 0, 1);
  rig_.crash();
  rig_.start();
  EXPECT_EQ(rig_.volume().replicator().coordinator().settled().value, 1 + Volume::kVoidMargin);
  EXPECT_FALSE(rig_.volume().idle()) << "the void is on its way to the log";
  rig_.manual().run_ready();
  EXPECT_TRUE(rig_.volume().idle());
  rig_.crash();  // and found there again
  rig_.start();
  EXPECT_EQ(rig_.volume().replicator().coordinator().settled().value, 1 + 2 * Volume::kVoidMargin);
}

}  // namespace
}  // namespace mariner::volume
