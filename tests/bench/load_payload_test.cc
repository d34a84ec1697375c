#include "tests/bench/load_payload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace mariner::bench {
namespace {

using Bytes = std::vector<unsigned char>;

std::uint64_t word(const Bytes& data, std::size_t at) {
  std::uint64_t out = 0;
  std::memcpy(&out, &data[at], sizeof out);
  return out;
}

Bytes filled(LoadPayload& payload, std::size_t bytes) {
  Bytes data(bytes);
  payload.fill(data);
  return data;
}

TEST(LoadPayload, ASeedGivesTheSameBytesAndAnotherOneOthers) {
  LoadPayload one({.seed = 1});
  LoadPayload again({.seed = 1});
  LoadPayload other({.seed = 2});
  const Bytes data = filled(one, 4096);
  EXPECT_EQ(filled(again, 4096), data);
  EXPECT_NE(filled(other, 4096), data);
  EXPECT_NE(filled(one, 4096), data) << "each buffer has bytes of its own";
  EXPECT_LT(std::ranges::count(data, 0), 64);
}

TEST(LoadPayload, ABufferKeepsItsBytes) {
  LoadPayload payload({});
  Bytes data = filled(payload, 4096);
  const Bytes before = data;
  payload.prepare(data, 8192);
  EXPECT_EQ(data, before);
}

TEST(LoadPayload, SoManyPercentOfEach512BytesAreZeros) {
  LoadPayload payload({.compressible = 75});
  Bytes data = filled(payload, 1024);
  payload.prepare(data, 0);
  for (const std::size_t piece : {0, 512}) {
    for (std::size_t at = 0; at < 512; at += 8) {
      EXPECT_EQ(word(data, piece + at) == 0, at >= 128) << piece + at;
    }
  }
  const Bytes before = data;
  payload.prepare(data, 0);
  EXPECT_NE(data, before) << "new ones with each command";
}

TEST(LoadPayload, NothingCompressesOrEverything) {
  LoadPayload none({.compressible = 0});
  Bytes data(512);
  none.prepare(data, 0);
  EXPECT_NE(word(data, 504), 0u);
  LoadPayload all({.compressible = 100});
  all.prepare(data, 0);
  EXPECT_EQ(data, Bytes(512));
}

TEST(LoadPayload, AStampTellsPlaceAndSeed) {
  LoadPayload payload({.stamp_as = 77, .stamp = true});
  Bytes data = filled(payload, 2 * 4096 + 512);
  Bytes expected = data;
  for (const std::uint64_t at : {0, 4096}) {
    const std::uint64_t told[] = {40960 + at, 77};
    std::memcpy(&expected[at], told, sizeof told);
  }
  payload.prepare(data, 40960);
  EXPECT_EQ(data, expected) << "and what is no whole block has none";
}

}  // namespace
}  // namespace mariner::bench
