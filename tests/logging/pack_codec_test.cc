#include "logging/pack_codec.h"

#include <gtest/gtest.h>

#include "proto/units.h"
#include "tests/logging/pack_testing.h"

namespace mariner::logging {
namespace {

using test::Bytes;
using test::noise;
using test::prose;

TEST(PackCodec, WhatIsCompressedDecompresses) {
  PackCompressor compressor(3);
  PackDecompressor decompressor;
  for (const std::size_t bytes : {1u, 100u, 4096u, 131072u, 1u << 20}) {
    const Bytes plain = prose(bytes, bytes);
    Bytes stored(bytes + 1000);
    const std::size_t length = compressor.compress(plain, stored);
    ASSERT_GT(length, 0u);
    Bytes again(bytes);
    EXPECT_TRUE(decompressor.decompress(std::span(stored).first(length), again));
    EXPECT_EQ(again, plain);
  }
}

TEST(PackCodec, WhatDoesNotFitIsNotCompressed) {
  PackCompressor compressor(3);
  const Bytes plain = noise(1, 10000);
  Bytes stored(9999);
  EXPECT_EQ(compressor.compress(plain, stored), 0u);
  EXPECT_EQ(compressor.compress(plain, {}), 0u);
}

TEST(PackCodec, ADeltaHoldsWhatIsNew) {
  PackCompressor compressor(3);
  PackDecompressor decompressor;
  const Bytes base = noise(1, kBlockBytes);
  Bytes block = base;
  for (std::size_t i = 1000; i < 1020; ++i) block[i] ^= std::byte{0x55};
  Bytes delta(1024);
  const std::size_t length = compressor.delta(base, block, delta);
  EXPECT_GE(length, 20u);
  EXPECT_LT(length, 60u);
  Bytes again(kBlockBytes);
  EXPECT_TRUE(decompressor.apply(base, std::span(delta).first(length), again));
  EXPECT_EQ(again, block);
}

TEST(PackCodec, ADeltaThatDoesNotFitIsNoneAndSpoilsNothing) {
  PackCompressor compressor(3);
  const Bytes base = noise(1, kBlockBytes);
  Bytes delta(1024);
  EXPECT_EQ(compressor.delta(base, noise(2, kBlockBytes), delta), 0u);
  Bytes block = base;
  block[4095] ^= std::byte{1};
  const std::size_t length = compressor.delta(base, block, delta);
  EXPECT_GT(length, 0u);
  EXPECT_LT(length, 30u);
  Bytes stored(2 * kBlockBytes);
  EXPECT_GT(compressor.compress(base, stored), 0u);
}

TEST(PackCodec, DamagedBytesAreRefusedOrMakeOtherBytes) {
  PackCompressor compressor(3);
  PackDecompressor decompressor;
  const Bytes base = prose(1, kBlockBytes);
  const Bytes block = prose(2, kBlockBytes);
  Bytes delta(kBlockBytes);
  const std::size_t length = compressor.delta(base, block, delta);
  ASSERT_GT(length, 0u);
  Bytes to(kBlockBytes);
  for (std::size_t cut = 0; cut < length; ++cut) {
    EXPECT_FALSE(decompressor.apply(base, std::span(delta).first(cut), to));
  }
  for (std::size_t at = 0; at < length; ++at) {
    Bytes flipped = delta;
    flipped[at] ^= std::byte{0x10};
    static_cast<void>(decompressor.apply(base, std::span(flipped).first(length), to));
  }
  // None of which is in the way of the next.
  EXPECT_TRUE(decompressor.apply(base, std::span(delta).first(length), to));
  EXPECT_EQ(to, block);
  Bytes shorter(kBlockBytes - 1);
  EXPECT_FALSE(decompressor.apply(base, std::span(delta).first(length), shorter));
  Bytes longer(kBlockBytes + 1);
  EXPECT_FALSE(decompressor.apply(base, std::span(delta).first(length), longer));
}

}  // namespace
}  // namespace mariner::logging
