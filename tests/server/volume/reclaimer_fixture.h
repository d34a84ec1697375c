// A volume whose log has many small tracks, and who gives them up when a test says so.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "server/volume/kept_choice.h"
#include "tests/server/volume/sectors.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::volume {

inline constexpr VersionTime kKeepNothing{UINT64_MAX};

class ReclaimerTest : public ::testing::Test {
 protected:
  explicit ReclaimerTest(test::VolumeRig::Options options = test::VolumeRig::Options{})
      : rig_(std::move(options)) {}
  void SetUp() override { rig_.start(); }

  void write(std::uint64_t block, std::uint64_t tag) {
    Payload data = test::bytes_of(test::Sectors(test::kSectorsPerBlock, tag));
    const std::size_t length = data.size();
    rig_.volume().live().write({block * kBlockBytes, length}, {std::move(data), 0, length},
                               [](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_.manual().run_ready();
  }
  // The next write goes to another track.
  void next_track() { rig_.writer().leave_tracks(); }
  void drain() {
    rig_.volume().storage()->drain([](const Result<void>& r) { EXPECT_TRUE(r); });
    rig_.manual().advance(std::chrono::seconds(1));
  }
  // How many tracks went.
  std::uint64_t reclaim(VersionTime keep = kKeepNothing, KeepWish wish = {}) {
    const std::uint64_t before = rig_.tracks_freed();
    EXPECT_TRUE(rig_.reclaim([keep](VolumeId) { return keep; }, 1,
                             [wish = std::move(wish)](VolumeId) { return wish; }));
    rig_.manual().advance(std::chrono::seconds(1));
    return rig_.tracks_freed() - before;
  }
  // Block 1 holds 6, of which the image is the base; that it held 5 before is given up.
  void make_base() {
    write(1, 5);
    next_track();
    write(1, 6);
    drain();
    ASSERT_EQ(reclaim(), 1u);
    next_track();
    write(3, 7);
    drain();
    ASSERT_EQ(reclaim(), 1u);
  }
  std::uint64_t tag(Layer& layer, std::uint64_t block) {
    std::optional<std::uint64_t> found;
    layer.read({block * kBlockBytes, kBlockBytes}, [&](const Result<PayloadSlice>& read) {
      ASSERT_TRUE(read);
      std::uint64_t value = 0;
      std::memcpy(&value, read->bytes().data(), sizeof value);
      found = value;
    });
    rig_.manual().run_ready();
    return found.value_or(~0ull);
  }
  std::uint64_t at(std::uint64_t moment, std::uint64_t block) {
    return tag(*rig_.volume().view_layer(SequenceNumber{moment}), block);
  }

  test::VolumeRig rig_;
};

}  // namespace mariner::volume
