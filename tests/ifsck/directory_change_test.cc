#include "ifsck/directory_change.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ifsck/directory_entries.h"
#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

class DirectoryChangeTest : public ::testing::TestWithParam<const char*> {
 protected:
  DirectoryChangeTest() { (void)then_.census(&known_); }
  // Entries of a directory that are to name something else, or nothing.
  void rename(InodeNumber directory, const ChangeEntry& visit) {
    const ExtVolume volume = ExtVolume::open(now_.view, {.writable = true}).value();
    const ExtContext context(volume, *now_.layout);
    MendWork work(context, {.findings = {}, .cut_short = false, .directories = {}});
    EXPECT_TRUE(change_entries(work, directory, visit).value());
    now_.open();
  }
  MomentChange change() {
    return MomentChange::find(*then_.context, *now_.context, known_, now_.changed(), {}).value();
  }

  MadeVolume made_{GetParam()};
  MadeMoment then_{*made_.past};
  MadeMoment now_{*made_.past};
  Baseline known_;
  const InodeNumber many_ = made_.find("many");
};

TEST_P(DirectoryChangeTest, TellsWhatCameAndWhatWent) {
  const InodeNumber large = made_.find("a/large");
  std::vector<InodeNumber> gone;
  rename(many_, [&](const PlacedEntry& entry) -> std::optional<Named> {
    if (entry.dot != 0 || entry.inode % 7 != 0) return {};
    gone.push_back(entry.inode);
    return entry.inode % 2 == 0 ? Named{large, EXT2_FT_REG_FILE} : Named{};
  });
  const MomentChange all = change();
  const auto found =
      DirectoryChange::find(all, many_, all.inodes.at(many_), [](const Finding&) {}).value();
  std::vector<InodeNumber> then;
  for (const auto& [inode, type] : found.then) then.push_back(inode);
  std::ranges::sort(then);
  std::ranges::sort(gone);
  EXPECT_EQ(then, gone);
  EXPECT_TRUE(std::ranges::all_of(found.now, [&](const DirectoryChange::Entry& each) {
    return each == DirectoryChange::Entry{large, EXT2_FT_REG_FILE};
  }));
  EXPECT_EQ(found.now.size(), static_cast<std::size_t>(std::ranges::count_if(
                                  gone, [](InodeNumber each) { return each % 2 == 0; })));
}

TEST_P(DirectoryChangeTest, IsGoodUntilABlockOrAnInodeOfItChanges) {
  InodeNumber kept = 0;
  bool first = true;
  rename(many_, [&](const PlacedEntry& entry) -> std::optional<Named> {
    if (entry.dot != 0) return {};
    if (!first) {
      if (kept == 0) kept = entry.inode;
      return {};
    }
    first = false;
    return Named{};
  });
  const MomentChange all = change();
  const auto found =
      DirectoryChange::find(all, many_, all.inodes.at(many_), [](const Finding&) {}).value();
  const FsBlock block = found.of->now.map.runs.front().physical;
  EXPECT_TRUE(found.is_still(all, many_, {}, {}));
  EXPECT_TRUE(found.is_still(all, many_, {}, {made_.find("a")}));
  EXPECT_FALSE(found.is_still(all, many_, {}, {kept}));
  EXPECT_FALSE(found.is_still(all, many_, BlockRanges({{block, block + 1}}), {}));
  const MomentChange again = change();  // it may be another one
  EXPECT_FALSE(found.is_still(again, many_, {}, {}));
}

INSTANTIATE_TEST_SUITE_P(Kinds, DirectoryChangeTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext4 -b 4096"));

}  // namespace
}  // namespace mariner::ifsck
