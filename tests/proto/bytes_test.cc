#include "proto/bytes.h"

#include <gtest/gtest.h>

#include <array>

namespace mariner {
namespace {

TEST(Bytes, LittleEndianAtAnyAlignment) {
  std::array<std::uint8_t, 9> bytes{0xff, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(load_le<std::uint16_t>(&bytes[1]), 0x0201u);
  EXPECT_EQ(load_le<std::uint32_t>(&bytes[1]), 0x04030201u);
  EXPECT_EQ(load_le<std::uint64_t>(&bytes[1]), 0x0807060504030201u);
  store_le(&bytes[1], std::uint32_t{0xa1b2c3d4});
  EXPECT_EQ(bytes[1], 0xd4);
  EXPECT_EQ(bytes[4], 0xa1);
}

TEST(Bytes, BigEndianAtAnyAlignment) {
  std::array<std::uint8_t, 9> bytes{0xff, 1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(load_be<std::uint8_t>(&bytes[1]), 1u);
  EXPECT_EQ(load_be<std::uint16_t>(&bytes[1]), 0x0102u);
  EXPECT_EQ(load_be<std::uint32_t>(&bytes[1]), 0x01020304u);
  EXPECT_EQ(load_be<std::uint64_t>(&bytes[1]), 0x0102030405060708u);
  store_be(&bytes[1], std::uint16_t{0xa1b2});
  EXPECT_EQ(bytes[1], 0xa1);
  EXPECT_EQ(bytes[2], 0xb2);
}

TEST(Bytes, TwentyFourBitsLeaveTheirNeighboursAlone) {
  std::array<std::uint8_t, 5> bytes{0xee, 0, 0, 0, 0xee};
  store_be24(&bytes[1], 0xabcdef);
  EXPECT_EQ(bytes, (std::array<std::uint8_t, 5>{0xee, 0xab, 0xcd, 0xef, 0xee}));
  EXPECT_EQ(load_be24(&bytes[1]), 0xabcdefu);
}

TEST(Bytes, TextAsBytes) {
  EXPECT_EQ(as_byte_span("ab").size(), 2u);
  EXPECT_EQ(as_byte_span("ab")[1], std::byte{'b'});
  EXPECT_TRUE(as_byte_span("").empty());
}

}  // namespace
}  // namespace mariner
