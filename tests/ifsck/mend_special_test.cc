#include "ifsck/mend_special.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_mending.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;
using Done = Repair::Done;

constexpr std::uint64_t kSpecialMap = 40;

TEST(MendSpecial, TheJournalIsRestoredFromTheSuperblock) {
  for (const char* const kind : {"-t ext3 -b 1024", "-t ext4 -b 4096"}) {
    MadeMending made{kind};
    const BlockMap before = made.map(EXT2_JOURNAL_INO);
    made.put(EXT2_JOURNAL_INO, kSpecialMap, std::array<std::byte, 60>{});
    const Mended mended = made.mend();
    EXPECT_EQ(made.map(EXT2_JOURNAL_INO).runs, before.runs);
    EXPECT_TRUE(ext2fs_has_feature_journal(made.again->fs()->super));
  }
}

TEST(MendSpecial, AJournalWithAHoleGoes) {
  MadeMending made{"-t ext3 -b 1024"};
  const BlockMap before = made.map(EXT2_JOURNAL_INO);
  made.put(made.layout->bytes_of(before.nodes.front().block).offset, std::array<std::byte, 1024>{});
  const Mended mended = made.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kInodeBlocks, Done::kJournalDropped));
}

TEST(MendSpecial, AJournalThatCannotBeRestoredGoes) {
  MadeMending made{"-t ext3 -b 1024"};
  const BlockMap before = made.map(EXT2_JOURNAL_INO);
  made.put(made.layout->bytes_of(before.nodes.front().block).offset, 0x7fffffffu);
  const Mended mended = made.mend();
  EXPECT_TRUE(MadeMending::has(mended, Code::kInodeMap, Done::kJournalDropped));
  EXPECT_FALSE(ext2fs_has_feature_journal(made.again->fs()->super));
}

}  // namespace
}  // namespace mariner::ifsck
