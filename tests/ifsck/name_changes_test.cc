#include "ifsck/name_changes.h"

#include <gtest/gtest.h>

#include "ifsck/moment_change.h"
#include "tests/ifsck/made_history.h"

namespace mariner::ifsck {
namespace {

// Every name of a directory, by libext2fs.
std::set<DirectoryName> all_names(const ExtContext& context, InodeNumber number) {
  std::set<DirectoryName> names;
  const auto collect = [](ext2_dir_entry* entry, int, int, char*, void* to) {
    const std::string name(entry->name, static_cast<std::size_t>(ext2fs_dirent_name_len(entry)));
    if (name != "." && name != "..") {
      static_cast<std::set<DirectoryName>*>(to)->insert(
          {name, entry->inode, static_cast<std::uint8_t>(ext2fs_dirent_file_type(entry))});
    }
    return 0;
  };
  EXPECT_EQ(ext2fs_dir_iterate(context.fs, number, 0, nullptr, collect, &names), 0);
  return names;
}

class NameChangesTest : public ::testing::TestWithParam<const char*> {};

TEST_P(NameChangesTest, AreTheDifferenceOfAllNames) {
  std::size_t lost = 0;
  std::size_t gained = 0;
  for (unsigned seed = 1; seed <= 1; ++seed) {
    MadeHistory history(GetParam(), 60 + seed);
    Baseline known;
    (void)MadeMoment(*history.past, {}).census(&known);
    MadeMoment then(*history.past, {});
    MadeMoment now(*history.past, history.ends.back());
    const auto changed = history.past->changed({}, history.ends.back()).value();
    const auto change = MomentChange::find(*then.context, *now.context, known, changed, {}).value();
    for (const auto& [number, inode] : change.inodes) {
      if (!inode->then.directory && !inode->now.directory) continue;
      const auto names = find_name_changes(number, {*then.context, inode->then},
                                           {*now.context, inode->now}, change.dirty)
                             .value();
      std::set<DirectoryName> before;
      std::set<DirectoryName> after;
      if (inode->then.directory) before = all_names(*then.context, number);
      if (inode->now.directory) after = all_names(*now.context, number);
      std::vector<DirectoryName> wanted;
      std::ranges::set_difference(before, after, std::back_inserter(wanted));
      EXPECT_EQ(names.lost, wanted) << "inode " << number;
      wanted.clear();
      std::ranges::set_difference(after, before, std::back_inserter(wanted));
      EXPECT_EQ(names.gained, wanted) << "inode " << number;
      lost += names.lost.size();
      gained += names.gained.size();
    }
  }
  EXPECT_GT(lost, 0u);
  EXPECT_GT(gained, 0u);
}

INSTANTIATE_TEST_SUITE_P(Kinds, NameChangesTest, ::testing::ValuesIn(kKinds));

}  // namespace
}  // namespace mariner::ifsck
