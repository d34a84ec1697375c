#include "ifsck/directory_index.h"

#include <gtest/gtest.h>

#include "ifsck/directory_block.h"
#include "tests/ifsck/made_mending.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

class DirectoryIndexTest : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] bool is_found() {
    const std::vector<Finding> found = made_.census().findings;
    return std::ranges::any_of(found,
                               [&](const Finding& each) { return each.code == Code::kInodeIndex; });
  }
  // Of a block of the directory.
  [[nodiscard]] std::uint64_t place(std::uint64_t logical) {
    return made_.layout->bytes_of(map_.runs.front().physical + logical).offset;
  }

  MadeMending made_{GetParam()};
  const InodeNumber many_ = made_.find("many");
  const BlockMap map_ = made_.map(many_);
};

TEST_P(DirectoryIndexTest, EachNameIsWhereItBelongs) {
  const ExtContext context(*made_.volume, *made_.layout);
  const DirectoryIndex index = DirectoryIndex::read(context, map_).value();
  ASSERT_TRUE(index.good());
  EXPECT_TRUE(index.is_node(0));
  std::size_t names = 0;
  std::size_t elsewhere = 0;
  for (const BlockMap::Run& run : map_.runs) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      const std::uint64_t logical = run.logical + i;
      if (index.is_node(logical)) continue;
      const auto bytes = context.read_block(run.physical + i).value();
      for_each_entry(bytes, [&](const DirectoryEntry& entry) {
        if (entry.inode == 0) return;
        ++names;
        EXPECT_TRUE(index.may_have(logical, entry.name));
        elsewhere += index.may_have(logical, std::string(entry.name) + "x") ? 0 : 1;
      });
    }
  }
  EXPECT_EQ(names, 600u);
  EXPECT_GT(elsewhere, 300u);
}

TEST_P(DirectoryIndexTest, AnIndexThatIsWrongIsFoundAndGoes) {
  made_.put<std::uint32_t>(place(0) + 32 + 8, 0x10);  // the second hash
  EXPECT_TRUE(is_found());
  (void)made_.mend();
  EXPECT_EQ(made_.find_again("many/a file with a long name, number 6"),
            made_.find("many/a file with a long name, number 6"));
}

TEST_P(DirectoryIndexTest, ABlockIsNamedOnce) {
  made_.put<std::uint32_t>(place(0) + 32 + 8 + 4, 1);
  EXPECT_TRUE(is_found());
  (void)made_.mend();
}

INSTANTIATE_TEST_SUITE_P(Kinds, DirectoryIndexTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext3 -b 1024", "-t ext4 -b 4096",
                                           "-t ext4 -b 1024 -O ^has_journal"));

}  // namespace
}  // namespace mariner::ifsck
