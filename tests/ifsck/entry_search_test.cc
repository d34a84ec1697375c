#include "ifsck/entry_search.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/ifsck/made_mending.h"

namespace mariner::ifsck {
namespace {

using Numbers = std::vector<InodeNumber>;

class EntrySearchTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Who may be a directory is told by somebody; null: inode tables are read.
  Numbers search(EntrySearch::Wanted wanted, std::function<Numbers()> directories = {}) {
    MendWork work(context_,
                  {.findings = {}, .cut_short = false, .directories = std::move(directories)});
    return EntrySearch::run(work, std::move(wanted)).value();
  }
  Numbers everybody() {
    Numbers all;
    for (InodeNumber each = 1; each <= made_.layout->inodes(); ++each) all.push_back(each);
    return all;
  }

  MadeMending made_{GetParam()};
  const ExtContext context_{*made_.volume, *made_.layout};
  const InodeNumber a_ = made_.find("a");
  const InodeNumber b_ = made_.find("a/b");
  const InodeNumber c_ = made_.find("a/b/c");
  const InodeNumber large_ = made_.find("a/large");  // it has a second name in c
};

TEST_P(EntrySearchTest, FindsAllNamesWhereverTheyStand) {
  for (const auto& directories :
       {std::function<Numbers()>(), std::function<Numbers()>([this] { return everybody(); })}) {
    EXPECT_EQ(search({{large_, 2}}, directories), (Numbers{a_, c_}));
    EXPECT_EQ(search({{c_, 1}, {b_, 1}}, directories), (Numbers{a_, b_}));
  }
}

TEST_P(EntrySearchTest, MoreThanThereAreMakesItLookEverywhere) {
  EXPECT_EQ(search({{large_, 9}}), (Numbers{a_, c_}));
  EXPECT_EQ(search({{0, 1}, {made_.layout->inodes() + 5, 1}, {b_, 1}}), (Numbers{a_}));
}

TEST_P(EntrySearchTest, LooksNoFurtherThanItMust) {
  Numbers possible = everybody();
  std::erase_if(possible, [this](InodeNumber each) { return each > a_ && each < b_; });
  const auto read = [&](EntrySearch::Wanted wanted) {
    Overlay overlay;
    View view(*made_.past, {}, overlay);
    const ExtVolume volume = ExtVolume::open(view, {.writable = true}).value();
    const ExtContext context(volume, *made_.layout);
    MendWork work(context, {.findings = {}, .cut_short = false, .directories = [&possible] {
                              return possible;
                            }});
    const std::uint64_t before = view.counters().blocks_read;
    EXPECT_FALSE(EntrySearch::run(work, std::move(wanted)).value().empty());
    return view.counters().blocks_read - before;
  };
  EXPECT_LT(read({{b_, 1}}), read({{b_, 9}}));
}

// Who is likely somewhere is looked at first, and nobody is missed because he was not.
TEST_P(EntrySearchTest, FindsAllNamesWhoeverIsLikely) {
  std::size_t asked = 0;
  bool all_asked = false;
  const auto look = [&](EntrySearch::Wanted wanted, Numbers likely) {
    MendWork work(context_, {.findings = {},
                             .cut_short = false,
                             .directories =
                                 [&] {
                                   all_asked = true;
                                   return everybody();
                                 },
                             .directories_in =
                                 [&](GroupNumber first, GroupNumber end) {
                                   EXPECT_LT(first, end);
                                   ++asked;
                                   return likely;
                                 }});
    return EntrySearch::run(work, std::move(wanted)).value();
  };
  EXPECT_EQ(look({{large_, 2}}, {c_, a_, c_}), (Numbers{a_, c_}));
  EXPECT_FALSE(all_asked);
  EXPECT_EQ(look({{large_, 2}}, {a_}), (Numbers{a_, c_}));
  // (Directories may be within their inodes: then inode tables are read.)
  const bool told = ext2fs_has_feature_inline_data(context_.fs->super) == 0;
  EXPECT_EQ(all_asked, told);
  EXPECT_EQ(look({{c_, 1}, {b_, 1}}, {}), (Numbers{a_, b_}));
  EXPECT_EQ(asked > 0, told);
}

// How many blocks are read until a name in `a` is found, of an inode so many groups behind it.
std::uint64_t blocks_for_name_away(std::uint64_t groups) {
  MadeMending made{"-t ext2 -b 1024"};
  const InodeNumber a = made.find("a");
  const auto inode = static_cast<InodeNumber>(a + groups * made.layout->inodes_per_group());
  EXPECT_LE(inode, made.layout->inodes());
  EXPECT_EQ(ext2fs_link(made.volume->fs(), a, "far", inode, EXT2_FT_REG_FILE), 0);
  const ExtContext context(*made.volume, *made.layout);
  MendWork work(context, {.findings = {}, .cut_short = false, .directories = [&made] {
                            Numbers all(made.layout->inodes());
                            std::iota(all.begin(), all.end(), InodeNumber{1});
                            return all;
                          }});
  const std::uint64_t before = made.view->counters().blocks_read;
  EXPECT_EQ(EntrySearch::run(work, {{inode, 1}}).value(), Numbers{a});
  return made.view->counters().blocks_read - before;
}

TEST(EntrySearchDistanceTest, TakesTheLongerTheFartherAwayTheNameIs) {
  const std::uint64_t here = blocks_for_name_away(0);
  const std::uint64_t next = blocks_for_name_away(1);
  const std::uint64_t far = blocks_for_name_away(4);
  EXPECT_LT(here, next);
  EXPECT_LT(next, far);
}

INSTANTIATE_TEST_SUITE_P(Kinds, EntrySearchTest, ::testing::ValuesIn(kKinds));

}  // namespace
}  // namespace mariner::ifsck
