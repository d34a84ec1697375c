#include "ifsck/mend_tree.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_mending.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Done = Repair::Done;

class MendTreeTest : public ::testing::TestWithParam<const char*> {
 protected:
  static std::string lost(InodeNumber number) { return "lost+found/#" + std::to_string(number); }
  void link(InodeNumber directory, const char* name, InodeNumber number) {
    ASSERT_EQ(ext2fs_link(made_.volume->fs(), directory, name, number, EXT2_FT_DIR), 0);
  }
  MadeMending made_{GetParam()};
};

TEST_P(MendTreeTest, AFileWithoutANameIsInLostAndFound) {
  const InodeNumber file = made_.find("many/a file with a long name, number 6");
  const std::string before = MadeMending::content(*made_.volume, file);
  made_.remove("many", "a file with a long name, number 6");
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kUnattached, Done::kAttached));
  EXPECT_EQ(made_.find_again(lost(file)), file);
  EXPECT_EQ(made_.content(file), before);
}

TEST_P(MendTreeTest, AnEmptyOneIsGone) {
  const InodeNumber file = made_.find("many/a file with a long name, number 7");
  made_.remove("many", "a file with a long name, number 7");
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kUnattached, Done::kReleased));
  EXPECT_EQ(made_.find_again(lost(file)), 0u);
}

TEST_P(MendTreeTest, ADirectoryWithoutANameKeepsWhatItHas) {
  const InodeNumber b = made_.find("a/b");
  const InodeNumber c = made_.find("a/b/c");
  made_.remove("a", "b");
  (void)made_.mend();
  EXPECT_EQ(made_.find_again(lost(b)), b);
  EXPECT_EQ(made_.find_again(lost(b) + "/.."), made_.find_again("lost+found"));
  EXPECT_EQ(made_.find_again(lost(b) + "/c"), c);
}

TEST_P(MendTreeTest, ADirectoryWithTwoNamesKeepsTheOneThatItSays) {
  const InodeNumber c = made_.find("a/b/c");
  link(made_.find("a"), "other", c);
  const Mended mended = made_.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kDirectoryLinked, Done::kNameRemoved));
  EXPECT_EQ(made_.find_again("a/b/c"), c);
  EXPECT_EQ(made_.find_again("a/other"), 0u);
}

TEST_P(MendTreeTest, ACircleIsCut) {
  const InodeNumber a = made_.find("a");
  const InodeNumber c = made_.find("a/b/c");
  made_.remove("/", "a");
  link(c, "a", a);
  (void)made_.mend();
  EXPECT_EQ(made_.find_again(lost(a)), a);
  EXPECT_EQ(made_.find_again(lost(a) + "/b/c"), c);
}

TEST_P(MendTreeTest, LostAndFoundIsMadeIfThereIsNone) {
  const InodeNumber file = made_.find("many/a file with a long name, number 6");
  made_.remove("/", "lost+found");
  made_.remove("many", "a file with a long name, number 6");
  (void)made_.mend();
  EXPECT_EQ(made_.find_again(lost(file)), file);
}

INSTANTIATE_TEST_SUITE_P(Kinds, MendTreeTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext4 -b 4096",
                                           "-t ext4 -b 1024 -O ^has_journal"));

}  // namespace
}  // namespace mariner::ifsck
