#include "ifsck/directory_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "ifsck/inode_check.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

class Listing final : public DirectoryVisitor {
 public:
  void found(const Finding& finding) override { findings.push_back(finding); }
  void dot(InodeNumber inode, bool parent) override { dots[parent] = inode; }
  void entry(InodeNumber inode, std::uint8_t type, std::string_view /*name*/) override {
    entries[inode] = type;
  }

  std::vector<Finding> findings;
  std::map<bool, InodeNumber> dots;
  std::map<InodeNumber, std::uint8_t> entries;
};

class DirectoryReaderTest : public ::testing::TestWithParam<const char*> {
 protected:
  Listing list(const char* path, bool wanted = true) {
    const InodeNumber number = made_.find(path);
    std::vector<std::byte> bytes = made_.inode(number);
    const CheckedInode inode = check_inode(*now_.context, number, bytes, true).value();
    Listing listing;
    (void)read_directory(
        *now_.context, {.number = number, .map = &inode.map, .inlined = inode.inlined},
        [&](std::uint64_t, FsBlock) { return wanted; }, listing)
        .value();
    return listing;
  }

  MadeVolume made_{GetParam()};
  MadeMoment now_{*made_.past};
};

TEST_P(DirectoryReaderTest, TellsEntries) {
  const Listing many = list("many");
  EXPECT_TRUE(many.findings.empty());
  EXPECT_EQ(many.dots.at(false), made_.find("many"));
  EXPECT_EQ(many.dots.at(true), InodeNumber{EXT2_ROOT_INO});
  EXPECT_EQ(many.entries.size(), 600u);
  const Listing inner = list("a/b");
  EXPECT_EQ(inner.entries.at(made_.find("a/b/c")), EXT2_FT_DIR);
  EXPECT_EQ(inner.entries.at(made_.find("a/b/sparse")), EXT2_FT_REG_FILE);
  EXPECT_EQ(inner.dots.at(true), made_.find("a"));
}

TEST_P(DirectoryReaderTest, DotsAreOfADirectoryAndHaveAZeroBehindTheirNames) {
  const InodeNumber number = made_.find("many");
  std::vector<std::byte> bytes = made_.inode(number);
  const CheckedInode inode = check_inode(*now_.context, number, bytes, true).value();
  const std::uint64_t block = made_.layout->bytes_of(inode.map.runs.front().physical).offset;
  const auto dots = [](const Listing& listing) {
    return std::ranges::count(listing.findings, Finding::Code::kDots, &Finding::code);
  };
  for (const std::uint64_t at : {7, 9, 19, 22}) {
    now_.overlay.clear();
    now_.put<std::uint8_t>(block + at, 3);
    const Listing listing = list("many");
    EXPECT_EQ(dots(listing), 1) << at;
    EXPECT_EQ(listing.dots.size(), 2u) << at;
  }
  now_.put<std::uint8_t>(block + 22, 0);
  now_.put<std::uint8_t>(block + 19, EXT2_FT_UNKNOWN);
  EXPECT_EQ(dots(list("many")), 0);
}

TEST_P(DirectoryReaderTest, ReadsTheBlocksThatAreWanted) {
  const Listing none = list("many", false);
  EXPECT_TRUE(none.entries.empty() && none.dots.empty() && none.findings.empty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, DirectoryReaderTest, ::testing::ValuesIn(kKinds));

TEST(DirectoryReader, SaysWhatIsWrong) {
  MadeVolume made("-t ext2 -b 1024");
  MadeMoment now(*made.past);
  const InodeNumber number = made.find("a/b");
  std::vector<std::byte> bytes = made.inode(number);
  const CheckedInode inode = check_inode(*now.context, number, bytes, true).value();
  const std::uint64_t at = now.layout->bytes_of(inode.map.runs.front().physical).offset;
  now.put<std::uint32_t>(at, 99);      // "." elsewhere
  now.put<char>(at + 24 + 8, '/');     // the first real name
  now.put<std::uint16_t>(at + 28, 9);  // its length
  Listing listing;
  (void)read_directory(
      *now.context, {.number = number, .map = &inode.map},
      [](std::uint64_t, FsBlock) { return true; }, listing)
      .value();
  ASSERT_EQ(listing.findings.size(), 2u);
  EXPECT_EQ(listing.findings[0].code, Finding::Code::kDots);
  EXPECT_EQ(listing.findings[1].code, Finding::Code::kDirectoryBlock);
}

}  // namespace
}  // namespace mariner::ifsck
