#include "ifsck/directory_scan.h"

#include <gtest/gtest.h>

#include <string_view>

#include "ifsck/directory_block.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Findings = std::vector<Finding>;

class DirectoryScanTest : public ::testing::Test {
 protected:
  // Where the entry of that name stands in the first block of a directory.
  std::uint64_t entry(InodeNumber directory, std::string_view name) {
    const BlockMap map =
        map_blocks(*made_.volume, *made_.layout, directory, made_.inode(directory)).value();
    const ByteRange place = made_.layout->bytes_of(map.runs[0].physical);
    std::vector<std::byte> bytes(place.length);
    EXPECT_TRUE(made_.view->read(place, bytes).has_value());
    std::optional<std::uint64_t> at;
    for_each_entry(bytes, [&](const DirectoryEntry& each) {
      if (each.inode != 0 && each.name == name) at = place.offset + each.offset;
    });
    EXPECT_TRUE(at.has_value()) << name;
    return at.value_or(0);
  }
  Findings found() {
    Findings all = made_.census().findings;
    made_.overlay.clear();
    return all;
  }
  Findings of(Code code) {
    Findings all = found();
    std::erase_if(all, [&](const Finding& each) { return each.code != code; });
    return all;
  }

  MadeVolume made_{"-t ext2 -b 1024"};
  const InodeNumber a_ = made_.find("a");
  const InodeNumber b_ = made_.find("a/b");
  const InodeNumber c_ = made_.find("a/b/c");
  const InodeNumber file_ = made_.find("a/large");
};

TEST_F(DirectoryScanTest, EntriesNameWhatIsThere) {
  made_.put<std::uint32_t>(entry(a_, "large"), 1900);  // not in use
  EXPECT_EQ(of(Code::kEntryInode),
            (Findings{{.code = Code::kEntryInode, .inode = a_, .found = 1900}}));
  made_.put<std::uint8_t>(entry(a_, "large") + 7, EXT2_FT_FIFO);
  EXPECT_EQ(found(), (Findings{{.code = Code::kEntryType,
                                .inode = a_,
                                .expected = EXT2_FT_REG_FILE,
                                .found = EXT2_FT_FIFO}}));
  made_.put<char>(entry(a_, "large") + 8, '/');
  EXPECT_EQ(found(), (Findings{{.code = Code::kEntryName, .inode = a_}}));
}

TEST_F(DirectoryScanTest, NamesAreCounted) {
  made_.put<std::uint16_t>(file_, 26, 7);
  EXPECT_EQ(found(), (Findings{{.code = Code::kLinks, .inode = file_, .expected = 2, .found = 7}}));
  // Both names of it.
  made_.put<std::uint32_t>(entry(a_, "large"), 0);
  made_.put<std::uint32_t>(entry(c_, "linked"), 0);
  EXPECT_EQ(found(), (Findings{{.code = Code::kUnattached, .inode = file_}}));
}

TEST_F(DirectoryScanTest, DirectoriesBeginWithThemselvesAndTheirParent) {
  made_.put<std::uint32_t>(entry(b_, "."), a_);
  EXPECT_FALSE(of(Code::kDots).empty());
  made_.put<std::uint32_t>(entry(c_, ".."), a_);
  EXPECT_EQ(of(Code::kParent),
            (Findings{{.code = Code::kParent, .inode = c_, .expected = b_, .found = a_}}));
}

TEST_F(DirectoryScanTest, ACircleLeadsNowhere) {
  // "a" has no name any more but one in its own grandchild.
  made_.put<std::uint32_t>(entry(EXT2_ROOT_INO, "a"), 0);
  made_.put<std::uint32_t>(entry(c_, "linked"), a_);
  Findings unreachable = of(Code::kUnreachable);
  ASSERT_EQ(unreachable.size(), 3u);
  EXPECT_EQ(unreachable[0].inode, std::min({a_, b_, c_}));
}

TEST_F(DirectoryScanTest, ADirectoryHasOneName) {
  made_.put<std::uint32_t>(entry(c_, "linked"), b_);
  EXPECT_EQ(of(Code::kDirectoryLinked),
            (Findings{{.code = Code::kDirectoryLinked, .inode = b_, .found = 2}}));
}

TEST_F(DirectoryScanTest, BlocksThatAreNoneAndBlocksThatAreMissing) {
  const InodeNumber many = made_.find("many");
  const BlockMap map = map_blocks(*made_.volume, *made_.layout, many, made_.inode(many)).value();
  const FsBlock block = map.runs.back().physical;
  made_.put<std::uint16_t>(made_.layout->bytes_of(block).offset + 4, 3);
  const Findings none = of(Code::kDirectoryBlock);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_EQ(none[0].block, block);
  made_.put<std::uint32_t>(many, 40 + 4 * 3, 0);
  EXPECT_EQ(of(Code::kDirectoryHole), (Findings{{.code = Code::kDirectoryHole, .inode = many}}));
}

TEST_F(DirectoryScanTest, ThereIsARoot) {
  made_.put<std::uint16_t>(EXT2_ROOT_INO, 0, 0x81a4);  // a file
  EXPECT_EQ(of(Code::kRoot).size(), 1u);
}

}  // namespace
}  // namespace mariner::ifsck
