#include "server/volume/unapplied_bytes.h"

#include <gtest/gtest.h>

namespace mariner::volume {
namespace {

constexpr std::uint64_t kLump = UnappliedBytes::kLumpBytes;

TEST(UnappliedBytes, GoWithTheNumbersThatAnImageHolds) {
  UnappliedBytes bytes;
  bytes.add({3}, kLump);
  bytes.add({5}, kLump + 1);
  bytes.add({9}, 10);
  EXPECT_EQ(bytes.bytes(), 2 * kLump + 11);
  EXPECT_EQ(bytes.applied({2}), 0u);
  EXPECT_EQ(bytes.applied({4}), kLump);
  EXPECT_EQ(bytes.applied({4}), 0u);
  EXPECT_EQ(bytes.applied({9}), kLump + 11);
  EXPECT_EQ(bytes.bytes(), 0u);
}

TEST(UnappliedBytes, ALumpCountsUntilAllOfItIsApplied) {
  UnappliedBytes bytes;
  for (std::uint64_t number = 1; number <= 100; ++number) bytes.add({number}, kLump / 10);
  EXPECT_EQ(bytes.bytes(), 100 * (kLump / 10));
  std::uint64_t left = 100;
  for (std::uint64_t number = 1; number <= 100; ++number) {
    bytes.applied({number});
    --left;
    EXPECT_GE(bytes.bytes(), left * (kLump / 10)) << "never too little";
    EXPECT_LE(bytes.bytes(), left * (kLump / 10) + 2 * kLump);
  }
  EXPECT_EQ(bytes.bytes(), 0u);
}

TEST(UnappliedBytes, WhatHasNoBytesTakesNoRoom) {
  UnappliedBytes bytes;
  for (std::uint64_t number = 1; number <= 100; ++number) bytes.add({number}, 0);
  int lumps = 0;
  bytes.visit([&](SequenceNumber, std::uint64_t) { ++lumps; });
  EXPECT_EQ(lumps, 0);
}

}  // namespace
}  // namespace mariner::volume
