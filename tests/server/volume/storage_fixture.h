// A storage under its volume, for the tests of its parts.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "tests/server/volume/sectors.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::volume {

class StorageTest : public ::testing::Test {
 protected:
  using VolumeRig = test::VolumeRig;
  using Sectors = test::Sectors;
  static constexpr std::uint64_t kBlocks = 64;
  static constexpr std::uint64_t kPortion = 8 * kBlockBytes;

  void make(VolumeRig::Options options) {
    if (options.blocks < kBlocks) options.blocks = kBlocks;
    rig_ = std::make_unique<VolumeRig>(std::move(options));
    rig_->start();
  }
  Storage& storage() { return *rig_->volume().storage(); }
  // Writes `blocks` blocks of `tag`; counts those that were answered well.
  void write(std::uint64_t first, std::uint64_t blocks, std::uint64_t tag) {
    Payload data = test::bytes_of(Sectors(blocks * test::kSectorsPerBlock, tag));
    const std::size_t length = data.size();
    rig_->volume().live().write({first * kBlockBytes, length}, {std::move(data), 0, length},
                                [this](const Result<void>& r) { written_ += r ? 1 : 0; });
  }
  void run() { rig_->manual().run_ready(); }
  void drain() {
    bool drained = false;
    storage().drain([&](const Result<void>& r) { drained = r.has_value(); });
    rig_->manual().advance(std::chrono::seconds(3));
    EXPECT_TRUE(drained);
  }
  std::uint64_t tag(std::uint64_t block) {
    std::optional<std::uint64_t> found;
    storage().read({{block}, {1}}, [&](const Result<PayloadSlice>& read) {
      ASSERT_TRUE(read);
      std::uint64_t value = 0;
      std::memcpy(&value, read->bytes().data(), sizeof value);
      found = value;
    });
    run();
    return found.value_or(~0ull);
  }
  std::uint64_t in_image(std::uint64_t block) {
    const auto bytes = rig_->image_disk().bytes({block * kBlockBytes, 8});
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  std::unique_ptr<VolumeRig> rig_;
  int written_ = 0;
};

}  // namespace mariner::volume
