#include "uvfs/parts/disk_parts.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/uvfs/parts/made_disk.h"
#include "uvfs/parts/part_past.h"
#include "uvfs/safe_name.h"

namespace mariner::uvfs {
namespace {

using Table = DiskParts::Table;
using Lines = std::vector<std::string>;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kBytes = 64 * kMiB;

// "p1 83 Linux 1048576+2097152 ext".
Lines lines(const DiskParts& parts) {
  Lines all;
  for (const DiskPart& each : parts.parts) {
    std::string line = each.name + " " + each.type;
    if (!each.label.empty()) line += " '" + each.label + "'";
    std::uint64_t bytes = 0;
    for (const ByteRange& extent : each.extents) {
      line += " " + std::to_string(extent.offset) + "+" + std::to_string(extent.length);
      bytes += extent.length;
    }
    EXPECT_EQ(each.bytes, bytes);
    EXPECT_TRUE(is_safe_name(each.name));
    if (!contents_name(each.contents).empty())
      line += " " + std::string(contents_name(each.contents));
    all.push_back(line);
  }
  return all;
}
Lines left_out(const DiskParts& parts) {
  Lines all;
  for (const auto& each : parts.left_out) all.push_back(each.name + ": " + each.why);
  return all;
}
DiskParts read(MadeDisk& disk, const DiskPartsOptions& options = {}) {
  auto parts = read_parts(disk, {}, options);
  EXPECT_TRUE(parts.has_value());
  return *parts;
}

TEST(DiskPartsTest, AVolumeWithoutATableIsOnePart) {
  MadeDisk disk(kBytes);
  auto parts = read(disk);
  EXPECT_EQ(parts.table, Table::kNone);
  EXPECT_EQ(lines(parts), Lines{"whole  0+67108864"});
  disk.put_ext(0);
  disk.put(510, std::uint16_t{0xaa55});  // with a boot loader
  EXPECT_EQ(lines(read(disk)), Lines{"whole  0+67108864 ext"});
}

TEST(DiskPartsTest, ASmallVolumeIsOnePart) {
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{kBlockBytes}}) {
    MadeDisk disk(bytes);
    EXPECT_EQ(read(disk).parts.at(0).bytes, bytes);
  }
}

TEST(DiskPartsTest, BootSectorsOfFileSystemsAreNoTables) {
  MadeDisk disk(kBytes);
  put_mbr(disk, 0, {{0x0c, 0, 131072}});
  disk.put_text(3, "NTFS    ");
  EXPECT_EQ(lines(read(disk)), Lines{"whole  0+67108864 NTFS"});
}

TEST(DiskPartsTest, AFatWhoseTableSaysThatItIsAPartitionIsNone) {
  if (!MadeDisk::made_by("command -v mkfs.fat", kBlockBytes).second) GTEST_SKIP() << "mkfs.fat";
  auto [disk, made] = MadeDisk::made_by("mkfs.fat --mbr=y disk", kBytes);
  ASSERT_TRUE(made);
  EXPECT_EQ(lines(read(disk)), Lines{"whole  0+67108864 FAT"});
  // A boot loader keeps what FAT had said before there was a table.
  put_mbr(disk, 0, {{0x83, 2048, 2048}});
  EXPECT_EQ(lines(read(disk)), Lines{"p1 83 Linux 1048576+1048576"});
}

TEST(DiskPartsTest, PartitionsOfAnMbr) {
  for (const std::uint32_t sector_bytes : {512u, 4096u}) {
    MadeDisk disk(kBytes);
    const std::uint64_t first = 63 * std::uint64_t{sector_bytes};
    put_mbr(disk, 0, {{0x83, 63, 1000}, {0x05, 2000, 3000}});
    put_mbr(disk, std::uint64_t{2000} * sector_bytes, {{0x07, 10, 100}});
    disk.put_ext(first);
    const auto parts = read(disk);
    EXPECT_EQ(parts.table, Table::kMbr);
    EXPECT_EQ(parts.sector_bytes, sector_bytes);
    EXPECT_EQ(lines(parts), (Lines{"p1 83 Linux " + std::to_string(first) + "+" +
                                       std::to_string(1000 * sector_bytes) + " ext",
                                   "p5 07 NTFS or exFAT " + std::to_string(2010 * sector_bytes) +
                                       "+" + std::to_string(100 * sector_bytes)}));
    EXPECT_EQ(read(disk, {.sector_bytes = 512}).parts.at(0).extents.at(0).offset, 63U * 512);
    EXPECT_EQ(read(disk, {.sector_bytes = 4096}).parts.at(0).extents.at(0).offset, 63U * 4096);
  }
}

