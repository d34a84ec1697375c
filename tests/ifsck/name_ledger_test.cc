#include "ifsck/name_ledger.h"

#include <gtest/gtest.h>

#include "tests/ifsck/made_moment.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

using Code = Finding::Code;

class NameLedgerTest : public ::testing::Test {
 protected:
  NameLedgerTest() { (void)then_.census(&known_); }
  std::vector<Finding> check() {
    const MomentChange change =
        MomentChange::find(*then_.context, *now_.context, known_, now_.changed(), {}).value();
    std::vector<Finding> findings;
    RecheckMemory memory;
    (void)check_names(change, memory, [&](const Finding& each) {
      findings.push_back(each);
    }).value();
    return findings;
  }
  // Where an entry of a directory of one block stands, by its inode.
  std::uint64_t entry(const char* directory, InodeNumber inode) {
    std::vector<std::byte> bytes = made_.inode(made_.find(directory));
    const auto checked = check_inode(*now_.context, made_.find(directory), bytes, true).value();
    const std::uint64_t begin = now_.layout->bytes_of(checked.map.runs.front().physical).offset;
    for (std::uint64_t at = begin + 24; at < begin + now_.layout->block_bytes(); at += 4) {
      std::uint32_t value = 0;
      (void)now_.view.read({at, 4}, std::as_writable_bytes(std::span(&value, 1))).value();
      if (value == inode) return at;
    }
    ADD_FAILURE() << "no entry";
    return begin;
  }

  MadeVolume made_{"-t ext2 -b 1024"};
  MadeMoment then_{*made_.past};
  MadeMoment now_{*made_.past};
  Baseline known_;
};

TEST_F(NameLedgerTest, LinksThatAreNotAsManyAsNames) {
  const InodeNumber file = made_.find("a/large");
  now_.put<std::uint16_t>(now_.layout->inode_place(file).offset + 26, 3);
  EXPECT_EQ(
      check(),
      (std::vector<Finding>{{.code = Code::kLinks, .inode = file, .expected = 2, .found = 3}}));
}

TEST_F(NameLedgerTest, ADirectoryWithoutItsNameCannotBeReached) {
  const InodeNumber c = made_.find("a/b/c");
  now_.put<std::uint32_t>(entry("a/b", c), 0);
  const std::vector<Finding> found = check();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], (Finding{.code = Code::kUnattached, .inode = c}));
  EXPECT_EQ(found[1], (Finding{.code = Code::kUnreachable, .inode = c}));
}

TEST_F(NameLedgerTest, AnEntryOfWhatIsNotInUse) {
  const InodeNumber b = made_.find("a/b");
  now_.put<std::uint32_t>(entry("a/b", made_.find("a/b/sparse")), now_.layout->inodes());
  const std::vector<Finding> found = check();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0],
            (Finding{.code = Code::kEntryInode, .inode = b, .found = made_.layout->inodes()}));
  EXPECT_EQ(found[1], (Finding{.code = Code::kUnattached, .inode = made_.find("a/b/sparse")}));
}

}  // namespace
}  // namespace mariner::ifsck
