#include "ifsck/directory_entries.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/ifsck/made_mending.h"

namespace mariner::ifsck {
namespace {

class DirectoryEntriesTest : public ::testing::TestWithParam<const char*> {
 protected:
  void reopen() { made_.again.emplace(ExtVolume::open(*made_.view, {}).value()); }
  MadeMending made_{GetParam()};
  const ExtContext context_{*made_.volume, *made_.layout};
  MendWork work_{context_, {.findings = {}, .cut_short = false, .directories = {}}};
};

TEST_P(DirectoryEntriesTest, EachIsVisitedOnceAndMayGo) {
  const InodeNumber a = made_.find("a");
  const InodeNumber large = made_.find("a/large");
  int dots = 0;
  int names = 0;
  const auto changed = change_entries(work_, a, [&](const PlacedEntry& entry) {
    (entry.dot != 0 ? dots : names) += 1;
    return entry.inode == large ? std::optional(Named{}) : std::nullopt;
  });
  EXPECT_TRUE(changed.value());
  EXPECT_EQ(dots, 2);
  EXPECT_EQ(names, 2);
  reopen();
  EXPECT_EQ(made_.find_again("a/large"), 0u);
  EXPECT_EQ(made_.find_again("a/b"), made_.find("a/b"));
}

TEST_P(DirectoryEntriesTest, ADirectoryBecomesLongerForItsNames) {
  const InodeNumber lost = made_.find("lost+found");
  const InodeNumber file = made_.find("a/large");
  const std::uint64_t before = made_.map(lost).blocks();
  const std::string name(200, 'n');
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(add_name(work_, lost, name + std::to_string(i), {file, EXT2_FT_REG_FILE}).value());
  }
  reopen();
  EXPECT_EQ(made_.find_again("lost+found/" + name + "199"), file);
  EXPECT_GT(made_.map(lost).blocks(), before);
}

TEST_P(DirectoryEntriesTest, ItsParentIsSet) {
  const InodeNumber c = made_.find("a/b/c");
  EXPECT_TRUE(set_parent(work_, c, EXT2_ROOT_INO).value());
  EXPECT_FALSE(set_parent(work_, c, EXT2_ROOT_INO).value());
  reopen();
  EXPECT_EQ(made_.find_again("a/b/c/.."), EXT2_ROOT_INO);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DirectoryEntriesTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext3 -b 1024",
                                           "-t ext4 -b 4096"));

TEST(DirectoryEntries, WithinAnInodeTheyChangeToo) {
  MadeMending made{"-t ext4 -b 4096 -O inline_data,64bit,quota -I 256"};
  const ExtContext context(*made.volume, *made.layout);
  MendWork work(context, {.findings = {}, .cut_short = false, .directories = {}});
  const InodeNumber c = made.find("a/b/c");
  ASSERT_TRUE(work.checked(c).value().inlined);
  EXPECT_TRUE(set_parent(work, c, EXT2_ROOT_INO).value());
  made.again.emplace(ExtVolume::open(*made.view, {}).value());
  EXPECT_EQ(made.find_again("a/b/c/.."), EXT2_ROOT_INO);
}

}  // namespace
}  // namespace mariner::ifsck
