#include "proto/payload_crc.h"

#include <gtest/gtest.h>

#include "proto/crc32c.h"

namespace mariner {
namespace {

constexpr std::size_t kBytes = 5 * kBlockBytes + 100;

Payload counted() {
  Payload payload = Payload::allocate(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) payload.bytes()[i] = static_cast<std::byte>(i * 7 >> 3);
  return payload;
}

TEST(PayloadCrc, IsThatOfTheBytesWhereverTheSliceIs) {
  Payload payload = counted();
  for (const bool known : {false, true}) {
    // Of some blocks only.
    for (const std::size_t block : {1, 2, 4}) {
      const auto bytes = payload.bytes().subspan(block * kBlockBytes, kBlockBytes);
      if (known) payload.set_block_crc(block, crc32c(bytes));
    }
    for (const std::size_t offset : {0u, 1u, 4095u, 4096u, 9000u}) {
      for (const std::size_t length : {0u, 1u, 4096u, 8191u, 8192u, 10'000u}) {
        const PayloadSlice slice{payload, offset, length};
        EXPECT_EQ(payload_crc32c(slice), crc32c(slice.bytes()));
        EXPECT_EQ(payload_crc32c(slice, 77), crc32c(slice.bytes(), 77));
      }
    }
  }
}

TEST(PayloadCrc, TakesTheBlocksWordForIt) {
  Payload payload = counted();
  payload.set_block_crc(0, 1);
  const PayloadSlice whole{payload, 0, kBytes};
  EXPECT_NE(payload_crc32c(whole), crc32c(whole.bytes()));
  const PayloadSlice behind{payload, kBlockBytes, kBytes - kBlockBytes};
  EXPECT_EQ(payload_crc32c(behind), crc32c(behind.bytes()));
}

}  // namespace
}  // namespace mariner
