#include "ifsck/quota_file.h"

#include <gtest/gtest.h>

#include <random>

namespace mariner::ifsck {
namespace {

using Of = QuotaFile::Of;

QuotaFile made() {
  QuotaFile file;
  std::mt19937 random(4);
  for (std::uint32_t i = 0; i < 100; ++i) {
    const auto id = static_cast<std::uint32_t>(i < 50 ? i : random());
    file.entries[id] = {.use = {.inodes = i + 1, .bytes = 4096u * i},
                        .inodes_hard = i,
                        .inodes_soft = i % 7,
                        .blocks_hard = i % 9,
                        .blocks_soft = i % 11,
                        .blocks_until = i % 3,
                        .inodes_until = i % 5};
  }
  return file;
}

TEST(QuotaFile, WhatIsWrittenIsRead) {
  const QuotaFile file = made();
  const QuotaFile again = QuotaFile::read(Of::kGroup, file.write(Of::kGroup));
  EXPECT_TRUE(again.good);
  EXPECT_EQ(again.entries, file.entries);
  EXPECT_FALSE(QuotaFile::read(Of::kUser, file.write(Of::kGroup)).good);
}

TEST(QuotaFile, WhatIsInUseIsSetAndLimitsStay) {
  QuotaFile file = made();
  const std::map<std::uint32_t, QuotaFile::Use> use{{3, {5, 6}}, {1'000'000, {7, 8}}};
  EXPECT_FALSE(file.fits(use));
  file.set(use);
  EXPECT_TRUE(file.fits(use));
  EXPECT_EQ(file.entries.at(3).inodes_hard, 3u);
  EXPECT_TRUE(file.entries.contains(9));   // has limits
  EXPECT_FALSE(file.entries.contains(0));  // had none
}

TEST(QuotaFile, WhateverItHasReadingEnds) {
  const std::vector<std::byte> good = made().write(Of::kUser);
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> bytes = good;
    for (int k = 0; k < 10; ++k) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(random() % (bytes.size() + 1));
    (void)QuotaFile::read(Of::kUser, bytes);
  }
}

}  // namespace
}  // namespace mariner::ifsck
