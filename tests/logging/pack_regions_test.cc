#include "logging/pack_regions.h"

#include <gtest/gtest.h>

#include "proto/crc32c.h"
#include "tests/logging/pack_testing.h"

namespace mariner::logging {
namespace {

using test::Bytes;
using test::MemoryPack;
using test::noise;
using test::prose;
using Place = PackRegions::Place;
using Stream = PackRegions::Stream;

TEST(PackRegions, FillsOneRegionOfEachKindAtATime) {
  MemoryPack pack;
  PackRegions regions(pack, 3);
  EXPECT_EQ(regions.payload_region(), 0u);
  EXPECT_EQ(*regions.add(Stream::kHeaders, noise(1, 512)), (Place{0, 0}));
  EXPECT_EQ(regions.payload_region(), 1u);
  EXPECT_EQ(*regions.add(Stream::kPayloads, noise(2, 4096)), (Place{1, 0}));
  EXPECT_EQ(*regions.add(Stream::kHeaders, noise(3, 512)), (Place{0, 512}));
  EXPECT_EQ(*regions.add_delta(noise(4, 100)), (Place{1, 4096}));
  EXPECT_EQ(*regions.add(Stream::kPayloads, noise(5, 4096)), (Place{1, 4196}));
  EXPECT_EQ(regions.payload_region(), 1u);
  const auto made = regions.finish();
  ASSERT_TRUE(made);
  ASSERT_EQ(made->size(), 2u);
  EXPECT_EQ(pack.bytes.size(), 1024u + 8292u);
  EXPECT_EQ((*made)[0], (PackRegion{.at = 0,
                                    .stored_bytes = 1024,
                                    .plain_bytes = 1024,
                                    .crc32c = crc32c(std::span(pack.bytes).first(1024))}));
  EXPECT_EQ((*made)[1].at, 1024u);
  EXPECT_EQ((*made)[1].crc32c, crc32c(std::span(pack.bytes).subspan(1024)));
}

TEST(PackRegions, WhatDoesNotFitGoesIntoTheNextRegion) {
  MemoryPack pack;
  PackRegions regions(pack, 3);
  for (std::uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(*regions.add(Stream::kPayloads, noise(i, 4096)), (Place{0, i * 4096}));
  }
  EXPECT_EQ(pack.appends, 0u);
  EXPECT_EQ(*regions.add_delta(noise(1, 1)), (Place{1, 0}));
  EXPECT_EQ(pack.appends, 1u);
  EXPECT_EQ(regions.finish()->size(), 2u);
}

TEST(PackRegions, LearnsWhatABlockCosts) {
  MemoryPack pack;
  PackRegions regions(pack, 3);
  EXPECT_EQ(regions.block_cost(), 2048u);
  for (std::uint32_t i = 0; i < 33 * 10; ++i) {
    ASSERT_TRUE(regions.add(Stream::kPayloads, noise(i, 4096)));
  }
  EXPECT_GT(regions.block_cost(), 3900u);
  EXPECT_LE(regions.block_cost(), 4096u);
  for (std::uint32_t i = 0; i < 33 * 20; ++i) {
    ASSERT_TRUE(regions.add(Stream::kPayloads, Bytes(4096, std::byte{7})));
  }
  const std::uint32_t cheap = regions.block_cost();
  EXPECT_LT(cheap, 100u);
  // Nothing from deltas, nor from headers.
  // (One region has both, and counts when its deltas are few.)
  for (std::uint32_t i = 0; i < 2000; ++i) ASSERT_TRUE(regions.add_delta(noise(i, 900)));
  for (std::uint32_t i = 0; i < 2000; ++i)
    ASSERT_TRUE(regions.add(Stream::kHeaders, noise(i, 900)));
  EXPECT_LT(regions.block_cost(), cheap + 200);
}

TEST(PackRegions, AFailedAppendIsPassedOn) {
  MemoryPack pack;
  pack.fail_at_append = 0;
  PackRegions regions(pack, 3);
  ASSERT_TRUE(regions.add(Stream::kPayloads, prose(1, 4096)));
  EXPECT_EQ(regions.finish().error().code, ErrorCode::kNoSpace);
}

}  // namespace
}  // namespace mariner::logging
