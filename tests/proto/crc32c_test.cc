#include "proto/crc32c.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace mariner
