// What is read while it is pending, on its way to the image, and there.
#include <gtest/gtest.h>

#include "tests/server/volume/storage_fixture.h"

namespace mariner::volume {
namespace {

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

TEST_F(StorageTest, WhoReadsInSequenceIsReadAheadOf) {
  make({.blocks = 4096});
  const auto read = [this](std::uint64_t first) {
    storage().read({{first}, {32}}, [](const Result<PayloadSlice>& r) { EXPECT_TRUE(r); });
    run();
  };
  for (const std::uint64_t first : {3000, 100, 2000, 900, 1500, 400}) read(first);
  EXPECT_TRUE(rig_->image_disk().prefetched().empty()) << "nobody knows what is next";
  for (std::uint64_t first = 0; first < 4096; first += 32) read(first);
  std::uint64_t end = 0;
  for (const ByteRange& range : rig_->image_disk().prefetched()) {
    EXPECT_GE(range.offset, end);
    end = range.end();
  }
  EXPECT_EQ(end, 4096 * kBlockBytes);
}

TEST_F(StorageTest, WhoHasSeveralReadsUnderWayIsNotReadAheadOf) {
  make({.blocks = 4096});
  for (std::uint64_t first = 0; first < 4096; first += 32) {
    storage().read({{first}, {32}}, [](const Result<PayloadSlice>& r) { EXPECT_TRUE(r); });
  }
  EXPECT_FALSE(storage().idle()) << "all of them wait for the image";
  run();
  EXPECT_TRUE(rig_->image_disk().prefetched().empty());
}

TEST_F(StorageTest, AHintIsPassedOnToTheImage) {
  make({});
  rig_->volume().live().prefetch({512, 2 * kBlockBytes});
  EXPECT_EQ(rig_->image_disk().prefetched(),
            (std::vector<ByteRange>{ByteRange{0, 3 * kBlockBytes}}));
  EXPECT_TRUE(storage().idle());
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

TEST_F(StorageTest, AWriteOverWhatHasLeftIsReadAndApplied) {
  make({.storage = {.apply_delay = std::chrono::milliseconds(1), .portion_bytes_max = kPortion}});
  for (std::uint64_t i = 0; i < kBlocks; i += 4) write(i, 4, 1);
  run();
  rig_->worker().set_duration([] { return std::chrono::milliseconds(1); });
  while (storage().lag_bytes() > kBlocks * kBlockBytes / 2) {
    rig_->manual().advance(std::chrono::milliseconds(1));
  }
  write(2, 60, 2);
  run();
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(tag(1), 1u);
    ASSERT_EQ(tag(2), 2u);
    ASSERT_EQ(tag(61), 2u);
    ASSERT_EQ(tag(62), 1u);
    rig_->manual().advance(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(storage().lag_bytes(), 0u);
  EXPECT_EQ(in_image(1), 1u);
  EXPECT_EQ(in_image(61), 2u);
}

}  // namespace
}  // namespace mariner::volume
