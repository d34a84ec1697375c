#include "server/volume/read_ahead.h"

#include <gtest/gtest.h>

#include <random>

namespace mariner::volume {
namespace {

constexpr Lbn kEnd{1u << 20};

BlockRange blocks(std::uint64_t first, std::uint64_t count) { return {Lbn{first}, {count}}; }

TEST(ReadAhead, ASequenceIsFetchedBeforeItIsRead) {
  ReadAhead ahead;
  std::uint64_t fetched = 0;  // behind the last block
  std::uint64_t most = 0;
  for (std::uint64_t at = 0; at < 16384; at += 32) {
    const BlockRange next = ahead.read(blocks(at, 32), kEnd);
    if (at >= 2 * 32 * ReadAhead::kReadsMin) {
      EXPECT_GE(fetched, at + 32) << at;
    }
    if (next.empty()) continue;
    EXPECT_GE(next.first.value, std::max(fetched, at + 32)) << "read, or fetched already";
    fetched = next.end().value;
    most = std::max(most, fetched - (at + 32));
    EXPECT_LE(fetched - (at + 32), ReadAhead::kBlocksMax);
  }
  EXPECT_EQ(most, ReadAhead::kBlocksMax) << "a long sequence is worth a long one";
}

TEST(ReadAhead, TheFirstReadsOfASequenceFetchNothing) {
  ReadAhead ahead;
  EXPECT_TRUE(ahead.read(blocks(1000, 64), kEnd).empty());
  EXPECT_TRUE(ahead.read(blocks(1064, 64), kEnd).empty());
  EXPECT_EQ(ahead.read(blocks(1128, 64), kEnd), blocks(1192, 192));
}

TEST(ReadAhead, SmallReadsAreTheKernelsBusiness) {
  ReadAhead ahead;
  for (std::uint64_t at = 0; at < 4096; at += 8) {
    EXPECT_TRUE(ahead.read(blocks(at, 8), kEnd).empty()) << at;
  }
}

TEST(ReadAhead, ReadsHereAndThereFetchNothing) {
  ReadAhead ahead;
  std::mt19937_64 random(1);  // NOLINT(cert-msc51-cpp): always the same reads
  int fetched = 0;
  for (int i = 0; i < 100'000; ++i) {
    fetched += ahead.read(blocks(random() % (kEnd.value - 32), 32), kEnd).empty() ? 0 : 1;
  }
  EXPECT_LT(fetched, 10) << "but for three that are near each other by accident";
}

TEST(ReadAhead, TheSameBlockAgainIsNoSequence) {
  ReadAhead ahead;
  std::uint64_t fetched = 0;
  for (int i = 0; i < 1000; ++i) fetched += ahead.read(blocks(5000, 32), kEnd).count.value;
  EXPECT_LE(fetched, ReadAhead::kBlocksMin) << "not again and again";
}

TEST(ReadAhead, ReadersDoNotDisturbEachOther) {
  ReadAhead ahead;
  for (std::uint64_t i = 0; i < 256; ++i) {
    for (std::uint64_t reader = 0; reader < ReadAhead::kStreams; ++reader) {
      const std::uint64_t begin = reader * 100'000;
      const BlockRange next = ahead.read(blocks(begin + i * 32, 32), kEnd);
      if (next.empty()) continue;
      EXPECT_GE(next.first.value, begin);
      EXPECT_LT(next.end().value, begin + 100'000);
    }
  }
  for (std::uint64_t reader = 0; reader < ReadAhead::kStreams; ++reader) {
    // The next window's half is due within so many blocks.
    std::uint64_t fetched = 0;
    for (std::uint64_t i = 256; i < 256 + ReadAhead::kBlocksMax / 32; ++i) {
      fetched += ahead.read(blocks(reader * 100'000 + i * 32, 32), kEnd).count.value;
    }
    EXPECT_GT(fetched, 0U) << reader;
  }
}

TEST(ReadAhead, PassingWhereSomebodyHasReadChangesNothing) {
  ReadAhead ahead;
  for (const std::uint64_t first : {900, 400, 100}) {
    EXPECT_TRUE(ahead.read(blocks(first, 32), kEnd).empty());
  }
  std::uint64_t fetched = 0;  // behind the last block
  for (std::uint64_t at = 0; at < 2048; at += 32) {
    const BlockRange next = ahead.read(blocks(at, 32), kEnd);
    if (next.empty()) continue;
    EXPECT_GE(next.first.value, fetched) << "twice";
    fetched = next.end().value;
  }
  EXPECT_GE(fetched, 2048U);
}

TEST(ReadAhead, CommandsMayOvertakeEachOther) {
  ReadAhead ahead;
  std::uint64_t fetched = 0;
  for (std::uint64_t at = 0; at < 4096; at += 64) {
    fetched += ahead.read(blocks(at + 32, 32), kEnd).count.value;
    fetched += ahead.read(blocks(at, 32), kEnd).count.value;
  }
  EXPECT_GE(fetched, 4096 - 64 * ReadAhead::kReadsMin);
}

TEST(ReadAhead, NothingIsFetchedBehindTheEnd) {
  ReadAhead ahead;
  std::uint64_t fetched_to = 0;
  for (std::uint64_t at = 0; at < 512; at += 32) {
    const BlockRange next = ahead.read(blocks(at, 32), Lbn{512});
    if (!next.empty()) fetched_to = next.end().value;
    EXPECT_LE(next.end().value, 512U);
  }
  EXPECT_EQ(fetched_to, 512U);
}

}  // namespace
}  // namespace mariner::volume
