#include "server/volume/snapshot.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/server/volume/sectors.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::volume {
namespace {

using test::Sectors;
using test::VolumeRig;

class SnapshotTest : public ::testing::Test {
 protected:
  void SetUp() override { rig_.start(); }

  void write(std::uint64_t block, std::uint64_t tag, Volume* volume = nullptr) {
    Payload data = test::bytes_of(Sectors(test::kSectorsPerBlock, tag));
    const std::size_t length = data.size();
    (volume != nullptr ? *volume : rig_.volume())
        .live()
        .write({block * kBlockBytes, length}, {std::move(data), 0, length},
               [](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_.manual().run_ready();
  }
  std::shared_ptr<Layer> snapshot(Layer& layer) {
    std::shared_ptr<Layer> taken;
    layer.snapshot([&](Result<std::shared_ptr<Layer>> r) {
      ASSERT_TRUE(r);
      taken = *std::move(r);
    });
    rig_.manual().run_ready();
    return taken;
  }
  // The tag of a block; the error otherwise.
  Result<std::uint64_t> read(Layer& layer, std::uint64_t block) {
    std::optional<Result<std::uint64_t>> out;
    layer.read({block * kBlockBytes, kBlockBytes}, [&](const Result<PayloadSlice>& read) {
      std::uint64_t value = 0;
      if (read) std::memcpy(&value, read->bytes().data(), sizeof value);
      out = read ? Result<std::uint64_t>(value) : Result<std::uint64_t>(read.error());
    });
    rig_.manual().run_ready();
    return out.value();
  }
  ErrorCode failure(Layer& layer, std::uint64_t block) {
    const Result<std::uint64_t> r = read(layer, block);
    EXPECT_FALSE(r);
    return r ? ErrorCode::kIo : r.error().code;
  }
  std::uint64_t reclaim() {
    const std::uint64_t before = rig_.tracks_freed();
    rig_.volume().storage()->drain([](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_.manual().advance(std::chrono::seconds(1));
    EXPECT_TRUE(rig_.reclaim([](VolumeId) { return VersionTime{UINT64_MAX}; }));
    rig_.manual().advance(std::chrono::seconds(1));
    return rig_.tracks_freed() - before;
  }
  // Three versions of block 1, each in a track of its own; a snapshot of the first.
  std::shared_ptr<Layer> first_of_three() {
    write(1, 5);
    std::shared_ptr<Layer> first = snapshot(rig_.volume().live());
    for (const std::uint64_t tag : {6, 7}) {
      rig_.writer().leave_tracks();
      write(1, tag);
    }
    return first;
  }

  VolumeRig rig_{VolumeRig::Options{}};
};

TEST_F(SnapshotTest, ShowsTheMomentAtWhichItWasTaken) {
  const auto first = first_of_three();
  EXPECT_TRUE(first->read_only());
  EXPECT_EQ(first->size_bytes(), rig_.volume().size_bytes());
  EXPECT_EQ(*read(*first, 1), 5u);
  EXPECT_EQ(*read(rig_.volume().live(), 1), 7u);
  EXPECT_EQ(*read(*snapshot(*first), 1), 5u) << "of a snapshot";
  EXPECT_EQ(*read(*snapshot(*rig_.volume().view_layer(SequenceNumber{2})), 1), 6u) << "of a view";
  std::size_t pieces = 0;
  first->allocation({0, 4 * kBlockBytes},
                    [&](const Result<std::vector<Allocation>>& r) { pieces = r->size(); });
  rig_.manual().run_ready();
  EXPECT_EQ(pieces, 3u);
  const auto refused = [](const Result<void>& r) {
    EXPECT_EQ(r.error().code, ErrorCode::kReadOnly);
  };
  first->write({0, kBlockBytes}, {Payload::zeroed(kBlockBytes), 0, kBlockBytes}, refused);
  first->write_same({0, kBlockBytes}, {Payload::zeroed(512), 0, 512}, refused);
  first->update({0, kBlockBytes}, {}, refused);
  first->trim({0, kBlockBytes}, TrimMode::kZero, refused);
}

TEST_F(SnapshotTest, TheLogKeepsWhatItNeedsAsLongAsItIsHeld) {
  auto first = first_of_three();
  for (int i = 0; i < 3; ++i) reclaim();
  EXPECT_LE(rig_.volume().index().oldest().sequence, SequenceNumber{1});
  EXPECT_EQ(*read(*first, 1), 5u);
  first.reset();
  EXPECT_EQ(rig_.volume().oldest_pinned(), std::nullopt);
  EXPECT_GT(reclaim(), 0u);
  EXPECT_GT(rig_.volume().index().oldest().sequence, SequenceNumber{1});
  EXPECT_EQ(rig_.volume().open_snapshot(SequenceNumber{1}).error().code, ErrorCode::kOutsideWindow);
}

TEST_F(SnapshotTest, WhatIsDroppedFailsAndNeverShowsAnotherTime) {
  const auto first = first_of_three();
  std::optional<ErrorCode> under_way;
  first->read({kBlockBytes, kBlockBytes}, [&](const Result<PayloadSlice>& r) {
    under_way = r ? ErrorCode::kIo : r.error().code;
  });
  EXPECT_TRUE(rig_.volume().drop_snapshots());
  EXPECT_FALSE(rig_.volume().drop_snapshots());
  rig_.manual().run_ready();
  EXPECT_EQ(under_way, ErrorCode::kOutsideWindow) << "also what was being read";
  EXPECT_EQ(failure(*first, 1), ErrorCode::kOutsideWindow);
  EXPECT_EQ(rig_.volume().oldest_pinned(), std::nullopt);
}

TEST_F(SnapshotTest, AVolumeThatGoesDoesNotWaitForIt) {
  const auto first = first_of_three();
  rig_.stop();
  EXPECT_EQ(failure(*first, 1), ErrorCode::kOutsideWindow);
}

TEST_F(SnapshotTest, OfAWritableView) {
  write(1, 5);
  rig_.add_overlay(SequenceNumber{1});
  write(2, 6, rig_.overlay());
  const auto taken = snapshot(rig_.overlay()->live());
  write(1, 9, rig_.overlay());
  write(1, 8);
  EXPECT_EQ(*read(*taken, 1), 5u);
  EXPECT_EQ(*read(*taken, 2), 6u);
}

TEST(SnapshotPins, TheOldestCounts) {
  SnapshotPins pins;
  EXPECT_EQ(pins.oldest({}), std::nullopt);
  const auto late = pins.add({9});
  const auto early = pins.add({3});
  EXPECT_EQ(pins.oldest({}), SequenceNumber{3});
  pins.remove(early);
  EXPECT_EQ(pins.oldest({}), SequenceNumber{9});
  EXPECT_TRUE(pins.holds(late));
  EXPECT_FALSE(pins.holds(early));
}

}  // namespace
}  // namespace mariner::volume
