#include "logging/taken_tracks.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::FaultyDisk;
using test::kTrackBlocks;
using test::kTrackBytes;
using test::LogRig;
using test::record_of;

// A log of many tracks that exists only as far as it is read: the headers of the taken ones.
class HeadersOnly final : public Disk {
 public:
  HeadersOnly(const Superblock& superblock, std::uint64_t taken)
      : superblock_(superblock), taken_(taken) {}
  [[nodiscard]] std::uint64_t size_bytes() const override {
    return superblock_.end_sector() * kBlockBytes;
  }
  [[nodiscard]] std::uint32_t alignment() const override { return kBlockBytes; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) override {
    std::memset(to.data(), 0, to.size());
    const std::uint64_t block = offset / kBlockBytes - superblock_.track_first_sector(0);
    const std::uint64_t track = block / superblock_.track_sectors;
    if (block % superblock_.track_sectors != 0 || track >= taken_ || track == damaged) return {};
    pack_track_header({track, track + 1, track * 100 + 1}, superblock_.log,
                      std::span<std::byte, kBlockBytes>(to.data(), kBlockBytes));
    return {};
  }
  Result<void> write(std::uint64_t, std::span<const ConstBytes>, Durability) override {
    return Error{ErrorCode::kIo, "read-only"};
  }
  Result<void> flush() override { return {}; }
  Result<void> discard(ByteRange) override { return {}; }
  void async_read(std::uint64_t, std::span<std::byte>, Completion) override {}
  void async_write(std::uint64_t, std::vector<ConstBytes>, Durability, Completion) override {}

  std::uint64_t damaged = UINT64_MAX;

 private:
  const Superblock superblock_;
  const std::uint64_t taken_;
};

TEST(TakenTracks, TheYoungestOfAMillionTracksIsFoundInThreeReadsAStep) {
  Superblock superblock;
  superblock.log = test::log_id();
  superblock.track_sectors = kTrackBlocks;
  superblock.track_count = 1'000'000;
  superblock.list_blocks = list_blocks_for(superblock.track_count);
  superblock.first_sector = reserved_blocks_for(superblock.list_blocks);
  const TrackList tracks(superblock);
  for (const std::uint64_t taken : {0u, 1u, 2u, 77'777u, 524'288u, 999'999u, 1'000'000u}) {
    HeadersOnly disk(superblock, taken);
    for (const std::uint64_t damaged :
         {UINT64_MAX, std::uint64_t{taken / 2}, std::uint64_t{taken} - 2}) {
      if (damaged != UINT64_MAX && damaged + 1 >= taken) continue;  // nothing behind it to tell
      disk.damaged = damaged;
      const Result<TakenEnd> found = find_taken_end(disk, superblock, tracks);
      ASSERT_TRUE(found.has_value());
      EXPECT_EQ(found->end, taken + 1) << taken << " taken, " << damaged << " damaged";
      EXPECT_LE(found->track_reads, 60u);
    }
  }
}

}  // namespace
}  // namespace mariner::logging
