#include "proto/field.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace mariner {
namespace {

TEST(Field, IsLittleEndianAndNeedsNoAlignment) {
  constexpr std::array<std::byte, 6> kBytes = {std::byte{9}, std::byte{1}, std::byte{2},
                                               std::byte{3}, std::byte{4}, std::byte{0xff}};
  EXPECT_EQ(field<std::uint32_t>(kBytes, 1), 0x04030201u);
  EXPECT_EQ(field<std::uint16_t>(kBytes, 4), 0xff04u);
  EXPECT_EQ(field<std::uint8_t>(kBytes, 0), 9u);
}

}  // namespace
}  // namespace mariner
