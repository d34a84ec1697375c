#include "ifsck/directory_maker.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "ifsck/directory_block.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

class DirectoryMakerTest : public ::testing::TestWithParam<const char*> {
 protected:
  static std::vector<std::string> names(std::span<const std::byte> bytes) {
    std::vector<std::string> all;
    EXPECT_TRUE(for_each_entry(bytes, [&](const DirectoryEntry& entry) {
      if (entry.inode != 0) all.emplace_back(entry.name);
    }));
    return all;
  }
  MadeVolume made_{GetParam()};
  const ExtContext context_{*made_.volume, *made_.layout};
  MendWork work_{context_, {.findings = {}, .cut_short = false, .directories = {}}};
};

TEST_P(DirectoryMakerTest, TakesNamesUntilItIsFull) {
  DirectoryMaker maker(work_);
  std::vector<std::string> added;
  for (int i = 0; maker.add("name " + std::to_string(i), {20, EXT2_FT_REG_FILE}); ++i) {
    added.push_back("name " + std::to_string(i));
  }
  EXPECT_EQ(names(maker.finish()), added);
  EXPECT_TRUE(names(DirectoryMaker(work_).finish()).empty());
}

TEST_P(DirectoryMakerTest, NamesFitWhereOthersAreShort) {
  std::vector<std::byte> bytes = make_first_block(work_, 20, 2);
  std::vector<std::string> expected{".", ".."};
  while (fit_name(work_, bytes, "one more", {21, EXT2_FT_DIR})) expected.emplace_back("one more");
  EXPECT_EQ(names(bytes), expected);
  EXPECT_GT(expected.size(), made_.layout->block_bytes() / 16 - 4);
}

// Whatever it was, it is one of a directory afterwards; what was good is kept.
TEST_P(DirectoryMakerTest, WhatIsCutIsABlock) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 500; ++i) {
    std::vector<std::byte> bytes = make_first_block(work_, 20, 2);
    while (fit_name(work_, bytes, "one more", {21, EXT2_FT_DIR})) {
    }
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = std::byte(random());
    std::vector<std::string> before;
    for_each_entry(bytes, [&](const DirectoryEntry& entry) {
      if (entry.inode != 0) before.emplace_back(entry.name);
    });
    cut_directory_block(work_, bytes);
    const std::vector<std::string> after = names(bytes);
    EXPECT_LE(after.size(), before.size());
    EXPECT_GE(after.size() + 1, before.size());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DirectoryMakerTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext4 -b 4096"));

}  // namespace
}  // namespace mariner::ifsck
