#include "logging/packed_tracks.h"

#include <gtest/gtest.h>

#include <memory>

#include "logging/live_tracks.h"
#include "logging/pack_builder.h"
#include "tests/logging/pack_testing.h"
#include "tests/logging/slot_rig.h"

namespace mariner::logging {
namespace {

using test::Bytes;
using test::kTrackBytes;
using test::MemoryPack;
using test::SlotRig;

// A track of a real log, packed, with whatever a test makes of its bytes before.
class PackedTracksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(rig_.open());
    rig_.leave_track();
    for (std::uint64_t i = 1; i <= 5; ++i) rig_.append(i, 30 * static_cast<std::uint32_t>(i));
    rig_.leave_track();
    rig_.append(6);
    const LiveTracks live = live_tracks(*rig_.array).front();
    const Result<CompleteTrack> complete = read_live_track(live, 0);
    ASSERT_TRUE(complete.has_value());
    packed_ = {live.tracks[0].track, live.tracks[0].allocation, complete->end_batch, 0};
    bytes_.resize(kTrackBytes);
    Payload to = Payload::allocate(kTrackBytes);
    ASSERT_TRUE(rig_.slotted().read(rig_.offset_of(packed_.track), to.bytes()).has_value());
    std::ranges::copy(to.bytes(), bytes_.begin());
    for (const auto& [record, location] : complete->records) {
      const std::uint64_t end = (location.payload_sector() + record.payload_blocks) * kBlockBytes;
      packed_.used = std::max(packed_.used, end - rig_.offset_of(packed_.track));
    }
  }
  [[nodiscard]] const Superblock& superblock() { return rig_.member().superblock; }

  // As it is now, in a pack of its own.
  Result<void> verify(const PackPause& pause = {}) {
    class Source final : public PackSource {
     public:
      explicit Source(const Bytes& bytes) : bytes_(bytes) {}
      Result<void> read(std::size_t /*track*/, std::uint64_t offset,
                        std::span<std::byte> to) override {
        std::memcpy(to.data(), bytes_.data() + offset, to.size());
        return {};
      }

     private:
      const Bytes& bytes_;
    };
    Source source(bytes_);
    const std::vector<PackTrack> tracks{
        {.bytes = kTrackBytes, .used = kTrackBytes, .payloads = {}}};
    MemoryPack pack;
    Result<BuiltPack> built = build_pack(tracks, source, pack, {});
    EXPECT_TRUE(built.has_value());
    RegionCache cache(1u << 20);
    const PackReader reader(1, std::make_shared<const PackTable>(std::move(built->table)), pack,
                            cache);
    return verify_packed_track(superblock(), packed_, 0, reader, pause);
  }

  SlotRig rig_;
  PackedTrack packed_;
  Bytes bytes_;
};

TEST_F(PackedTracksTest, ATrackReadsBack) {
  int pauses = 0;
  EXPECT_TRUE(verify([&pauses]() -> Result<void> {
                ++pauses;
                return {};
              }).has_value());
  EXPECT_GT(pauses, 3);
  const auto stopped = verify([]() -> Result<void> {
    return Error{ErrorCode::kAborted, "enough"};
  });
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, ErrorCode::kAborted);
}

TEST_F(PackedTracksTest, EveryBlockOfItCounts) {
  for (std::uint64_t block = 0; block < packed_.used / kBlockBytes; ++block) {
    std::byte& one = bytes_[block * kBlockBytes + 21];
    one ^= std::byte{4};
    const auto verified = verify();
    ASSERT_FALSE(verified) << block;
    EXPECT_EQ(verified.error().code, ErrorCode::kCorrupt);
    one ^= std::byte{4};
  }
  EXPECT_TRUE(verify().has_value());
}

TEST_F(PackedTracksTest, BehindItsLastBatchNothingMayStand) {
  bytes_[packed_.used + 5] = std::byte{1};
  const auto verified = verify();
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().message, "track " + std::to_string(packed_.track) +
                                          " does not read back: it is longer than it was");
}

TEST_F(PackedTracksTest, AnotherTrackIsNoneOfItsBatches) {
  packed_.end_batch += 1;
  EXPECT_FALSE(verify());
  packed_.end_batch -= 1;
  packed_.allocation += 1;
  EXPECT_FALSE(verify());
}

TEST_F(PackedTracksTest, AnUnusedTrackIsEmpty) {
  packed_.end_batch = 0;
  EXPECT_FALSE(verify()) << "something stands in it";
  std::ranges::fill(bytes_, std::byte{0});
  EXPECT_TRUE(verify().has_value());
}

}  // namespace
}  // namespace mariner::logging