TEST(DiskPartsTest, PartitionsOfAGpt) {
  for (const std::uint32_t sector_bytes : {512u, 4096u}) {
    MadeDisk disk(kBytes);
    put_gpt(disk, {{256, 511, u"boot"}, {}, {1024, 2047, u"root"}}, {.sector_bytes = sector_bytes});
    const auto parts = read(disk);
    EXPECT_EQ(parts.table, Table::kGpt);
    EXPECT_EQ(parts.sector_bytes, sector_bytes);
    EXPECT_FALSE(parts.from_backup);
    EXPECT_EQ(parts.parts.at(0).label, "boot");
    EXPECT_EQ(parts.find("p3")->extents,
              (std::vector<ByteRange>{{1024 * std::uint64_t{sector_bytes}, 1024 * sector_bytes}}));
    EXPECT_EQ(parts.find("p2"), nullptr);
  }
}

TEST(DiskPartsTest, OfADamagedGptTheBackupCounts) {
  MadeDisk disk(kBytes);
  put_gpt(disk, {{256, 511, u"boot"}});
  disk.put(512 + 56, std::uint64_t{0});
  disk.put(512 + 16, std::uint64_t{0});
  const auto parts = read(disk);
  EXPECT_TRUE(parts.from_backup);
  EXPECT_EQ(parts.notes.size(), 2U);
  EXPECT_EQ(lines(parts), Lines{"p1 Linux 'boot' 131072+131072"});
  // The protective MBR says where the disk ended before it grew.
  disk.bytes.resize(2 * kBytes);
  EXPECT_EQ(lines(read(disk)), Lines{"p1 Linux 'boot' 131072+131072"});
}

TEST(DiskPartsTest, ABackupWithoutAProtectiveMbrIsOfAnotherTime) {
  MadeDisk disk(kBytes);
  put_gpt(disk, {{256, 511, u"boot"}});
  std::ranges::fill(std::span(disk.bytes).first(4096), std::byte{0});
  disk.put_ext(0);
  EXPECT_EQ(lines(read(disk)), Lines{"whole  0+67108864 ext"});
}

