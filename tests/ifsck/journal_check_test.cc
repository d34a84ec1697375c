#include "ifsck/journal_check.h"

#include <gtest/gtest.h>

#include "ifsck/ext_inode.h"
#include "ifsck/journal_file.h"
#include "ifsck/recheck.h"
#include "tests/ifsck/made_mending.h"
#include "tests/ifsck/made_moment.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Done = Repair::Done;

constexpr const char* kJournaled[] = {"-t ext3 -b 1024", "-t ext4 -b 4096"};

bool any(FsBlock /*block*/) { return true; }

std::uint64_t begin_of(const ExtVolume& volume, const ExtLayout& layout) {
  return JournalFile::open(volume, layout)->bytes_of(0).offset;
}

TEST(JournalCheck, NothingIsWrongWithOneThatIsGood) {
  for (const char* const kind : kKinds) {
    MadeVolume made{kind};
    const auto found = check_journal({*made.volume, *made.layout}, any);
    ASSERT_TRUE(found.has_value()) << kind << ": " << found.error().message;
    EXPECT_FALSE(found->has_value()) << kind << ": " << describe(**found);
  }
}

// Nothing is to be replayed, and nothing could be mounted.
TEST(JournalCheck, OneThatBeginsAsNoneIsFoundAndGoes) {
  for (const char* const kind : kJournaled) {
    MadeMending made{kind};
    made.put<std::uint32_t>(begin_of(*made.volume, *made.layout), 0);
    const auto found = check_journal({*made.volume, *made.layout}, any);
    ASSERT_TRUE(found.has_value() && found->has_value()) << kind;
    EXPECT_EQ((*found)->inode, InodeNumber{EXT2_JOURNAL_INO});
    const Mended mended = made.mend();
    EXPECT_TRUE(MadeMending::has(mended, Code::kInodeMap, Done::kJournalDropped)) << kind;
    EXPECT_FALSE(ext2fs_has_feature_journal(made.again->fs()->super)) << kind;
  }
}

TEST(JournalCheck, AnInodeOfZerosIsFoundAndRestored) {
  for (const char* const kind : kJournaled) {
    MadeMending made{kind};
    const BlockMap before = made.map(EXT2_JOURNAL_INO);
    made.put(EXT2_JOURNAL_INO, 0, std::array<std::byte, 128>{});
    const Mended mended = made.mend();
    EXPECT_TRUE(MadeMending::has(mended, Code::kInodeMap, Done::kRestored)) << kind;
    EXPECT_EQ(made.map(EXT2_JOURNAL_INO).runs, before.runs) << kind;
  }
}

TEST(JournalCheck, OneThatIsLargerThanItsBlocksIsFoundAndRestored) {
  for (const char* const kind : kJournaled) {
    MadeMending made{kind};
    const std::uint64_t size = ExtInode(made.inode(EXT2_JOURNAL_INO)).size();
    made.put(EXT2_JOURNAL_INO, InodeAt::kSize, static_cast<std::uint32_t>(size + (4u << 20)));
    const Mended mended = made.mend();
    EXPECT_TRUE(MadeMending::has(mended, Code::kInodeMap, Done::kRestored)) << kind;
    EXPECT_EQ(ExtInode(made.inode(EXT2_JOURNAL_INO)).size(), size) << kind;
  }
}

// The same, by what has changed alone.
TEST(JournalCheck, IsPartOfARecheck) {
  for (const char* const kind : kJournaled) {
    MadeVolume made{kind};
    MadeMoment then(*made.past);
    MadeMoment now(*made.past);
    Baseline known;
    ASSERT_EQ(then.census(&known).findings_all, 0u);
    now.put<std::uint32_t>(begin_of(*now.volume, *now.layout), 0);
    const auto check = Recheck::run(*then.context, *now.context, known, now.changed(), {});
    ASSERT_TRUE(check.has_value()) << check.error().message;
    EXPECT_EQ(check->findings, now.census().findings) << kind;
    EXPECT_FALSE(check->sound()) << kind;
  }
}

}  // namespace
}  // namespace mariner::ifsck
