#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "logging/pack_codec.h"
#include "logging/pack_table.h"
#include "proto/bytes.h"
#include "proto/crc32c.h"
#include "tests/logging/log_testing.h"
#include "tests/logging/pack_testing.h"

namespace mariner::logging {
namespace {

using test::Bytes;
using test::hex;
using Kind = PackPiece::Kind;

PackTable small_table() {
  return {{{.bytes = 0x100000,
            .pieces = {{.at = 0, .bytes = 0x200, .region = 1, .offset = 0},
                       {.at = 0x200, .bytes = 0x2000, .region = 0, .offset = 0},
                       {.at = 0x2200, .bytes = 0x200, .region = 1, .offset = 0x200},
                       {.at = 0x3000,
                        .bytes = 0x1000,
                        .region = 0,
                        .offset = 0x2000,
                        .base_region = 0,
                        .base_offset = 0x1000,
                        .delta_bytes = 0x30,
                        .kind = Kind::kDelta}}},
           {.bytes = 0x200, .pieces = {}}},
          {{.at = 0x400, .stored_bytes = 0x900, .plain_bytes = 0x2030, .crc32c = 0x11223344},
           {.at = 0, .stored_bytes = 0x400, .plain_bytes = 0x400, .crc32c = 0x55667788}}};
}

TEST(PackTableBytes, GoldenBytes) {
  const Bytes bytes = to_bytes(small_table());
  EXPECT_EQ(hex(bytes),
            "4d41524e 5041434b 01000000 ce4538af\n"
            "31000000 31000000 00000000 00000000\n"
            "028010b0 40b02e44 332211ff 33800800\n"
            "88776655 02808040 04000801 00800400\n"
            "02804000 02800480 18033000 80208004\n"
            "00");
  const auto again = PackTable::from_bytes(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, small_table());
}

TEST(PackTableBytes, AnEmptyTableToo) {
  const Bytes bytes = to_bytes(PackTable());
  EXPECT_EQ(hex(bytes),
            "4d41524e 5041434b 01000000 87e2f0c8\n"
            "02000000 02000000 00000000 00000000\n"
            "0000");
  const auto again = PackTable::from_bytes(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, PackTable());
}

// A table of a log of single blocks, compressed.
PackTable large_table() {
  std::mt19937_64 random(1);
  std::vector<PackRegion> regions;
  std::uint64_t at = 0;
  for (int i = 0; i < 300; ++i) {
    const auto stored = static_cast<std::uint32_t>(1 + random() % 131072);
    regions.push_back({at, stored, 131072, static_cast<std::uint32_t>(random())});
    at += stored;
  }
  PackTable::Track track{.bytes = 64u << 20, .pieces = {}};
  for (std::uint32_t i = 0; i < 8000; ++i) {
    track.pieces.push_back({.at = i * 8192, .bytes = 100, .region = i / 1000, .offset = i % 1000});
    const bool is_delta = random() % 3 == 0;
    track.pieces.push_back(
        {.at = i * 8192 + 4096,
         .bytes = kBlockBytes,
         .region = 10 + i / 31,
         .offset = i % 31 * 4096,
         .base_region = is_delta ? static_cast<std::uint32_t>(random() % 300) : 0,
         .base_offset = is_delta ? static_cast<std::uint32_t>(random() % 100000) : 0,
         .delta_bytes = static_cast<std::uint16_t>(is_delta ? 1 + random() % 4000 : 0),
         .kind = is_delta ? Kind::kDelta : Kind::kPlain});
  }
  return {{track}, regions};
}

TEST(PackTableBytes, ALargeOneIsCompressed) {
  const Bytes bytes = to_bytes(large_table());
  EXPECT_LT(load_le<std::uint32_t>(bytes.data() + 20), load_le<std::uint32_t>(bytes.data() + 16));
  EXPECT_LT(bytes.size(), 60000u);
  const auto again = PackTable::from_bytes(bytes);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, large_table());
}

TEST(PackTableBytes, EveryTruncationAndFlippedByteIsRefused) {
  for (const PackTable& table : {small_table(), PackTable(), large_table()}) {
    const Bytes bytes = to_bytes(table);
    const std::size_t step = bytes.size() > 1000 ? 37 : 1;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      Bytes other = bytes;
      other[at] ^= std::byte{0x41};
      const auto flipped = PackTable::from_bytes(other);
      ASSERT_FALSE(flipped) << at;
      EXPECT_EQ(flipped.error().code, ErrorCode::kCorrupt);
      EXPECT_FALSE(PackTable::from_bytes(std::span(bytes).first(at))) << at;
    }
    Bytes longer = bytes;
    longer.emplace_back();
    EXPECT_FALSE(PackTable::from_bytes(longer));
  }
}

