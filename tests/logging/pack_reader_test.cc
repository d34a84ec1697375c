#include "logging/pack_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/logging/pack_testing.h"

namespace mariner::logging {
namespace {

using test::Bytes;
using test::expect_reads_back;
using test::MadePack;
using test::MemoryTracks;
using test::noise;
using test::prose;

// One track: a header, 40 blocks, a hole, changed versions of four of the blocks, two as they were.
void fill(MemoryTracks& tracks) {
  tracks.begin_track(1u << 20);
  tracks.add_header(noise(1, 512));
  Bytes blocks = prose(2, 40 * kBlockBytes);
  tracks.add_payload(blocks, 100);
  tracks.add_hole(10240);
  tracks.add_header(noise(3, 512));
  for (std::size_t i = 0; i < 4; ++i) blocks[i * kBlockBytes + 50] ^= std::byte{1};
  blocks.resize(6 * kBlockBytes);
  tracks.add_payload(blocks, 100);
}

TEST(PackReader, ReadsAnyRange) {
  MemoryTracks tracks;
  fill(tracks);
  const MadePack made(tracks);
  expect_reads_back(tracks, *made.reader, 1, 2000);
}

TEST(PackReader, RefusesWhatIsNotWithinATrack) {
  MemoryTracks tracks;
  fill(tracks);
  const MadePack made(tracks);
  Bytes to(100);
  const auto refused = [&](std::size_t track, std::uint64_t offset) {
    const auto read = made.reader->read(track, offset, to);
    return !read && read.error().code == ErrorCode::kInvalidArgument;
  };
  EXPECT_FALSE(refused(0, (1u << 20) - 100));
  EXPECT_TRUE(refused(0, (1u << 20) - 99));
  EXPECT_TRUE(refused(0, UINT64_MAX - 10));
  EXPECT_TRUE(refused(1, 0));
  EXPECT_TRUE(made.reader->read(0, 1u << 20, {}));
}

TEST(PackReader, OpensTheRegionsThatItNeedsAndEachOnce) {
  MemoryTracks tracks;
  fill(tracks);
  MadePack made(tracks);
  Bytes to(kBlockBytes);
  ASSERT_TRUE(made.reader->read(0, 512 + 40 * kBlockBytes + 1024, to));  // the hole
  EXPECT_EQ(made.pack.reads.size(), 0u);
  ASSERT_TRUE(made.reader->read(0, 512, to));  // a literal of the first payload region
  EXPECT_EQ(made.pack.reads.size(), 1u);
  ASSERT_TRUE(made.reader->read(0, 512 + kBlockBytes, to));  // of the same
  EXPECT_EQ(made.pack.reads.size(), 1u);
  ASSERT_TRUE(made.reader->read(0, 11264 + 40 * kBlockBytes, to));  // a delta, of the third
  EXPECT_EQ(made.pack.reads.size(), 2u);
  Bytes all(1u << 20);
  ASSERT_TRUE(made.reader->read(0, 0, all));
  EXPECT_EQ(made.pack.reads.size(), 4u);  // and the second, and the one of headers
}

TEST(PackReader, WithoutACacheItReadsAllTheSame) {
  MemoryTracks tracks;
  fill(tracks);
  MadePack made(tracks);
  RegionCache none(0);
  const PackReader reader(1, made.table, made.pack, none);
  expect_reads_back(tracks, reader);
  EXPECT_EQ(none.bytes(), 0u);
}

TEST(PackReader, PacksThatShareACacheAreToldApart) {
  MemoryTracks tracks;
  fill(tracks);
  MadePack made(tracks);
  MemoryTracks others;
  others.begin_track(1u << 20);
  others.add_header(noise(7, 512));
  others.add_payload(prose(8, 50 * kBlockBytes));
  MadePack other(others);
  const PackReader second(2, other.table, other.pack, made.cache);
  expect_reads_back(tracks, *made.reader);
  expect_reads_back(others, second);
  expect_reads_back(tracks, *made.reader);
}

TEST(PackReader, EveryFlippedByteOfARegionIsFound) {
  MemoryTracks tracks;
  fill(tracks);
  MadePack made(tracks);
  RegionCache none(0);
  const PackReader reader(1, made.table, made.pack, none);
  Bytes all(1u << 20);
  for (std::size_t at = 0; at < made.pack.bytes.size(); at += 101) {
    made.pack.bytes[at] ^= std::byte{0x08};
    const auto read = reader.read(0, 0, all);
    made.pack.bytes[at] ^= std::byte{0x08};
    ASSERT_FALSE(read) << at;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
    EXPECT_NE(read.error().message.find("pack 1: region "), std::string::npos);
  }
  EXPECT_TRUE(reader.read(0, 0, all));
}

TEST(PackReader, ADamagedRegionIsNotKept) {
  MemoryTracks tracks;
  fill(tracks);
  MadePack made(tracks);
  Bytes all(1u << 20);
  made.pack.bytes.back() ^= std::byte{1};
  EXPECT_FALSE(made.reader->read(0, 0, all));
  made.pack.bytes.back() ^= std::byte{1};
  expect_reads_back(tracks, *made.reader);
}

TEST(PackReader, ATruncatedPackIsAnError) {
  MemoryTracks tracks;
  fill(tracks);
  MadePack made(tracks);
  made.pack.bytes.pop_back();
  Bytes all(1u << 20);
  const auto read = made.reader->read(0, 0, all);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kIo);  // the PackBytes' own
}

TEST(PackReader, ATableThatDoesNotBelongToTheBytesIsCorruptAndNothingWorse) {
  MemoryTracks tracks;
  fill(tracks);
  MadePack made(tracks);
  std::vector<PackTable::Track> pieces(made.table->tracks().begin(), made.table->tracks().end());
  std::vector<PackRegion> regions(made.table->regions().begin(), made.table->regions().end());
  for (PackPiece& piece : pieces[0].pieces) {
    if (piece.kind != PackPiece::Kind::kDelta) continue;
    piece.offset = 0;  // a delta that is none
    piece.delta_bytes = 100;
  }
  const PackReader reader(2, std::make_shared<const PackTable>(pieces, regions), made.pack,
                          made.cache);
  Bytes to(kBlockBytes);
  const auto read = reader.read(0, 11264 + 40 * kBlockBytes, to);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kCorrupt);
  // Right checksum, wrong plain length.
  for (PackRegion& region : regions) {
    if (region.stored_bytes < region.plain_bytes) ++region.plain_bytes;
  }
  const PackReader longer(3, std::make_shared<const PackTable>(pieces, regions), made.pack,
                          made.cache);
  const auto misread = longer.read(0, 512, to);
  ASSERT_FALSE(misread);
  EXPECT_EQ(misread.error().code, ErrorCode::kCorrupt);
}

// Bytes that any thread may read.
class SharedPack final : public PackBytes {
 public:
  explicit SharedPack(const Bytes& bytes) : bytes_(bytes) {}
  Result<void> read(std::uint64_t at, std::span<std::byte> to) override {
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at), to.size(), to.begin());
    return {};
  }

 private:
  const Bytes& bytes_;
};

TEST(PackReader, ManyThreadsReadAtOnce) {
  MemoryTracks tracks;
  fill(tracks);
  MadePack made(tracks);
  SharedPack shared(made.pack.bytes);
  RegionCache small(200000);
  const PackReader reader(1, made.table, shared, small);
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    threads.emplace_back(
        [&tracks, &reader, seed] { expect_reads_back(tracks, reader, seed, 300); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(small.bytes(), 200000u);
}

}  // namespace
}  // namespace mariner::logging
