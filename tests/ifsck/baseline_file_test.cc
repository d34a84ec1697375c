#include "ifsck/baseline_file.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <vector>

#include "proto/bytes.h"
#include "proto/crc32c.h"
#include "tests/logging/temporary_directory.h"

namespace mariner::ifsck {
namespace {

KeptBaseline some() {
  KeptBaseline kept;
  for (std::size_t i = 0; i < kept.uuid.size(); ++i) kept.uuid[i] = static_cast<std::uint8_t>(i);
  kept.volume_bytes = 1u << 30;
  kept.descriptor_bytes = 64;
  kept.time = VersionTime{1'795'181'525'000'000'000};
  kept.baseline = {.at = SequenceNumber{77},
                   .owners = {{100, 12}, {1ULL << 33, 13}},
                   .attributes = {{200, 2}},
                   .groups = {{.free_blocks = 5, .free_inodes = 6, .directories = 7}, {}},
                   .mismarked = {1, 2, 3},
                   .mismarked_inodes = {9},
                   .doubtful = {0, 1},
                   .doubtful_attributes = {200}};
  kept.overlay.put(Lbn{5}, std::vector<std::byte>(kBlockBytes, std::byte{7}));
  return kept;
}

TEST(BaselineFile, IsWhatWasWritten) {
  EXPECT_EQ(parse_baseline(pack_baseline(some())).value(), some());
  EXPECT_EQ(parse_baseline(pack_baseline({})).value(), KeptBaseline{});
  const logging::test::TemporaryDirectory folder;
  const std::string path = folder.file("baseline");
  EXPECT_EQ(read_baseline(path).error().code, ErrorCode::kNotFound);
  ASSERT_TRUE(write_baseline(path, {}).has_value());
  ASSERT_TRUE(write_baseline(path, some()).has_value());
  EXPECT_EQ(read_baseline(path).value(), some());
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  EXPECT_EQ(write_baseline(folder.file("none/baseline"), some()).error().code,
            ErrorCode::kNotFound);
}

TEST(BaselineFile, HasTheseSizes) {
  // Tables of blocks: 8 bytes, and 16 for each 64 entries; and 2^33 - 100 is five bytes, what
  // stands beside it one more.
  const std::size_t tables =
      (8 + 16 + 5 + 1) + (8 + 16) + 2 * 12 + 3 * 8 + 4 + 2 * 4 + 8 + 8 + kBlockBytes;
  EXPECT_EQ(pack_baseline(some()).size(), 128 + tables + 4);
  EXPECT_EQ(pack_baseline({}).size(), 132u);
}

TEST(BaselineFile, TablesThatAreNoneAreNoticed) {
  KeptBaseline kept;
  kept.baseline.owners = {{100, 1}, {200, 2}};
  std::vector<std::byte> bytes = pack_baseline(kept);
  bytes[128] = std::byte{100};  // entries
  store_le(bytes.data() + bytes.size() - 4, crc32c(std::span(bytes).first(bytes.size() - 4)));
  const auto parsed = parse_baseline(bytes);
  ASSERT_FALSE(parsed.has_value());
  EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
}

TEST(BaselineFile, WhateverWasChangedIsNoticed) {
  const std::vector<std::byte> good = pack_baseline(some());
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    std::vector<std::byte> bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    const auto parsed = parse_baseline(bad);
    ASSERT_FALSE(parsed.has_value()) << bit;
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
  }
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes) {
    EXPECT_FALSE(parse_baseline(std::span(good).first(bytes)).has_value()) << bytes;
  }
}

}  // namespace
}  // namespace mariner::ifsck