TEST(DiskPartsTest, WhatIsNotWithinTheVolumeIsLeftOutAndSaid) {
  MadeDisk disk(kBytes);
  put_mbr(disk, 0,
          {{0x83, 131'000, 73}, {0x83, 0, 10}, {0x83, 200'000, 1}, {0x83, 100, 0xffffffff}});
  auto parts = read(disk);
  EXPECT_TRUE(parts.parts.empty());
  EXPECT_EQ(left_out(parts),
            (Lines{"p1: it has 73 sectors from 131000 on, and the volume has 131072 (of 512 bytes)",
                   "p2: it begins in sector 0, where the table is",
                   "p3: it has 1 sectors from 200000 on, and the volume has 131072 (of 512 bytes)",
                   "p4: it has 4294967295 sectors from 100 on, and the volume has 131072 (of 512 "
                   "bytes)"}));
  put_mbr(disk, 0, {{0x83, 131'000, 72}});
  EXPECT_EQ(read(disk).parts.size(), 1U);
  put_gpt(disk, {{1, 511, u""},
                 {600, 599, u""},
                 {700, ~std::uint64_t{0}, u""},
                 {~std::uint64_t{0} - 5, ~std::uint64_t{0} - 1, u""}});
  EXPECT_EQ(left_out(read(disk)).size(), 4U);
}

TEST(DiskPartsTest, OfThoseThatOverlapTheFirstOneCounts) {
  MadeDisk disk(kBytes);
  put_mbr(disk, 0, {{0x83, 1000, 100}, {0x83, 1099, 1}, {0x83, 1100, 10}, {0x83, 900, 101}});
  const auto parts = read(disk);
  EXPECT_EQ(lines(parts), (Lines{"p1 83 Linux 512000+51200", "p3 83 Linux 563200+5120"}));
  EXPECT_EQ(left_out(parts), (Lines{"p2: it overlaps p1", "p4: it overlaps p1"}));
}

TEST(DiskPartsTest, ManyPartitionsAreNotAllRead) {
  MadeDisk disk(kBytes);
  std::vector<MadeGpt::Partition> many;
  for (std::uint64_t i = 0; i < 300; ++i) many.push_back({1000 + i, 1000 + i, u""});
  put_gpt(disk, many, {.entries = 300});
  const auto parts = read(disk);
  EXPECT_EQ(parts.parts.size(), 256U);
  EXPECT_EQ(parts.notes, Lines{"the table has 300 partitions: more than 256 are not read"});
}

TEST(DiskPartsTest, LogicalVolumesOfAWholeVolume) {
  MadeDisk disk(kBytes);
  put_member(disk, {},
             group_text({{"root", "segment_count = 1 " + linear_segment(1, 0, 2, "pv0", 1)},
                         {"gone", "segment_count = 1 " + linear_segment(1, 0, 2, "pv1", 1)}}));
  disk.put_ext(2 * kMiB);
  const auto parts = read(disk);
  EXPECT_EQ(parts.table, Table::kLvm);
  EXPECT_EQ(lines(parts), Lines{"vg-root linear 2097152+2097152 ext"});
  EXPECT_EQ(parts.left_out.size(), 1U);
}

TEST(DiskPartsTest, LogicalVolumesOverPartitions) {
  MadeDisk disk(kBytes);
  put_mbr(disk, 0, {{0x83, 2048, 2048}, {0x8e, 4096, 32768}, {0x8e, 65536, 32768}});
  const std::string text =
      group_text({{"root", "segment_count = 2 " + linear_segment(1, 0, 2, "pv1", 1) +
                               linear_segment(2, 2, 1, "pv0", 0)}});
  put_member(disk, {.offset = 4096 * 512}, text);
  put_member(disk, {.offset = 65536 * 512, .id = std::string(32, 'B')}, text);
  disk.put_ext(34 * kMiB);
  EXPECT_EQ(lines(read(disk)),
            (Lines{"p1 83 Linux 1048576+1048576", "p2 8e Linux LVM 2097152+16777216 LVM2 member",
                   "p3 8e Linux LVM 33554432+16777216 LVM2 member",
                   "vg-root linear 35651584+2097152 3145728+1048576 ext"}));
}

TEST(DiskPartsTest, ATableHidesALabelThatWasThereBefore) {
  MadeDisk disk(kBytes);
  put_member(disk, {},
             group_text({{"old", "segment_count = 1 " + linear_segment(1, 0, 2, "pv0", 1)}}));
  put_mbr(disk, 0, {{0x83, 2048, 2048}});
  const auto parts = read(disk);
  EXPECT_EQ(parts.table, Table::kMbr);
  EXPECT_EQ(lines(parts), Lines{"p1 83 Linux 1048576+1048576"});
}

TEST(DiskPartsTest, AFewQuestionsAreEnough) {
  MadeDisk disk(kBytes);
  put_gpt(disk, {{2048, 4095, u"a"}, {4096, 8191, u"b"}, {8192, 9000, u"c"}});
  (void)read(disk);
  EXPECT_LE(disk.reads, 3U);
  put_mbr(disk, 0, {{0x83, 2048, 4096}, {0x83, 8192, 4096}, {0x05, 16384, 4096}, {}});
  disk.reads = 0;
  (void)read(disk);
  EXPECT_LE(disk.reads, 4U);
}

TEST(DiskPartsTest, ErrorsOfThePastAreToldOn) {
  class Failing final : public ifsck::Past {
   public:
    [[nodiscard]] std::uint64_t size_bytes() const override { return kBytes; }
    Result<Reach> reach() override { return Reach{}; }
    Result<SequenceNumber> moment_of(VersionTime) override { return SequenceNumber{}; }
    Result<VersionTime> time_of(SequenceNumber) override { return VersionTime{}; }
    Result<void> read(std::span<const Question>, std::span<std::byte>) override {
      return Error{ErrorCode::kOutsideWindow, "too old"};
    }
    Result<std::vector<BlockRange>> changed(SequenceNumber, SequenceNumber) override { return {}; }
    Result<std::vector<Version>> versions(std::span<const Lbn>, SequenceNumber,
                                          SequenceNumber) override {
      return {};
    }
  };
  Failing failing;
  EXPECT_EQ(read_parts(failing, {}).error().code, ErrorCode::kOutsideWindow);
  MadeDisk disk(kBytes);
  EXPECT_EQ(read_parts(disk, {}, {.sector_bytes = 1024}).error().code, ErrorCode::kInvalidArgument);
}

TEST(DiskPartsTest, KindsHaveNames) {
  EXPECT_EQ(table_name(Table::kNone), "none");
  EXPECT_EQ(table_name(Table::kMbr), "MBR");
  EXPECT_EQ(table_name(Table::kGpt), "GPT");
  EXPECT_EQ(table_name(Table::kLvm), "LVM2");
}

}  // namespace
}  // namespace mariner::uvfs
