#include "ifsck/mend_orphans.h"

#include <gtest/gtest.h>

#include "ifsck/ext_inode.h"
#include "tests/ifsck/made_mending.h"

namespace mariner::ifsck {
namespace {

constexpr const char* kWithFile = "-t ext4 -b 4096 -O orphan_file";

struct MadeOrphans : MadeMending {
  using MadeMending::MadeMending;

  template <typename T>
  void set(InodeNumber number, std::size_t at, T value) {
    std::vector<std::byte> bytes = inode(number);
    put_field<T>(bytes, at, value);
    put_inode(number, bytes);
  }
  void put_inode(InodeNumber number, std::span<std::byte> bytes) {
    (void)ext2fs_inode_csum_set(volume->fs(), number,
                                reinterpret_cast<ext2_inode_large*>(bytes.data()));
    ASSERT_TRUE(view->write(layout->inode_place(number), bytes).has_value());
  }
  void put_superblock() {
    ext2fs_superblock_csum_set(volume->fs(), volume->fs()->super);
    ASSERT_TRUE(
        view->write({1024, 1024}, std::as_bytes(std::span(volume->fs()->super, 1))).has_value());
  }
  // In the list; of them all, the last is its beginning.
  void add(InodeNumber number) {
    set<std::uint32_t>(number, InodeAt::kDeleted, volume->fs()->super->s_last_orphan);
    volume->fs()->super->s_last_orphan = number;
    put_superblock();
  }
  void put_in_file(std::span<const InodeNumber> numbers) {
    const InodeNumber file = volume->fs()->super->s_orphan_file_inum;
    const FsBlock block = map(file).runs.front().physical;
    std::vector<std::byte> bytes(layout->block_bytes());
    ASSERT_TRUE(view->read(layout->bytes_of(block), bytes).has_value());
    for (std::size_t i = 0; i < numbers.size(); ++i) store_le(bytes.data() + 8 * i, numbers[i]);
    ASSERT_EQ(ext2fs_orphan_file_block_csum_set(volume->fs(), file, block,
                                                reinterpret_cast<char*>(bytes.data())),
              0);
    ASSERT_TRUE(view->write(layout->bytes_of(block), bytes).has_value());
    ext2fs_set_feature_orphan_present(volume->fs()->super);
    put_superblock();
  }
  // Deleted while it is open.
  InodeNumber remove_open(int file) {
    const std::string name = "a file with a long name, number " + std::to_string(file);
    const InodeNumber number = find(("many/" + name).c_str());
    remove("many", name.c_str());
    set<std::uint16_t>(number, InodeAt::kLinks, 0);
    return number;
  }
  // Its blocks are still there.
  InodeNumber cut(const char* path, std::uint64_t size) {
    const InodeNumber number = find(path);
    std::vector<std::byte> bytes = inode(number);
    put_size(bytes, size);
    put_inode(number, bytes);
    return number;
  }
};

class MendOrphansTest : public ::testing::TestWithParam<const char*> {
 protected:
  MadeOrphans made_{GetParam()};
};

TEST_P(MendOrphansTest, WhatWasDeletedOrCutOffIsNoMore) {
  const std::string before = MadeMending::content(*made_.volume, made_.find("a/large"));
  const InodeNumber deleted[] = {made_.remove_open(3), made_.remove_open(8)};
  const InodeNumber large = made_.cut("a/large", 3'000'001);
  const InodeNumber sparse = made_.cut("a/b/sparse", 0);
  for (const InodeNumber each : {deleted[0], large, deleted[1], sparse}) made_.add(each);
  const auto orphans = release_orphans(*made_.view, true);
  ASSERT_TRUE(orphans.has_value()) << orphans.error().message;
  EXPECT_EQ(orphans->released, 2u);
  EXPECT_EQ(orphans->cut, 2u);

  const Mended mended = made_.mend();
  for (const Repair& each : mended.repairs) {
    EXPECT_TRUE(is_derived(each.finding.code)) << describe(each);
  }
  EXPECT_EQ(made_.content(large), before.substr(0, 3'000'001));
  EXPECT_EQ(made_.content(sparse), "");
  EXPECT_EQ(made_.map(sparse).blocks(), 0u);
  for (const InodeNumber each : deleted) EXPECT_EQ(ExtInode(made_.inode(each)).links(), 0u);
  EXPECT_EQ(made_.again->fs()->super->s_last_orphan, 0u);
  EXPECT_EQ(release_orphans(*made_.view, true)->released, 0u);
}

TEST_P(MendOrphansTest, AListThatCannotBeEnds) {
  const InodeNumber deleted[] = {made_.remove_open(3), made_.remove_open(8)};
  made_.add(deleted[0]);
  made_.add(EXT2_RESIZE_INO);
  made_.add(deleted[1]);
  EXPECT_EQ(release_orphans(*made_.view, true)->released, 1u);
  (void)made_.mend();

  MadeOrphans circle{GetParam()};
  const InodeNumber one = circle.remove_open(3);
  circle.add(one);
  circle.set<std::uint32_t>(one, InodeAt::kDeleted, one);
  EXPECT_EQ(release_orphans(*circle.view, true)->released, 1u);
  (void)circle.mend();
}

TEST_P(MendOrphansTest, WhereThereAreErrorsNoneIsBelieved) {
  const InodeNumber deleted = made_.remove_open(3);
  made_.add(deleted);
  made_.volume->fs()->super->s_state |= EXT2_ERROR_FS;
  made_.put_superblock();
  EXPECT_EQ(release_orphans(*made_.view, true)->released, 0u);
  EXPECT_EQ(ExtVolume::open(*made_.view, {})->fs()->super->s_last_orphan, 0u);
  (void)made_.mend();
}

INSTANTIATE_TEST_SUITE_P(Kinds, MendOrphansTest,
                         ::testing::Values("-t ext3 -b 1024", "-t ext4 -b 4096",
                                           "-t ext4 -b 1024 -O ^metadata_csum"));

TEST(MendOrphans, AFileNamesThem) {
  MadeOrphans made{kWithFile};
  EXPECT_TRUE(Census::take(*made.volume, *made.layout, {})->findings.empty())
      << "it has no name, and needs none";
  const InodeNumber orphans[] = {made.remove_open(3), made.cut("a/large", 10'000),
                                 made.remove_open(9)};
  made.put_in_file(orphans);
  const auto done = release_orphans(*made.view, true);
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_EQ(done->released, 2u);
  EXPECT_EQ(done->cut, 1u);
  (void)made.mend();
  EXPECT_EQ(made.content(orphans[1]).size(), 10'000u);
  EXPECT_FALSE(ext2fs_has_feature_orphan_present(made.again->fs()->super));
}

TEST(MendOrphans, AFileThatIsDamagedNamesNone) {
  for (const bool torn : {false, true}) {
    MadeOrphans made{kWithFile};
    const InodeNumber orphans[] = {made.remove_open(3), made.remove_open(9)};
    made.put_in_file(orphans);
    const InodeNumber file = made.volume->fs()->super->s_orphan_file_inum;
    const std::uint64_t at = made.layout->bytes_of(made.map(file).runs.front().physical).offset;
    if (torn) {
      made.put<std::uint32_t>(at + made.layout->block_bytes() - 8, 17);
    } else {
      made.put<std::uint32_t>(at + 40, 17);
    }
    EXPECT_EQ(release_orphans(*made.view, true)->released, 0u);
    (void)made.mend();
    EXPECT_FALSE(ext2fs_has_feature_orphan_present(made.again->fs()->super));
  }
}

}  // namespace
}  // namespace mariner::ifsck
