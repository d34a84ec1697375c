#include "tests/bench/filled_index.h"

#include <gtest/gtest.h>

#include "tests/logging/temporary_directory.h"

namespace mariner::bench {
namespace {

constexpr std::uint64_t kVersions = 20'000;

TEST(FilledIndexTest, HoldsWhatItWasFilledWithAndForgetsWhatWasOnlyQueued) {
  logging::test::TemporaryDirectory folder;
  const FilledIndexOptions options{.path = folder.file("index"),
                                   .versions = kVersions,
                                   .block_bytes = 4096,
                                   .memory_bytes = std::size_t{8} << 20};
  const Result<void> made = make_filled_index(options);
  ASSERT_TRUE(made) << made.error().message;
  const std::uint64_t distance = (std::uint64_t{1} << 28) / (kVersions + 1);
  for (int round = 0; round < 2; ++round) {
    auto opened = OpenedIndex::open(options);
    ASSERT_TRUE(opened) << opened.error().message;
    EXPECT_EQ((*opened)->store().frontier(), kVersions);
    EXPECT_EQ((*opened)->index().newest().sequence.value, kVersions);
    for (std::uint64_t sequence = 1; sequence <= kVersions; sequence += 777) {
      const auto found = (*opened)->locate({Lbn{(sequence - 1) * distance}, BlockCount{1}},
                                           SequenceNumber{kVersions});
      ASSERT_TRUE(found) << found.error().message;
      ASSERT_EQ(found->size(), 1u);
      EXPECT_EQ(found->front().sequence.value, sequence);
    }
    logging::Record record;
    record.volume = VolumeId{1};
    record.epoch = {1};
    record.sequence = {kVersions + 1};
    record.ordinal = kVersions + 1;
    record.time = {(kVersions + 1) * 1000};
    record.payload_blocks = 1;
    record.extent = {Lbn{0}, BlockCount{1}};
    (*opened)->index().insert(record, {4711, 1, 0, 1, 0});
    (*opened)->index().flush();
    EXPECT_EQ((*opened)->store().statistics().modifications, 2u);
    const auto found = (*opened)->locate(record.extent, record.sequence);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->front().location.batch_sector, 4711u);
  }
}

TEST(FilledIndexTest, WhatIsNotThereIsAnError) {
  EXPECT_FALSE(OpenedIndex::open({.path = testing::TempDir() + "no/such/index"}));
  EXPECT_FALSE(make_filled_index({.path = testing::TempDir() + "no/such/index", .versions = 1}));
}

}  // namespace
}  // namespace mariner::bench
