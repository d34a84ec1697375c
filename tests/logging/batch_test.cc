#include "logging/batch.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "proto/bytes.h"
#include "proto/crc32c.h"
#include "tests/logging/log_testing.h"

namespace mariner::logging {
namespace {

using test::area_of;
using test::hex;
using test::log_id;
using test::record_of;

constexpr std::uint64_t kBlock = 0x0102030405060708;

BatchHeader header() {
  return {.batch_number = 0x1112131415161718,
          .allocation = 0x2122232425262728,
          .sector = kBlock,
          .previous_sector = 0x3132333435363738,
          .ordinal_frontier = 0x4142434445464748,
          .track_first_batch = 3};
}

std::vector<std::byte> bytes_of(const Payload& area) {
  return {area.bytes().begin(), area.bytes().end()};
}

// After a deliberate change: a CRC that fits, so that only the rule under test can refuse.
void reseal(std::span<std::byte> area, const LogId& log) {
  store_le(area.data() + 4, std::uint32_t{0});
  store_le(area.data() + 4, crc32c(area, crc32c(log)));
}

bool parses(std::span<const std::byte> area) {
  return parse_batch(area, log_id(), kBlock).has_value();
}

TEST(Batch, GoldenBytes) {
  const Payload area = area_of(header(), {record_of(1, 2), record_of(3, 4, 2)}, log_id());
  ASSERT_EQ(area.size(), kBlockBytes);
  EXPECT_EQ(hex(area.bytes().first(80)),
            "4d425448 d4d8ff03 02000200 01000000\n"
            "04000000 1c1d1e1f 18171615 14131211\n"
            "28272625 24232221 08070605 04030201\n"
            "38373635 34333231 48474645 44434241\n"
            "03000000 00000000 00000000 00000000");
  EXPECT_EQ(hex(area.bytes().subspan(80, 16)), "01000000 00000000 01000000 01000000");
  EXPECT_EQ(hex(area.bytes().subspan(80 + 116, 16)), "01000000 00000000 03000000 02000000");
}

TEST(Batch, ParsesWhatWasSealed) {
  const Payload area = area_of(header(), {record_of(1, 2), record_of(3, 4, 2)}, log_id());
  const auto batch = parse_batch(area.bytes(), log_id(), kBlock);
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->header.record_count, 2);
  EXPECT_EQ(batch->header.header_sectors, 1);
  EXPECT_EQ(batch->header.total_sectors, 4u);
  EXPECT_EQ(batch->header.batch_number, header().batch_number);
  EXPECT_EQ(batch->header.allocation, header().allocation);
  EXPECT_EQ(batch->header.previous_sector, header().previous_sector);
  ASSERT_EQ(batch->records.size(), 2u);
  EXPECT_EQ(batch->records[0].record.payload_offset, 1u);
  EXPECT_EQ(batch->records[1].record.payload_offset, 2u);
  EXPECT_EQ(batch->records[1].record.sequence, SequenceNumber{4});
}

TEST(Batch, ManyRecordsTakeSeveralBlocks) {
  std::vector<Record> records;
  for (std::uint64_t i = 1; i <= kBatchRecordsMax; ++i) records.push_back(record_of(1, i));
  const Payload area = area_of(header(), records, log_id());
  EXPECT_EQ(area.size() / kBlockBytes, (kBatchHeaderBytes + kBatchRecordsMax * 116 + 4095) / 4096);
  const auto batch = parse_batch(area.bytes(), log_id(), kBlock);
  ASSERT_TRUE(batch.has_value());
  EXPECT_EQ(batch->records.size(), kBatchRecordsMax);
}

TEST(Batch, EveryFlippedBitIsFound) {
  const Payload area = area_of(header(), {record_of(1, 2, 3)}, log_id());
  std::vector<std::byte> bytes = bytes_of(area);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    const std::byte mask = std::byte{1} << (bit % 8);
    bytes[bit / 8] ^= mask;
    ASSERT_FALSE(parses(bytes)) << "bit " << bit;
    bytes[bit / 8] ^= mask;
  }
  EXPECT_TRUE(parses(bytes));
}

