#include "ifsck/fast_files.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Kind = FastOperation::Kind;

class FastFilesTest : public ::testing::Test {
 protected:
  FastOperation operation(Kind kind, InodeNumber inode) const {
    FastOperation one;
    one.kind = kind;
    one.inode = inode;
    return one;
  }
  FastOperation range(Kind kind, std::uint64_t logical, FsBlock physical, std::uint64_t count) {
    FastOperation one = operation(kind, file_);
    one.logical = logical;
    one.physical = physical;
    one.count = count;
    return one;
  }
  // The last blocks of all: nobody has them.
  [[nodiscard]] FsBlock free_blocks() const { return made_.layout->blocks() - 100; }
  // What is said of a file's contents, when all is right but the superblock's sum (journal.h).
  BlockMap map() {
    for (const Finding& each : made_.census().findings) {
      EXPECT_TRUE(each.code == Finding::Code::kFreeBlocks && each.group == Finding::kAll)
          << describe(each);
    }
    return map_blocks(*made_.volume, *made_.layout, file_, made_.inode(file_)).value();
  }

  MadeVolume made_{"-t ext4 -b 1024 -O ^has_journal"};
  const InodeNumber file_ = made_.find("many/a file with a long name, number 6");
  FastFiles files_{*made_.volume, *made_.layout};
};

TEST_F(FastFilesTest, ARangeIsTheFilesAndMarked) {
  const FastOperation add = range(Kind::kAddRange, 5, free_blocks(), 3);
  ASSERT_TRUE(files_.reserve(std::span(&add, 1)).has_value());
  ASSERT_TRUE(files_.touch(file_).has_value());
  ASSERT_TRUE(files_.change_range(add).has_value());
  // A file that ends behind what it has.
  auto inode = files_.read_inode(file_).value();
  const std::uint32_t size = 8 * 1024;
  std::memcpy(inode.data() + 4, &size, sizeof size);
  ASSERT_TRUE(files_.write_inode(file_, inode).has_value());
  ASSERT_TRUE(files_.finish().has_value());
  std::uint64_t found = 0;
  for (const BlockMap::Run& each : map().runs) {
    if (each.logical + each.count == 8) found = each.physical + each.count;
  }
  EXPECT_EQ(found, free_blocks() + 3);
}

TEST_F(FastFilesTest, WhatNobodyMayHaveIsRefused) {
  const FastOperation structure = range(Kind::kAddRange, 0, 1, 1);
  EXPECT_EQ(files_.reserve(std::span(&structure, 1)).error().code, ErrorCode::kCorrupt);
  const FastOperation much = range(Kind::kAddRange, 0, free_blocks(), 1ULL << 40);
  EXPECT_EQ(files_.reserve(std::span(&much, 1)).error().code, ErrorCode::kLimit);
  EXPECT_EQ(files_.touch(0).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(files_.touch(EXT2_RESIZE_INO).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(files_.touch(made_.layout->inodes() + 1).error().code, ErrorCode::kCorrupt);
  EXPECT_TRUE(files_.touch(EXT2_ROOT_INO).has_value());
}

TEST_F(FastFilesTest, NothingDoneChangesNothing) {
  ASSERT_TRUE(files_.touch(file_).has_value());
  ASSERT_TRUE(files_.in_use(file_).value());
  ASSERT_TRUE(files_.finish().has_value());
  EXPECT_EQ(made_.overlay.size(), 0u);
}

}  // namespace
}  // namespace mariner::ifsck
