#include "uvfs/moment_tree.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "ifsck/ext_inode.h"
#include "tests/ifsck/made_volume.h"
#include "tests/uvfs/every_moment.h"
#include "tests/uvfs/made_writes.h"

namespace mariner::uvfs {
namespace {

using Found = std::map<std::string, ObjectNumber>;

void visit(MomentTree& tree, ObjectNumber number, const std::string& path, Found& found) {
  found[path] = number;
  const auto object = tree.object(number);
  ASSERT_TRUE(object.has_value()) << path;
  if (!LINUX_S_ISDIR(object->state.mode)) return;
  const auto names = tree.names(number).value();
  for (const MomentTree::Name& each : *names) {
    EXPECT_EQ(tree.find(number, each.name).value(), each.number);
    visit(tree, each.number, (path == "/" ? "" : path) + "/" + each.name, found);
  }
}

class MomentTreeTest : public ::testing::TestWithParam<const char*> {};

TEST_P(MomentTreeTest, HasAllThatIsThere) {
  MadeWrites made(GetParam());
  const auto last =
      made.put<std::uint16_t>(made.volume.find("/a/large"), ifsck::InodeAt::kMode, 0100600);
  auto past = made.past();
  const auto tree = MomentTree::open(past, last).value();
  EXPECT_EQ(tree->journal_error(), "");
  Found found;
  visit(*tree, EXT2_ROOT_INO, "/", found);
  Found wanted;
  for (const auto& [path, seen] : EveryMoment(past, {last, last}).tree(last)) {
    wanted[path] = seen.inode;
  }
  EXPECT_EQ(found, wanted);
  EXPECT_GT(found.size(), 600u);
  EXPECT_EQ(tree->object(found.at("/a/large"))->state.mode, 0100600);
  EXPECT_EQ(tree->find(EXT2_ROOT_INO, "none").value(), 0u);
  EXPECT_EQ(tree->names(found.at("/a/large")).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(tree->object(0).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(tree->object(tree->context().layout.inodes()).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(tree->object(~0u).error().code, ErrorCode::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(Kinds, MomentTreeTest, ::testing::ValuesIn(ifsck::kKinds));

TEST(MomentTreeTest, AMomentStaysWhatItWas) {
  MadeWrites made("-t ext2 -b 4096");
  const auto file = made.volume.find("/a/large");
  const auto gone = made.put<std::uint16_t>(file, ifsck::InodeAt::kLinks, 0);
  auto past = made.past();
  EXPECT_TRUE(MomentTree::open(past, {}).value()->object(file).has_value());
  EXPECT_EQ(MomentTree::open(past, gone).value()->object(file).error().code, ErrorCode::kNotFound);
}

TEST(MomentTreeTest, WithoutAFileSystemThatIsSaid) {
  MadeWrites made("-t ext2 -b 4096");
  const auto at =
      made.put<std::uint16_t>(SUPERBLOCK_OFFSET + offsetof(ext2_super_block, s_magic), 0);
  auto past = made.past();
  EXPECT_EQ(MomentTree::open(past, at).error().code, ErrorCode::kNotFound);
}

}  // namespace
}  // namespace mariner::uvfs
