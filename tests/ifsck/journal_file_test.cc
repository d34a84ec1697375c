#include "ifsck/journal_file.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

constexpr InodeNumber kJournal = 8;

class JournalFileTest : public ::testing::TestWithParam<const char*> {
 protected:
  Result<JournalFile> open() {
    const ExtVolume volume = ExtVolume::open(*made_.view, {}).value();
    return JournalFile::open(volume, *made_.layout);
  }
  MadeVolume made_{GetParam()};
};

TEST_P(JournalFileTest, KnowsItsBlocks) {
  const auto file = open();
  ASSERT_TRUE(file.has_value()) << file.error().message;
  EXPECT_GE(file->blocks(), 1024u);
  std::set<FsBlock> all;
  for (JournalBlock i = 0; i < file->blocks(); ++i) {
    blk64_t place = 0;
    ASSERT_EQ(ext2fs_bmap2(made_.volume->fs(), kJournal, nullptr, nullptr, 0, i, nullptr, &place),
              0);
    ASSERT_EQ(file->bytes_of(i), made_.layout->bytes_of(place)) << i;
    ASSERT_EQ(file->find(place), i);
    all.insert(place);
  }
  const auto inode = made_.inode(kJournal);
  const auto map = map_blocks(*made_.volume, *made_.layout, kJournal, inode);
  for (const BlockMap::Node& each : map->nodes) {
    all.insert(each.block);
    EXPECT_FALSE(file->find(each.block).has_value());
  }
  for (FsBlock block = 0; block < made_.layout->blocks(); ++block) {
    ASSERT_EQ(file->has(block), all.contains(block)) << block;
  }
  EXPECT_FALSE(file->has(~FsBlock{0}));
  EXPECT_FALSE(file->find(~FsBlock{0}).has_value());
}

TEST_P(JournalFileTest, EndsWhereItHasAHole) {
  const auto blocks = open()->blocks();
  made_.put<std::uint32_t>(kJournal, 4, made_.layout->block_bytes() * 5 + 7);  // its size
  made_.put<std::uint32_t>(kJournal, 108, 0);
  EXPECT_EQ(open()->blocks(), 5u);
  EXPECT_LT(5u, blocks);
}

TEST_P(JournalFileTest, IsRefused) {
  const auto code = [&](std::uint64_t at, std::uint16_t value) {
    made_.put<std::uint16_t>(kJournal, at, value);
    const auto file = open();
    made_.overlay.clear();
    return file ? ErrorCode::kAborted : file.error().code;
  };
  EXPECT_EQ(code(0, 0), ErrorCode::kCorrupt);       // not in use
  EXPECT_EQ(code(0, 040600), ErrorCode::kCorrupt);  // a folder
  EXPECT_EQ(code(26, 0), ErrorCode::kCorrupt);      // no links
  EXPECT_EQ(code(4, 0), ErrorCode::kAborted);       // (it is shorter, and that is all)
  for (const auto& [number, expected] :
       {std::pair{0u, ErrorCode::kInvalidArgument}, {~0u, ErrorCode::kCorrupt}}) {
    made_.put<std::uint32_t>(1024 + 0xe0, number);
    EXPECT_EQ(open().error().code, expected);
    made_.overlay.clear();
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, JournalFileTest,
                         ::testing::Values("-t ext3 -b 1024", "-t ext4 -b 4096"));

}  // namespace
}  // namespace mariner::ifsck