// The body with a right frame, whatever it says; `plain_bytes` is what the frame announces.
Bytes framed(std::span<const std::byte> body, std::uint32_t plain_bytes) {
  Bytes bytes = to_bytes(PackTable());
  bytes.resize(12);
  bytes.resize(32);
  bytes.insert(bytes.end(), body.begin(), body.end());
  store_le(bytes.data() + 16, plain_bytes);
  store_le(bytes.data() + 20, static_cast<std::uint32_t>(body.size()));
  store_le(bytes.data() + 12, crc32c(bytes));
  return bytes;
}
Bytes framed(std::initializer_list<int> body) {
  Bytes bytes;
  for (const int byte : body) bytes.push_back(static_cast<std::byte>(byte));
  return framed(bytes, static_cast<std::uint32_t>(bytes.size()));
}

TEST(PackTableBytes, BehindARightChecksumEveryNumberIsCheckedToo) {
  EXPECT_TRUE(PackTable::from_bytes(framed({0, 0})));
  EXPECT_FALSE(PackTable::from_bytes(framed({0})));
  EXPECT_FALSE(PackTable::from_bytes(framed({0, 0, 0})));
  EXPECT_FALSE(PackTable::from_bytes(framed({0xff, 0xff, 0x03, 0})));     // regions not there
  EXPECT_FALSE(PackTable::from_bytes(framed({0, 0xff, 0xff, 0x03, 0})));  // tracks not there
  // One track of 0 bytes; then of 5 without pieces; then with pieces that are not there.
  EXPECT_TRUE(PackTable::from_bytes(framed({0, 1, 0, 0})));
  EXPECT_TRUE(PackTable::from_bytes(framed({0, 1, 5, 0})));
  EXPECT_FALSE(PackTable::from_bytes(framed({0, 1, 5, 1})));
  // A number of eleven bytes, and one of ten that is too large.
  EXPECT_FALSE(PackTable::from_bytes(
      framed({0, 1, 0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, 0})));
  EXPECT_FALSE(PackTable::from_bytes(
      framed({0, 1, 0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2, 0})));
  // One region of 8 bytes, one track of 8 bytes with one piece: gap, tag, bytes.
  const auto piece = [](int gap, int tag, int bytes) {
    return PackTable::from_bytes(framed({1, 0, 8, 0, 1, 2, 3, 4, 1, 8, 1, gap, tag, bytes}));
  };
  EXPECT_TRUE(piece(0, 0, 8));
  EXPECT_TRUE(piece(3, 6, 5));
  EXPECT_FALSE(piece(0, 0, 9));
  EXPECT_FALSE(piece(1, 0, 8));
  EXPECT_FALSE(piece(0, 0, 0));
  EXPECT_FALSE(piece(0, 8, 8));   // region and offset are missing
  EXPECT_FALSE(piece(0, 1, 8));   // base is missing
  EXPECT_FALSE(piece(0, 10, 8));  // no such cursor
}

TEST(PackTableBytes, AnnouncedSizesAreBounded) {
  // A megabyte that says that it is a gigabyte, and one that does become another length.
  Bytes stored(1u << 20);
  const std::size_t length = PackCompressor(3).compress(Bytes(2u << 20), stored);
  ASSERT_GT(length, 0u);
  const auto body = std::span(stored).first(length);
  EXPECT_FALSE(PackTable::from_bytes(framed(body, 1u << 30)));
  EXPECT_FALSE(PackTable::from_bytes(framed(body, kPackTableBytesMax + 1)));
  EXPECT_FALSE(PackTable::from_bytes(framed(body, 1u << 20)));
  EXPECT_FALSE(PackTable::from_bytes(framed(body, 3u << 20)));
  EXPECT_FALSE(PackTable::from_bytes(framed(body, 0)));
}

}  // namespace
}  // namespace mariner::logging
