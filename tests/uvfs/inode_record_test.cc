#include "uvfs/inode_record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "ifsck/ext_inode.h"
#include "tests/ifsck/made_volume.h"

namespace mariner::uvfs {
namespace {

using ifsck::InodeAt;
using ifsck::MadeVolume;

class InodeRecordTest : public ::testing::TestWithParam<const char*> {};

TEST_P(InodeRecordTest, SaysWhatLibext2fsSays) {
  MadeVolume made(GetParam());
  int seen = 0;
  for (ifsck::InodeNumber number = 1; number <= made.layout->inodes(); ++number) {
    ext2_inode_large wanted{};
    ASSERT_EQ(ext2fs_read_inode_full(made.volume->fs(), number,
                                     reinterpret_cast<ext2_inode*>(&wanted), sizeof wanted),
              0);
    const ObjectState state = state_of(made.inode(number));
    EXPECT_EQ(state.exists, wanted.i_links_count > 0 && (wanted.i_mode & LINUX_S_IFMT) != 0);
    if (!state.exists) continue;
    ++seen;
    EXPECT_EQ(state.mode, wanted.i_mode);
    EXPECT_EQ(state.user, inode_uid(wanted));
    EXPECT_EQ(state.group, inode_gid(wanted));
    EXPECT_EQ(state.size, EXT2_I_SIZE(&wanted));
    EXPECT_EQ(state.links, wanted.i_links_count);
    EXPECT_EQ(state.generation, wanted.i_generation);
    EXPECT_EQ(state.modified.seconds, wanted.i_mtime);
    EXPECT_EQ(state.changed.seconds, wanted.i_ctime);
  }
  EXPECT_GT(seen, 600);
}

TEST_P(InodeRecordTest, OnlyWhatChangesByItselfIsOverlooked) {
  MadeVolume made(GetParam());
  const auto inode = made.inode(made.find("/a/large"));
  const std::size_t fields = 128 + ifsck::ExtInode(inode).extra_bytes();
  for (std::size_t at = 0; at < inode.size(); ++at) {
    auto other = inode;
    other[at] ^= std::byte{1};
    const bool restless = (at >= 8 && at < 12) || (at >= 36 && at < 40) || at == 124 || at == 125 ||
                          (at < fields && (at == 130 || at == 131)) ||
                          (at < fields && ((at >= 140 && at < 144) || (at >= 152 && at < 156)));
    // (What says how many fields there are decides what is one.)
    if (at == InodeAt::kExtra || at == InodeAt::kExtra + 1) continue;
    EXPECT_EQ(is_same_inode(inode, other), restless) << at;
  }
  EXPECT_TRUE(is_same_inode(inode, inode));
}

INSTANTIATE_TEST_SUITE_P(Kinds, InodeRecordTest, ::testing::ValuesIn(ifsck::kKinds));

TEST(InodeRecordTest, TimesGoBeyond2038AndBefore1970) {
  std::vector<std::byte> inode(256);
  ifsck::put_field<std::uint16_t>(inode, InodeAt::kExtra, 32);
  ifsck::put_field<std::uint32_t>(inode, 16, 0xffffffff);
  EXPECT_EQ(state_of(inode).modified, (FileTime{-1, 0}));
  ifsck::put_field<std::uint32_t>(inode, 136, (999'999'999u << 2) | 1);
  EXPECT_EQ(state_of(inode).modified, (FileTime{0xffffffff, 999'999'999}));
  ifsck::put_field<std::uint16_t>(inode, InodeAt::kExtra, 8);  // ends before
  EXPECT_EQ(state_of(inode).modified, (FileTime{-1, 0}));
  EXPECT_FALSE(state_of(inode).made.has_value());
}

TEST(InodeRecordTest, DevicesHaveTheirNumbersInOldFormAndNew) {
  std::vector<std::byte> inode(128);
  ifsck::put_field<std::uint16_t>(inode, InodeAt::kMode, LINUX_S_IFBLK);
  ifsck::put_field<std::uint32_t>(inode, InodeAt::kMap, 8 << 8 | 17);
  EXPECT_EQ(state_of(inode).device, 8u << 20 | 17u);
  ifsck::put_field<std::uint32_t>(inode, InodeAt::kMap, 0);
  ifsck::put_field<std::uint32_t>(inode, InodeAt::kMap + 4, (0x123 << 12 & 0xfff00000) | 259 << 8);
  EXPECT_EQ(state_of(inode).device >> 20, 259u);
}

TEST(InodeRecordTest, ShortLinksAndInlineDataAreInTheInode) {
  MadeVolume ext2("-t ext2 -b 4096");
  const auto link = ext2.inode(ext2.find("/"));
  EXPECT_FALSE(has_inline_contents(link));
  MadeVolume made("-t ext4 -b 4096 -O inline_data,64bit,quota -I 256");
  ext2_ino_t number = 0;
  ASSERT_EQ(ext2fs_lookup(made.volume->fs(), EXT2_ROOT_INO, "short", 5, nullptr, &number), 0);
  const auto inode = made.inode(number);
  EXPECT_TRUE(has_inline_contents(inode));
  const auto contents = inline_contents(inode);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(contents.data()), contents.size()),
            "a/large");
}

TEST(InodeRecordTest, AttributesAreNamedInFull) {
  std::vector<std::byte> inode(256);
  ifsck::put_field<std::uint16_t>(inode, InodeAt::kExtra, 32);
  ifsck::put_field<std::uint32_t>(inode, 160, 0xEA020000);
  ifsck::put_field<std::uint8_t>(inode, 164, 4);    // bytes of the name
  ifsck::put_field<std::uint8_t>(inode, 165, 1);    // user.
  ifsck::put_field<std::uint16_t>(inode, 166, 80);  // the value, from 164 on
  ifsck::put_field<std::uint32_t>(inode, 172, 3);   // its bytes
  std::memcpy(inode.data() + 180, "note", 4);
  std::memcpy(inode.data() + 244, "yes", 3);
  const auto all = attributes_of_inode(inode);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].name, "user.note");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(all[0].value.data()), 3), "yes");
  ifsck::put_field<std::uint32_t>(inode, 172, 13);  // beyond the inode's end
  EXPECT_TRUE(attributes_of_inode(inode).empty());
  ifsck::put_field<std::uint8_t>(inode, 164, 255);
  EXPECT_TRUE(attributes_of_inode(inode).empty());
}

TEST(InodeRecordTest, NoBytesOfAttributesDoHarm) {
  std::vector<std::byte> block(1024);
  unsigned state = 1;
  for (int round = 0; round < 20'000; ++round) {
    for (std::byte& each : block) {
      state = state * 1664525 + 1013904223;
      each = (state >> 24) % 3 == 0 ? static_cast<std::byte>(state >> 16) : std::byte{};
    }
    store_le<std::uint32_t>(block.data(), 0xEA020000);
    for (const ExtendedAttribute& each : attributes_of_block(block)) {
      ASSERT_LE(each.value.size(), block.size());
      if (each.value.empty()) continue;
      ASSERT_GE(each.value.data(), block.data());
      ASSERT_LE(each.value.data() + each.value.size(), block.data() + block.size());
    }
  }
}

}  // namespace
}  // namespace mariner::uvfs
