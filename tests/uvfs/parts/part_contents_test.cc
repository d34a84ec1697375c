#include "uvfs/parts/part_contents.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/uvfs/parts/made_disk.h"

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kBytes = 128 << 10;

PartContents contents_of(const MadeDisk& disk) {
  return guess_contents(std::span(disk.bytes).first(kContentsBytes));
}

TEST(PartContentsTest, EachIsToldByItsMagic) {
  struct Case {
    std::uint64_t at;
    std::string_view magic;
    PartContents contents;
  };
  const std::string_view ext("\x53\xef", 2);
  for (const Case& each : std::vector<Case>{{1080, ext, PartContents::kExt},
                                            {4086, "SWAPSPACE2", PartContents::kSwap},
                                            {4086, "SWAP-SPACE", PartContents::kSwap},
                                            {65526, "SWAPSPACE2", PartContents::kSwap},
                                            {0, "XFSB", PartContents::kXfs},
                                            {65600, "_BHRfS_M", PartContents::kBtrfs},
                                            {0, "LUKS\xba\xbe", PartContents::kLuks}}) {
    MadeDisk disk(kBytes);
    EXPECT_EQ(contents_of(disk), PartContents::kNothing);
    disk.put_text(each.at, each.magic);
    EXPECT_EQ(contents_of(disk), each.contents) << each.magic;
    disk.put(each.at, std::uint8_t{0});
    EXPECT_EQ(contents_of(disk), PartContents::kNothing) << each.magic;
  }
}

TEST(PartContentsTest, BootSectorsHaveTheirSignature) {
  for (const auto& [magic, contents] :
       {std::pair{"NTFS    ", PartContents::kNtfs}, {"EXFAT   ", PartContents::kExfat}}) {
    MadeDisk disk(kBytes);
    disk.put_text(3, magic);
    EXPECT_EQ(contents_of(disk), PartContents::kNothing);
    disk.put(510, std::uint16_t{0xaa55});
    EXPECT_EQ(contents_of(disk), contents);
  }
}

TEST(PartContentsTest, APhysicalVolumeHasAGoodLabel) {
  MadeDisk disk(2 << 20);
  put_member(disk, {}, "");
  EXPECT_EQ(contents_of(disk), PartContents::kLvmMember);
  disk.bytes[512 + 40] ^= std::byte{1};
  EXPECT_EQ(contents_of(disk), PartContents::kNothing);
}

TEST(PartContentsTest, WhatMkfsMakesIsKnown) {
  for (const auto& [command, contents] : {std::pair{"mke2fs -q -t ext4 disk", PartContents::kExt},
                                          {"mke2fs -q -t ext2 -b 1024 disk", PartContents::kExt},
                                          {"mkswap disk", PartContents::kSwap},
                                          {"mkfs.fat disk", PartContents::kFat},
                                          {"mkfs.fat -F 32 disk", PartContents::kFat},
                                          {"mkntfs -F -Q disk", PartContents::kNtfs},
                                          {"mkfs.exfat disk", PartContents::kExfat}}) {
    const std::string program = std::string(command).substr(0, std::string(command).find(' '));
    if (!MadeDisk::made_by("command -v " + program, kBlockBytes).second) continue;  // not here
    const auto [disk, made] = MadeDisk::made_by(command, 64 << 20);
    ASSERT_TRUE(made) << command;
    EXPECT_EQ(contents_of(disk), contents) << command;
  }
}

TEST(PartContentsTest, ASmallPartIsLookedAtAsFarAsItGoes) {
  MadeDisk disk(kBytes);
  disk.put_ext(16384 + 512);
  ifsck::Overlay none;
  ifsck::View view(disk, {}, none);
  for (const std::uint64_t length : {0, 1, 511, 512, 1081, 2047, 2048, 5000, 100'000}) {
    std::vector<ByteRange> extents;
    if (length > 0) extents.push_back({16384 + 512, length});
    const auto map = PartMap::of(extents, kBytes).value();
    EXPECT_EQ(guess_contents(view, map).value(),
              length < 2048 ? PartContents::kNothing : PartContents::kExt)
        << length;
  }
}

TEST(PartContentsTest, WhatIsReadBeforeIsAllThatIsLookedAt) {
  MadeDisk disk(kBytes);
  disk.put_ext(512 + 20480);
  ifsck::Overlay none;
  ifsck::View view(disk, {}, none);
  const std::vector<ByteRange> extents{{512 + 20480, 2048}, {28672 + 100, 90'000}};
  const auto map = PartMap::of(extents, kBytes).value();
  std::vector<Lbn> blocks;
  add_contents_blocks(map, blocks);
  ASSERT_TRUE(view.prefetch(blocks).has_value());
  EXPECT_EQ(disk.reads, 1U);
  EXPECT_EQ(guess_contents(view, map).value(), PartContents::kExt);
  EXPECT_EQ(disk.reads, 1U);
}

TEST(PartContentsTest, EachHasAName) {
  EXPECT_EQ(contents_name(PartContents::kNothing), "");
  EXPECT_EQ(contents_name(PartContents::kExt), "ext");
  EXPECT_EQ(contents_name(PartContents::kLvmMember), "LVM2 member");
  EXPECT_EQ(contents_name(PartContents::kLuks), "LUKS");
}

}  // namespace
}  // namespace mariner::uvfs