TEST(Batch, EveryMissingSectorIsFound) {
  std::vector<Record> records;
  for (std::uint64_t i = 1; i <= 100; ++i) records.push_back(record_of(1, i));
  const Payload area = area_of(header(), records, log_id());
  const std::size_t used = kBatchHeaderBytes + 100 * 116;
  for (std::size_t at = 0; at < used; at += 512) {
    std::vector<std::byte> bytes = bytes_of(area);
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 512, std::byte{0});
    EXPECT_FALSE(parses(bytes)) << "sector at " << at;
  }
}

TEST(Batch, AnotherPlaceIsMisdirected) {
  const Payload area = area_of(header(), {record_of(1, 2)}, log_id());
  EXPECT_FALSE(parse_batch(area.bytes(), log_id(), kBlock + 1).has_value());
}

TEST(Batch, AnotherLogIsRefusedEvenWithTheSameTail) {
  const Payload area = area_of(header(), {record_of(1, 2)}, log_id());
  EXPECT_FALSE(parse_batch(area.bytes(), log_id(0x20), kBlock).has_value());
  LogId near = log_id();
  near[0] = std::byte{0xff};
  EXPECT_TRUE(peek_batch(area.bytes(), near).has_value()) << "peeking sees four bytes of it only";
  EXPECT_FALSE(parse_batch(area.bytes(), near, kBlock).has_value());
}

TEST(Batch, AnAreaOfAnotherLengthIsRefused) {
  const Payload area = area_of(header(), {record_of(1, 2)}, log_id());
  std::vector<std::byte> longer = bytes_of(area);
  longer.resize(2 * kBlockBytes);
  EXPECT_FALSE(parses(longer));
  for (const std::size_t length : {0u, 1u, 79u, 80u, 4095u}) {
    EXPECT_FALSE(parses(area.bytes().first(length))) << length;
  }
}

TEST(Batch, BoundsAreCheckedBehindTheCrc) {
  struct Case {
    const char* what;
    std::size_t at;
    std::uint32_t value;
    std::size_t bytes;
  };
  const Case cases[] = {
      {"magic", 0, 0x12345678, 4},
      {"a later version", 8, 3, 2},
      {"no records", 10, 0, 2},
      {"too many records", 10, kBatchRecordsMax + 1, 2},
      {"more records than stand there", 10, 2, 2},
      {"no header area", 12, 0, 2},
      {"too long a header area", 12, 65, 2},
      {"header area longer than given", 12, 2, 2},
      {"shorter than its header area", 16, 0, 4},
      {"payload missing", 16, 1, 4},
      {"payload too long", 16, 3, 4},
      {"payload elsewhere", 80 + 56, 2, 4},
      {"record of unknown type", 80, 77, 1},
  };
  for (const Case& c : cases) {
    std::vector<std::byte> bytes = bytes_of(area_of(header(), {record_of(1, 2)}, log_id()));
    for (std::size_t i = 0; i < c.bytes; ++i) {
      bytes[c.at + i] = static_cast<std::byte>(c.value >> (8 * i));
    }
    reseal(bytes, log_id());
    EXPECT_FALSE(parses(bytes)) << c.what;
  }
  std::vector<std::byte> unchanged = bytes_of(area_of(header(), {record_of(1, 2)}, log_id()));
  reseal(unchanged, log_id());
  EXPECT_TRUE(parses(unchanged));
}

TEST(Batch, PeekingNeedsTheHeaderOnly) {
  const Payload area = area_of(header(), {record_of(1, 2)}, log_id());
  const auto peeked = peek_batch(area.bytes().first(80), log_id());
  ASSERT_TRUE(peeked.has_value());
  EXPECT_EQ(peeked->sector, kBlock);
  EXPECT_FALSE(peek_batch(area.bytes().first(79), log_id()).has_value());
}

TEST(Batch, ZerosAreNoBatch) {
  const std::vector<std::byte> zeros(kBlockBytes);
  EXPECT_FALSE(peek_batch(zeros, LogId{}).has_value());
  EXPECT_FALSE(parse_batch(zeros, LogId{}, 0).has_value());
}

TEST(Batch, HeaderBlocksRoundUp) {
  EXPECT_EQ(header_sectors_for(0), 1u);
  EXPECT_EQ(header_sectors_for(kBlockBytes - kBatchHeaderBytes), 1u);
  EXPECT_EQ(header_sectors_for(kBlockBytes - kBatchHeaderBytes + 1), 2u);
}

}  // namespace
}  // namespace mariner::logging
