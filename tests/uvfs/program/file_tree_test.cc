#include "uvfs/program/file_tree.h"

#include <ext2fs/ext2_fs.h>
#include <gmock/gmock.h>

#include <set>

#include "tests/uvfs/program/program_files.h"
#include "uvfs/ext_history.h"

namespace mariner::uvfs {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

class FileTreeTest : public ProgramFiles {
 protected:
  FileTree read(SequenceNumber at, bool one_level = false) {
    past_.emplace(ifsck::TracePast::open(image_, folder_.file("trace")).value());
    history_ = ExtHistory::open(*past_, {at, at}).value();
    return FileTree::read(*history_, {.root = EXT2_ROOT_INO, .at = at, .one_level = one_level})
        .value();
  }
  static std::set<std::string> paths(const FileTree& tree) {
    std::set<std::string> all;
    for (std::size_t i = 0; i < tree.entries.size(); ++i) all.insert(tree.path_of(i));
    return all;
  }

  std::optional<ifsck::TracePast> past_;
  std::unique_ptr<ExtHistory> history_;
};

TEST_F(FileTreeTest, ParentsComeBeforeChildren) {
  const SequenceNumber made = change("mkdir d\n");
  const FileTree tree = read(made);
  EXPECT_GT(tree.entries.size(), 600u);
  EXPECT_TRUE(tree.skipped.empty());
  for (std::size_t i = 1; i < tree.entries.size(); ++i) EXPECT_LT(tree.entries[i].parent, i);
  EXPECT_TRUE(paths(tree).contains("a/b/c/linked"));
  EXPECT_EQ(tree.path_of(0), "");
  EXPECT_EQ(paths(read(made, true)),
            (std::set<std::string>{"", "a", "d", "long", "lost+found", "many", "short"}));
  EXPECT_FALSE(paths(read({}, true)).contains("d"));
}

TEST_F(FileTreeTest, WhatIsNoNameIsLeftOut) {
  file("one", "one\n");
  (void)change(
      "mkdir d\nwrite {}/one d/evil-name-1\nwrite {}/one d/evil-name-2\n"
      "write {}/one d/good\nmkdir d/loop\n");
  (void)forge("evil-name-1", "../../../xx");
  const SequenceNumber at = forge("evil-name-2", std::string("evil\0name-2", 11));
  const FileTree tree = read(at);
  EXPECT_THAT(tree.skipped, SizeIs(2));
  EXPECT_THAT(tree.skipped[0], HasSubstr("is not the name of a file"));
  const auto all = paths(tree);
  EXPECT_TRUE(all.contains("d/good"));
  for (const std::string& each : all) EXPECT_EQ(each.find(".."), std::string::npos);
  EXPECT_FALSE(is_safe_name(""));
  EXPECT_FALSE(is_safe_name("."));
  EXPECT_FALSE(is_safe_name(".."));
  EXPECT_TRUE(is_safe_name("..."));
}

TEST_F(FileTreeTest, ADirectoryWhoseNamesCannotBeReadIsSaid) {
  file("one", "one\n");
  const SequenceNumber sound =
      change("mkdir d\nwrite {}/one d/first\nwrite {}/one d/evil-name-1\nwrite {}/one d/last\n");
  EXPECT_FALSE(read(sound).damaged);
  // Of an entry that is followed by another: its name is longer than it is itself.
  const std::string name = "evil-name-1";
  const FileTree tree = read(forge("\x0b\x01" + name, "\xff\x01" + name));
  EXPECT_TRUE(tree.damaged);
  ASSERT_THAT(tree.skipped, SizeIs(1));
  EXPECT_EQ(tree.skipped[0], "d is damaged: names in it may be missing");
  EXPECT_TRUE(paths(tree).contains("d/first"));
  EXPECT_FALSE(paths(tree).contains("d/last"));
}

TEST_F(FileTreeTest, ADirectoryWithinItselfEnds) {
  const SequenceNumber at = change("mkdir d\nmkdir d/e\nln d d/e/again\n");
  const FileTree tree = read(at);
  EXPECT_TRUE(paths(tree).contains("d/e"));
  EXPECT_FALSE(paths(tree).contains("d/e/again"));
  ASSERT_THAT(tree.skipped, SizeIs(1));
  EXPECT_THAT(tree.skipped[0], HasSubstr("d/e/again is left out: this directory has another name"));
}

}  // namespace
}  // namespace mariner::uvfs
