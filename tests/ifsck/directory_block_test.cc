#include "ifsck/directory_block.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "ifsck/block_map.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Names = std::multiset<std::pair<InodeNumber, std::string>>;

int tell(ext2_ino_t /*folder*/, int /*kind*/, ext2_dir_entry* entry, int /*offset*/,
         int /*block_bytes*/, char* /*buffer*/, void* to) {
  static_cast<Names*>(to)->insert(
      {entry->inode, {entry->name, static_cast<std::size_t>(ext2fs_dirent_name_len(entry))}});
  return 0;
}

class DirectoryBlockTest : public ::testing::TestWithParam<const char*> {};

TEST_P(DirectoryBlockTest, HasTheEntriesThatLibext2fsFinds) {
  MadeVolume made{GetParam()};
  std::size_t all = 0;
  for (const char* const path : {"/", "a", "a/b", "many", "lost+found"}) {
    ext2_ino_t number = 0;
    ASSERT_EQ(ext2fs_namei(made.volume->fs(), EXT2_ROOT_INO, EXT2_ROOT_INO, path, &number), 0);
    const std::vector<std::byte> inode = made.inode(number);
    if (!has_block_map(inode)) continue;  // within the inode itself
    Names expected;
    ASSERT_EQ(ext2fs_dir_iterate2(made.volume->fs(), number, 0, nullptr, tell, &expected), 0);
    Names found;
    const BlockMap map = map_blocks(*made.volume, *made.layout, number, inode).value();
    std::vector<std::byte> bytes(made.layout->block_bytes());
    for (const BlockMap::Run& run : map.runs) {
      for (FsBlock each = run.physical; each < run.physical + run.count; ++each) {
        ASSERT_TRUE(made.view->read(made.layout->bytes_of(each), bytes).has_value());
        EXPECT_TRUE(for_each_entry(bytes, [&](const DirectoryEntry& entry) {
          if (entry.inode != 0) found.insert({entry.inode, std::string(entry.name)});
        }));
      }
    }
    EXPECT_EQ(found, expected) << path;
    all += found.size();
  }
  EXPECT_GT(all, 600u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DirectoryBlockTest, ::testing::ValuesIn(kKinds));

TEST(DirectoryBlock, WhateverItHasEntriesStayWithinIt) {
  std::mt19937_64 random(5);
  for (const std::size_t bytes : {1024u, 4096u, 65536u}) {
    for (int i = 0; i < 2000; ++i) {
      std::vector<std::byte> block(bytes);
      for (std::size_t at = 0; at + 8 <= bytes; at += 4 + random() % 64 * 4) {
        block[at] = static_cast<std::byte>(random());
        block[at + 4] = static_cast<std::byte>(random() % 32 * 4);
        block[at + 5] = static_cast<std::byte>(random() % 8 == 0 ? random() : 0);
        block[at + 6] = static_cast<std::byte>(random() % 16);
      }
      std::size_t next = 0;
      const bool good = for_each_entry(block, [&](const DirectoryEntry& entry) {
        EXPECT_EQ(entry.offset, next);
        EXPECT_LE(8 + entry.name.size(), entry.length);
        next += entry.length;
      });
      EXPECT_EQ(good, next == bytes);
      EXPECT_LE(next, bytes);
    }
  }
}

}  // namespace
}  // namespace mariner::ifsck
