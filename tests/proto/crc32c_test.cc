#include "proto/crc32c.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "proto/bytes.h"

namespace mariner {
namespace {

// RFC 3720 B.4 and the customary check value.
TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(as_byte_span("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c({}), 0u);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0x00})), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32, std::byte{0xff})), 0x62a8ab43u);
  std::vector<std::byte> counting(32);
  for (std::size_t i = 0; i < 32; ++i) counting[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(counting), 0x46dd794eu);
  for (std::size_t i = 0; i < 32; ++i) counting[i] = static_cast<std::byte>(31 - i);
  EXPECT_EQ(crc32c(counting), 0x113fdb5cu);
}

// RFC 3720 B.4: the header of a READ(10).
TEST(Crc32c, KnownValueOfAPdu) {
  std::array<std::byte, 48> pdu{};
  pdu[0] = std::byte{0x01};
  pdu[1] = std::byte{0xc0};
  pdu[16] = std::byte{0x14};
  pdu[22] = std::byte{0x04};
  pdu[27] = std::byte{0x14};
  pdu[31] = std::byte{0x18};
  pdu[32] = std::byte{0x28};
  pdu[40] = std::byte{0x02};
  EXPECT_EQ(crc32c(pdu), 0xd9963a56u);
}

TEST(Crc32c, ContinuesFromASeedAtAnyCut) {
  const std::string text = "the quick brown fox jumps over the lazy dog, twice and once more";
  const std::uint32_t whole = crc32c(as_byte_span(text));
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const std::uint32_t head = crc32c(as_byte_span(text).first(cut));
    EXPECT_EQ(crc32c(as_byte_span(text).subspan(cut), head), whole) << cut;
  }
}

TEST(Crc32c, SeesEveryFlippedBit) {
  std::vector<std::byte> bytes(64, std::byte{0x5a});
  const std::uint32_t good = crc32c(bytes);
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_NE(crc32c(bytes), good) << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
}

std::vector<std::byte> random_bytes(std::size_t count, std::mt19937_64& random) {
  std::vector<std::byte> bytes(count);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  return bytes;
}

TEST(Crc32cCombine, IsTheCrcOfBothAtAnyCut) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    const std::vector<std::byte> bytes = random_bytes(random() % 20000, random);
    const std::size_t cut = random() % (bytes.size() + 1);
    const auto a = std::span(bytes).first(cut);
    const auto b = std::span(bytes).subspan(cut);
    ASSERT_EQ(crc32c_combine(crc32c(a), crc32c(b), b.size()), crc32c(bytes))
        << cut << " of " << bytes.size();
  }
}

TEST(Crc32cCombine, EveryPowerOfTwo) {
  std::mt19937_64 random(2);
  const std::vector<std::byte> bytes = random_bytes((1u << 22) + 5, random);
  const auto a = std::span(bytes).first(5);
  for (std::size_t length = 1; length <= 1u << 22; length *= 2) {
    const auto b = std::span(bytes).subspan(5, length);
    EXPECT_EQ(crc32c_combine(crc32c(a), crc32c(b), length),
              crc32c(std::span(bytes).first(5 + length)))
        << length;
  }
}

// Longer than memory: cut elsewhere, the same.
TEST(Crc32cCombine, LengthsOfAnySizeAddUp) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 1000; ++round) {
    const auto a = static_cast<std::uint32_t>(random());
    const std::uint64_t first = random() >> (1 + random() % 60);
    const std::uint64_t second = random() >> (1 + random() % 60);
    ASSERT_EQ(crc32c_combine(crc32c_combine(a, 0, first), 0, second),
              crc32c_combine(a, 0, first + second))
        << first << " and " << second;
  }
}

TEST(Crc32cCombine, BlocksMakeAWhole) {
  std::mt19937_64 random(4);
  const std::vector<std::byte> bytes = random_bytes(64 * 4096, random);
  std::uint32_t crc = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 4096) {
    crc = crc32c_combine(crc, crc32c(std::span(bytes).subspan(at, 4096)), 4096);
  }
  EXPECT_EQ(crc, crc32c(bytes));
}

}  // namespace
}  // namespace mariner
