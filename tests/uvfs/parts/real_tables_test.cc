// Tables that people's tools have made.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/ifsck/made_volume.h"
#include "tests/support/source_folder.h"
#include "tests/uvfs/parts/made_disk.h"
#include "uvfs/moment_tree.h"
#include "uvfs/parts/disk_parts.h"
#include "uvfs/parts/part_past.h"

namespace mariner::uvfs {
namespace {

using Table = DiskParts::Table;
using Lines = std::vector<std::string>;

constexpr std::uint64_t kBytes = 64 << 20;

bool is_here(const std::string& program) {
  return MadeDisk::made_by("command -v " + program, kBlockBytes).second;
}
MadeDisk made(const std::string& command) {
  auto [disk, done] = MadeDisk::made_by(command, kBytes);
  EXPECT_TRUE(done) << command;
  return std::move(disk);
}
// In sectors: "p1 83 Linux 2048+4096".
Lines lines(const DiskParts& parts) {
  Lines all;
  for (const DiskPart& each : parts.parts) {
    std::string line = each.name + " " + each.type;
    if (!each.label.empty()) line += " '" + each.label + "'";
    for (const ByteRange& extent : each.extents) {
      line += " " + std::to_string(extent.offset / 512) + "+" + std::to_string(extent.length / 512);
    }
    all.push_back(line);
  }
  return all;
}

TEST(RealTablesTest, OfSfdiskWithLogicalPartitions) {
  if (!is_here("sfdisk")) GTEST_SKIP() << "sfdisk is not here";
  MadeDisk disk = made(
      "printf 'label: dos\\nstart=63, size=2000, type=c\\nstart=4096, size=8192, type=83\\n"
      "start=16384, size=65536, type=5\\nstart=18432, size=2048, type=82\\n"
      "start=22528, size=4096, type=83\\nstart=28672, size=100, type=7\\n' | sfdisk disk");
  const auto parts = read_parts(disk, {}).value();
  EXPECT_EQ(parts.table, Table::kMbr);
  EXPECT_EQ(lines(parts),
            (Lines{"p1 0c FAT32 63+2000", "p2 83 Linux 4096+8192", "p5 82 Linux swap 18432+2048",
                   "p6 83 Linux 22528+4096", "p7 07 NTFS or exFAT 28672+100"}));
  EXPECT_TRUE(parts.left_out.empty());
  EXPECT_TRUE(parts.notes.empty());
}

TEST(RealTablesTest, OfSfdiskWithGuids) {
  if (!is_here("sfdisk")) GTEST_SKIP() << "sfdisk is not here";
  MadeDisk disk = made(
      "printf 'label: gpt\\nstart=2048, size=4096, type=U, name=\"boot\"\\n"
      "start=8192, size=2048, type=L\\nstart=16384, size=2048, type=V, "
      "name=\"Gr\\303\\266\\303\\237e\"\\n'"
      " | sfdisk disk && sfdisk --delete disk 2");
  const auto parts = read_parts(disk, {}).value();
  EXPECT_EQ(parts.table, Table::kGpt);
  EXPECT_EQ(lines(parts),
            (Lines{"p1 EFI system 'boot' 2048+4096", "p3 Linux LVM 'Gr\u00f6\u00dfe' 16384+2048"}));
}

TEST(RealTablesTest, OfSgdiskWhenItsPrimaryTableIsDamaged) {
  if (!is_here("sgdisk")) GTEST_SKIP() << "sgdisk is not here";
  MadeDisk disk = made("sgdisk -n 1:2048:6143 -t 1:8300 -c 1:data -n 4:8192:10239 -t 4:0700 disk");
  const Lines expected{"p1 Linux 'data' 2048+4096", "p4 Microsoft basic data 8192+2048"};
  auto parts = read_parts(disk, {}).value();
  EXPECT_EQ(parts.table, Table::kGpt);
  EXPECT_EQ(lines(parts), expected);
  EXPECT_TRUE(parts.notes.empty());
  for (const std::uint64_t at : {512 + 20, 1024 + 128}) {  // the header, an entry
    MadeDisk damaged = disk;
    damaged.bytes[at] ^= std::byte{1};
    parts = read_parts(damaged, {}).value();
    EXPECT_TRUE(parts.from_backup);
    EXPECT_EQ(lines(parts), expected);
  }
}

// On a disk with sectors of 4096 bytes.
TEST(RealTablesTest, OfSfdiskOnLargeSectors) {
  const std::string begin = "loop=$(losetup -f --show -b 4096 disk) && { ";
  const std::string end = " done=$?; losetup -d $loop; test $done = 0; }";
  if (!is_here("sfdisk") || !MadeDisk::made_by(begin + "true;" + end, kBytes).second) {
    GTEST_SKIP() << "no sfdisk, or no loop devices";
  }
  MadeDisk mbr = made(begin +
                      "printf 'label: dos\\nstart=256, size=1024, type=83\\n"
                      "start=2048, size=4096, type=5\\nstart=2304, size=512, type=83\\n'"
                      " | sfdisk --no-reread --no-tell-kernel $loop;" +
                      end);
  const Lines of_mbr{"p1 83 Linux 2048+8192", "p5 83 Linux 18432+4096"};
  EXPECT_EQ(lines(read_parts(mbr, {}, {.sector_bytes = 4096}).value()), of_mbr);
  EXPECT_EQ(lines(read_parts(mbr, {}).value()), of_mbr);  // for the table of the logical one
  MadeDisk gpt = made(begin +
                      "printf 'label: gpt\\nstart=256, size=1024, type=L\\nstart=2048, type=L\\n'"
                      " | sfdisk --no-reread --no-tell-kernel $loop;" +
                      end);
  const Lines of_gpt{"p1 Linux 2048+8192", "p2 Linux 16384+112640"};
  EXPECT_EQ(lines(read_parts(gpt, {}).value()), of_gpt);
  gpt.bytes[4096 + 20] ^= std::byte{1};
  const auto parts = read_parts(gpt, {}).value();
  EXPECT_TRUE(parts.from_backup);
  EXPECT_EQ(parts.sector_bytes, 4096U);
  EXPECT_EQ(lines(parts), of_gpt);
}

// golden/make_lvm2.sh made it; the newest text goes round the end of its ring.
TEST(RealTablesTest, OfLvm2InPartitions) {
  MadeDisk disk(kBytes);
  std::ifstream file(test::source_path("tests/uvfs/parts/golden/lvm2.sectors"), std::ios::binary);
  std::string record(8 + 512, '\0');
  while (file.read(record.data(), static_cast<std::streamsize>(record.size()))) {
    disk.put_text(load_le<std::uint64_t>(record.data()) * 512, std::string_view(record).substr(8));
  }
  auto parts = read_parts(disk, {}).value();
  EXPECT_EQ(parts.table, Table::kGpt);
  const Lines partitions{"p1 Linux 'boot' 2048+8192", "p2 Linux LVM 10304+49152",
                         "p3 Linux LVM 59456+49152"};
  const Lines volumes{"my--vg-root linear 10432+10240 26816+8192", "my--vg-swap linear 20672+6144",
                      "my--vg-da--ta linear 59584+34816"};
  Lines all = partitions;
  all.insert(all.end(), volumes.begin(), volumes.end());
  EXPECT_EQ(lines(parts), all);
  ASSERT_EQ(parts.left_out.size(), 1U);
  EXPECT_EQ(parts.left_out[0].name, "my--vg-striped");
  EXPECT_EQ(parts.left_out[0].why, "its segment1 has 2 stripes");
  EXPECT_TRUE(parts.notes.empty());
  // A text that is damaged, behind the ring's beginning: the other physical volume has it, too.
  disk.bytes[(10304 + 8 + 1) * 512 + 100] ^= std::byte{1};
  parts = read_parts(disk, {}).value();
  EXPECT_EQ(lines(parts), all);
  EXPECT_EQ(parts.notes.size(), 2U);
  disk.bytes[(59456 + 8 + 1) * 512 + 100] ^= std::byte{1};
  EXPECT_EQ(lines(read_parts(disk, {}).value()), partitions);
}

TEST(RealTablesTest, AFileSystemInAPartitionIsTheSameAsByItself) {
  const auto& image = ifsck::MadeImage::of("-t ext4 -b 4096");
  auto alone = ifsck::TracePast::open(image.file("image"), "").value();
  const auto expected = MomentTree::open(alone, {}).value();
  const auto names = expected->names(EXT2_ROOT_INO).value();
  ASSERT_GT(names->size(), 3U);
  std::vector<std::byte> bytes(ifsck::MadeImage::kBytes);
  std::ifstream(image.file("image"), std::ios::binary)
      .read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  for (const std::uint32_t first : {63u, 2048u}) {
    MadeDisk disk(kBytes);
    put_mbr(disk, 0, {{0x83, first, ifsck::MadeImage::kBytes / 512}});
    disk.put_bytes(std::uint64_t{first} * 512, bytes);
    const auto parts = read_parts(disk, {}).value();
    ASSERT_EQ(parts.parts.size(), 1U);
    EXPECT_EQ(parts.parts[0].contents, PartContents::kExt);
    auto part = PartPast::open(disk, parts.parts[0].extents).value();
    const auto tree = MomentTree::open(part, {}).value();
    const auto found = tree->names(EXT2_ROOT_INO).value();
    ASSERT_EQ(found->size(), names->size());
    for (std::size_t i = 0; i < names->size(); ++i) {
      EXPECT_EQ((*found)[i].name, (*names)[i].name);
      EXPECT_EQ((*found)[i].number, (*names)[i].number);
    }
  }
}

}  // namespace
}  // namespace mariner::uvfs
