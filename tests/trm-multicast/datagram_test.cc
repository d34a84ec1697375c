#include "trm-multicast/datagram.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "proto/bytes.h"
#include "tests/trm-multicast/hex.h"

namespace mariner::trm {
namespace {

const DatagramHeader kHeader{.stream = {0xc0ffee42},
                             .kind = DatagramKind::kPayload,
                             .start = {0x0102030405},
                             .length = 24,
                             .offset = 8};

std::vector<std::byte> datagram_of(const DatagramHeader& header, std::size_t body_bytes) {
  const DatagramHeaderBytes head = pack(header);
  std::vector<std::byte> bytes(head.begin(), head.end());
  bytes.resize(kDatagramOverheadBytes + body_bytes, std::byte{7});
  return bytes;
}

TEST(Datagram, HeaderHasTheseBytes) {
  EXPECT_EQ(to_hex(pack(kHeader)), "1117000042eeffc0050403020100000008000000");
}

TEST(Datagram, ComesBackAsItWasPacked) {
  for (const DatagramKind kind : {DatagramKind::kPayload, DatagramKind::kProbe}) {
    DatagramHeader header = kHeader;
    header.kind = kind;
    header.length = kPayloadBytesMax;
    header.offset = kPayloadBytesMax - 5;
    const std::vector<std::byte> bytes = datagram_of(header, 5);
    const auto parsed = parse(bytes);
    ASSERT_TRUE(parsed.has_value());
    EXPECT_EQ(parsed->header, header);
    EXPECT_EQ(parsed->header_bytes.size(), kDatagramHeaderBytes);
    EXPECT_EQ(parsed->body.size(), 5u);
    EXPECT_EQ(parsed->body.data(), bytes.data() + kDatagramHeaderBytes);
    EXPECT_EQ(parsed->tag.size(), kDatagramTagBytes);
  }
}

TEST(Datagram, ThatGoesBeyondItsPayloadIsNone) {
  EXPECT_TRUE(parse(datagram_of(kHeader, 16)).has_value());
  EXPECT_FALSE(parse(datagram_of(kHeader, 17)).has_value());
  std::vector<std::byte> beyond = datagram_of(kHeader, 1);
  store_le<std::uint32_t>(beyond.data() + 16, 24);  // the offset is the length
  EXPECT_FALSE(parse(beyond).has_value());
  store_le<std::uint32_t>(beyond.data() + 16, 23);
  EXPECT_TRUE(parse(beyond).has_value());
}

TEST(Datagram, WithoutABodyOrShorterIsNone) {
  const std::vector<std::byte> bytes = datagram_of(kHeader, 1);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(parse(std::span(bytes).first(size)).has_value()) << size;
  }
  EXPECT_TRUE(parse(bytes).has_value());
}

TEST(Datagram, OfAnotherVersionOrKindIsNone) {
  std::vector<std::byte> bytes = datagram_of(kHeader, 1);
  int taken = 0;
  for (int first = 0; first < 256; ++first) {
    bytes[0] = static_cast<std::byte>(first);
    if (parse(bytes)) ++taken;
  }
  EXPECT_EQ(taken, 2);
}

TEST(Datagram, WhosePositionsWouldOverflowIsNone) {
  std::vector<std::byte> bytes = datagram_of(kHeader, 1);
  store_le<std::uint64_t>(bytes.data() + 8, UINT64_MAX - kPayloadBytesMax);
  EXPECT_TRUE(parse(bytes).has_value());
  store_le<std::uint64_t>(bytes.data() + 8, UINT64_MAX - kPayloadBytesMax + 1);
  EXPECT_FALSE(parse(bytes).has_value());
}

TEST(Datagram, OfRandomBytesStaysWithinItsPayloadIfItIsOne) {
  std::mt19937_64 random(7);
  int taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes(random() % 200);
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    if (!bytes.empty() && i % 2 == 0) bytes[0] = std::byte{0x11};
    if (bytes.size() > 20 && i % 4 == 0) store_le<std::uint32_t>(bytes.data() + 16, 0);
    const auto parsed = parse(bytes);
    if (!parsed) continue;
    ++taken;
    EXPECT_LE(parsed->header.offset + parsed->body.size(), parsed->header.length);
    EXPECT_LE(parsed->header.length, kPayloadBytesMax);
  }
  EXPECT_GT(taken, 1000);
}

}  // namespace
}  // namespace mariner::trm
