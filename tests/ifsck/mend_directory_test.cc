#include "ifsck/mend_directory.h"

#include <gtest/gtest.h>

#include "ifsck/directory_block.h"
#include "tests/ifsck/made_mending.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Done = Repair::Done;

class MendDirectoryTest : public ::testing::Test {
 protected:
  // Where an entry of a directory's first block stands.
  std::uint64_t entry(const char* directory, InodeNumber inode) {
    const std::uint64_t begin =
        made_.layout->bytes_of(made_.map(made_.find(directory)).runs.front().physical).offset;
    std::vector<std::byte> bytes(made_.layout->block_bytes());
    EXPECT_TRUE(made_.view->read({begin, bytes.size()}, bytes).has_value());
    std::uint64_t at = 0;
    for_each_entry(bytes, [&](const DirectoryEntry& each) {
      if (each.inode == inode) at = begin + each.offset;
    });
    EXPECT_NE(at, 0u);
    return at;
  }

  MadeMending made_{"-t ext2 -b 1024"};
  const InodeNumber b_ = made_.find("a/b");
  const InodeNumber c_ = made_.find("a/b/c");
};

TEST_F(MendDirectoryTest, ANameOfWhatIsNotInUseGoesAndTheOthersStay) {
  const InodeNumber file = made_.find("a/b/sparse");
  made_.put<std::uint16_t>(file, 26, 0);
  made_.put<std::uint32_t>(file, 20, 1'700'000'000);
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kEntryInode, Done::kEntriesMended));
  EXPECT_EQ(made_.find_again("a/b/sparse"), 0u);
  EXPECT_EQ(made_.find_again("a/b/c/linked"), made_.find("a/large"));
  EXPECT_EQ(made_.find_again("a/b/c"), c_);
}

TEST_F(MendDirectoryTest, ABlockEndsBehindItsLastGoodEntry) {
  // The length of "c" or "sparse", whichever is later.
  const std::uint64_t at = std::max(entry("a/b", c_), entry("a/b", made_.find("a/b/sparse")));
  made_.put<std::uint16_t>(at + 4, 3);
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kDirectoryBlock, Done::kBlockMade));
  EXPECT_TRUE((made_.find_again("a/b/c") == 0) != (made_.find_again("a/b/sparse") == 0));
  EXPECT_EQ(made_.find_again("a/b"), b_);
}

TEST_F(MendDirectoryTest, DotsAreMadeAnew) {
  made_.put<std::uint32_t>(entry("a/b", b_), 5);
  made_.put<std::uint32_t>(entry("a/b", made_.find("a")), made_.layout->inodes() + 9);
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kDots, Done::kDotsMade));
  EXPECT_EQ(made_.find_again("a/b/."), b_);
  EXPECT_EQ(made_.find_again("a/b/.."), made_.find("a"));
  EXPECT_EQ(made_.find_again("a/b/c"), c_);
}

TEST_F(MendDirectoryTest, KindsAreSetAndNamesBecomePossible) {
  const InodeNumber sparse = made_.find("a/b/sparse");
  made_.put<std::uint8_t>(entry("a/b", c_) + 7, EXT2_FT_SOCK);
  made_.put<char>(entry("a/b", sparse) + 10, '/');
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kEntryType, Done::kEntriesMended));
  EXPECT_TRUE(MadeMending::has(mended, Code::kEntryName, Done::kEntriesMended));
  EXPECT_EQ(made_.find_again("a/b/sp.rse"), sparse);
}

TEST_F(MendDirectoryTest, ANameThatIsThereTwiceIsThereOnce) {
  const std::uint64_t many =
      made_.layout->bytes_of(made_.map(made_.find("lost+found")).runs.front().physical).offset;
  ASSERT_EQ(ext2fs_link(made_.volume->fs(), made_.find("lost+found"), "one", made_.find("a/large"),
                        EXT2_FT_REG_FILE),
            0);
  ASSERT_EQ(ext2fs_link(made_.volume->fs(), made_.find("lost+found"), "two",
                        made_.find("a/b/sparse"), EXT2_FT_REG_FILE),
            0);
  made_.put(many + 24 + 12 + 8, std::array<char, 3>{'o', 'n', 'e'});
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kEntryName, Done::kEntriesMended));
  EXPECT_EQ(made_.find_again("lost+found/one"), made_.find("a/large"));
}

TEST_F(MendDirectoryTest, AHoleIsClosed) {
  const InodeNumber many = made_.find("many");
  const std::uint64_t blocks = made_.map(many).blocks();
  made_.put<std::uint32_t>(many, 40 + 4 * 3, 0);
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kDirectoryHole, Done::kCompacted));
  const BlockMap map = made_.map(many);
  EXPECT_EQ(map.blocks(), blocks - 1);
  EXPECT_EQ(map.runs.front().logical, 0u);
}

TEST_F(MendDirectoryTest, ADirectoryWithoutBlocksGetsOne) {
  const InodeNumber many = made_.find("many");
  made_.put(many, 40, std::array<std::byte, 60>{});
  (void)made_.mend();
  EXPECT_EQ(made_.find_again("many/.."), EXT2_ROOT_INO);
}

}  // namespace
}  // namespace mariner::ifsck
