#include "server/volume/storage.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "tests/server/volume/sectors.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::volume {
namespace {

using test::Sectors;
using test::VolumeRig;

constexpr std::uint64_t kBlocks = 64;

class StorageTest : public ::testing::Test {
 protected:
  void make(VolumeRig::Options options) {
    options.blocks = kBlocks;
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

TEST_F(StorageTest, ReadsWhatIsPendingThenWhatIsApplied) {
  make({.storage = {.apply_delay = std::chrono::milliseconds(10)}});
  write(3, 2, 7);
  run();
  EXPECT_EQ(tag(3), 7u);
  EXPECT_EQ(tag(5), 0u);
  EXPECT_EQ(in_image(3), 0u) << "lazily";
  EXPECT_EQ(storage().lag_bytes(), 2u * kBlockBytes);
  rig_->manual().advance(std::chrono::milliseconds(10));
  EXPECT_EQ(in_image(3), 7u);
  EXPECT_EQ(storage().lag_bytes(), 0u);
  EXPECT_EQ(storage().durable(), SequenceNumber{1});
  EXPECT_EQ(tag(4), 7u);
}

TEST_F(StorageTest, AReadWithinOneWriteIsNotACopy) {
  make({});
  Payload data = Payload::zeroed(4 * kBlockBytes);
  rig_->volume().live().write({0, 4 * kBlockBytes}, {data, 0, 4 * kBlockBytes},
                              [](const Result<void>&) {});
  run();
  const std::byte* at = nullptr;
  storage().read({{1}, {2}}, [&](const Result<PayloadSlice>& read) { at = read->bytes().data(); });
  EXPECT_EQ(at, data.data() + kBlockBytes);
}

TEST_F(StorageTest, BeyondItsMemoryItRemembersPlacesOnly) {
  make({.storage = {.pending_memory_max = 2 * kBlockBytes}});
  const std::uint64_t before = Payload::total_bytes();
  for (std::uint64_t i = 0; i < 20; ++i) write(i, 1, i + 1);
  run();
  EXPECT_EQ(written_, 20);
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(tag(i), i + 1);
  EXPECT_LT(Payload::total_bytes() - before, 20u * kBlockBytes);
  drain();
  for (std::uint64_t i = 0; i < 20; ++i) EXPECT_EQ(in_image(i), i + 1);
}

TEST_F(StorageTest, TooMuchLagHoldsWritesUntilItIsApplied) {
  make({.storage = {.lag_bytes_max = 8 * kBlockBytes}});
  rig_->image_disk().fail_writes(1000, test::FaultyDisk::Remains::kNothing);
  for (std::uint64_t i = 0; i < 8; ++i) {
    write(i, 1, i + 1);
    run();
  }
  EXPECT_EQ(written_, 8);
  write(20, 1, 99);
  run();
  EXPECT_EQ(written_, 8) << "held";
  EXPECT_GT(rig_->apply_failures(), 0u);
  rig_->image_disk().fail_writes(0, test::FaultyDisk::Remains::kNothing);
  rig_->manual().advance(std::chrono::seconds(2));
  EXPECT_EQ(written_, 9);
}

TEST_F(StorageTest, AFailedApplyIsTriedAgainAndNothingIsDurableBefore) {
  make({.storage = {.apply_delay = std::chrono::milliseconds(1)}});
  rig_->image_disk().fail_writes(2, test::FaultyDisk::Remains::kSomeSectors);
  write(1, 4, 5);
  rig_->manual().advance(std::chrono::milliseconds(500));
  EXPECT_EQ(storage().durable(), SequenceNumber{0});
  EXPECT_EQ(tag(2), 5u);
  rig_->manual().advance(std::chrono::seconds(3));
  EXPECT_EQ(rig_->apply_failures(), 2u);
  EXPECT_EQ(storage().durable(), SequenceNumber{1});
  EXPECT_EQ(in_image(2), 5u);
}

TEST_F(StorageTest, DrainsAtOnceWhenThereIsNothing) {
  make({});
  bool drained = false;
  storage().drain([&](const Result<void>&) { drained = true; });
  EXPECT_TRUE(drained);
}

TEST_F(StorageTest, ARollbackThatMovesNothingRestoresNothing) {
  make({});
  rig_->volume().live().rollback({}, [](const Result<replication::Stamp>&) {});
  run();
  EXPECT_FALSE(storage().restoring());
}

TEST_F(StorageTest, ARollbackTakesEffectBeforeItIsRestored) {
  make({.storage = {.apply_delay = std::chrono::seconds(1)}});
  write(1, 2, 5);
  run();
  drain();
  write(2, 2, 6);
  run();
  rig_->volume().live().rollback({SequenceNumber{1}, {}}, [](const Result<replication::Stamp>&) {});
  run();
  EXPECT_TRUE(storage().restoring());
  EXPECT_EQ(tag(2), 5u);
  EXPECT_EQ(tag(3), 0u);
  drain();
  EXPECT_FALSE(storage().restoring());
  EXPECT_EQ(in_image(2), 5u);
  EXPECT_EQ(in_image(3), 0u);
}

TEST_F(StorageTest, AfterARestartWhatTheImageLacksIsApplied) {
  make({.storage = {.apply_delay = std::chrono::seconds(9)}});
  write(1, 3, 5);
  run();
  rig_->crash();
  rig_->start();
  EXPECT_EQ(tag(2), 5u);
  EXPECT_EQ(in_image(2), 0u);
  drain();
  EXPECT_EQ(in_image(2), 5u);
}

TEST_F(StorageTest, StoppingFailsDrainsAndKeepsThePendingReadable) {
  make({.storage = {.apply_delay = std::chrono::seconds(9)}});
  write(1, 1, 5);
  run();
  std::optional<ErrorCode> drained;
  storage().drain([&](const Result<void>& r) { drained = r.error().code; });
  storage().stop();
  EXPECT_EQ(drained, ErrorCode::kAborted);
  rig_->manual().advance(std::chrono::seconds(20));
  EXPECT_TRUE(storage().idle());
  EXPECT_EQ(tag(1), 5u);
}

}  // namespace
}  // namespace mariner::volume
