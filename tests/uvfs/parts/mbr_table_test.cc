#include "uvfs/parts/mbr_table.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/uvfs/parts/made_disk.h"

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kBytes = 8 << 20;

class MbrTableTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  using Seen = std::vector<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>>;

  void put(std::uint64_t sector, const std::vector<MadeEntry>& entries) {
    put_mbr(disk_, sector * GetParam(), entries);
  }
  PartitionTable read() {
    ifsck::Overlay none;
    ifsck::View view(disk_, {}, none);
    const auto mbr = Mbr::parse(disk_.bytes);
    EXPECT_TRUE(mbr.has_value());
    return read_mbr(view, *mbr, GetParam()).value();
  }
  // Number, first sector, sectors.
  static Seen seen(const PartitionTable& table) {
    Seen all;
    for (const TablePartition& each : table.partitions) {
      all.emplace_back(each.number, each.first, each.sectors);
    }
    return all;
  }

  MadeDisk disk_{kBytes};
};

INSTANTIATE_TEST_SUITE_P(SectorBytes, MbrTableTest, ::testing::Values(512, 4096));

TEST_P(MbrTableTest, PrimaryOnesHaveTheNumbersOfTheirEntries) {
  put(0, {{0x83, 63, 100}, {}, {0x8e, 200, 50}, {0x99, 300, 1}});
  const auto table = read();
  EXPECT_EQ(seen(table), (Seen{{1, 63, 100}, {3, 200, 50}, {4, 300, 1}}));
  EXPECT_EQ(table.partitions[0].type, "83 Linux");
  EXPECT_EQ(table.partitions[1].type, "8e Linux LVM");
  EXPECT_EQ(table.partitions[2].type, "99");
  EXPECT_TRUE(table.notes.empty());
}

TEST_P(MbrTableTest, LogicalOnesCountFromFiveAlongTheChain) {
  put(0, {{0x05, 500, 1000}, {0x83, 63, 100}});
  put(500, {{0x83, 10, 90}, {0x05, 200, 100}});  // relative to this one; to the first
  put(700, {{0x82, 5, 60}, {0x0f, 100, 100}});
  put(600, {{0x83, 1, 9}});
  const auto table = read();
  EXPECT_EQ(seen(table), (Seen{{2, 63, 100}, {5, 510, 90}, {6, 705, 60}, {7, 601, 9}}));
  EXPECT_TRUE(table.notes.empty());
}

TEST_P(MbrTableTest, ATableWithoutAPartitionTakesNoNumber) {
  put(0, {{0x05, 500, 1000}});
  put(500, {{}, {0x05, 200, 100}});
  put(700, {{0x83, 5, 60}, {}});
  EXPECT_EQ(seen(read()), (Seen{{5, 705, 60}}));
}

TEST_P(MbrTableTest, TheLastTwoEntriesOfAChainAreBelievedWithinIt) {
  put(0, {{0x05, 500, 1000}});
  put(500, {{0x83, 10, 10}, {}, {0x83, 30, 10}, {0x83, 30, 971}});
  EXPECT_EQ(seen(read()), (Seen{{5, 510, 10}, {6, 530, 10}}));
}

TEST_P(MbrTableTest, SeveralChainsFollowEachOther) {
  put(0, {{0x05, 500, 100}, {0x85, 700, 100}});
  put(500, {{0x83, 10, 10}});
  put(700, {{0x83, 20, 10}});
  EXPECT_EQ(seen(read()), (Seen{{5, 510, 10}, {6, 720, 10}}));
}

TEST_P(MbrTableTest, ALoopEndsWhereItBegan) {
  put(0, {{0x05, 500, 1000}});
  put(500, {{0x83, 10, 90}, {0x05, 200, 100}});
  put(700, {{0x83, 5, 60}, {0x05, 0, 100}});
  const auto table = read();
  EXPECT_EQ(seen(table), (Seen{{5, 510, 90}, {6, 705, 60}}));
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_NE(table.notes[0].find("sector 500 is part of a loop"), std::string::npos);
}

TEST_P(MbrTableTest, ATableThatExtendsItselfIsALoop) {
  put(0, {{0x05, 0, 1000}, {0x83, 63, 100}});
  const auto table = read();
  EXPECT_EQ(table.notes.size(), 1U);
  EXPECT_LE(table.partitions.size(), 2U);
}

TEST_P(MbrTableTest, AChainIsFollowedSoFar) {
  if (GetParam() == 4096) return;  // for more the disk is too small
  put(0, {{0x05, 500, 10'000}});
  for (std::uint32_t i = 0; i < 2000; ++i) {
    put(500 + i, {{}, {0x05, i + 1, 1}});
  }
  const auto table = read();
  ASSERT_EQ(table.notes.size(), 1U);
  EXPECT_NE(table.notes[0].find("sector 1524 is one too many"), std::string::npos);
}

TEST_P(MbrTableTest, AChainEndsBehindTheVolumeOrWithoutASignature) {
  put(0, {{0x05, 500, 1000}});
  EXPECT_NE(read().notes.at(0).find("sector 500 has no signature"), std::string::npos);
  put(500, {{0x83, 10, 90}, {0x05, 0xfffffff0, 100}});
  const auto table = read();
  EXPECT_EQ(seen(table), (Seen{{5, 510, 90}}));
  EXPECT_NE(table.notes.at(0).find("is behind the volume's end"), std::string::npos);
}

TEST_P(MbrTableTest, SectorsAreAsLargeAsWhatBeginsInThemSays) {
  const auto guessed = [this] {
    ifsck::Overlay none;
    ifsck::View view(disk_, {}, none);
    return guess_sector_bytes(view, *Mbr::parse(disk_.bytes)).value();
  };
  put(0, {{0x83, 64, 100}, {0x05, 500, 1000}, {0x83, 0xffffffff, 0xffffffff}});
  EXPECT_EQ(guessed(), 512U);  // nothing says that it is not so
  put(500, {{0x83, 10, 90}});
  EXPECT_EQ(guessed(), GetParam());
  disk_.put_ext(std::uint64_t{64} * GetParam());
  EXPECT_EQ(guessed(), GetParam());
}

TEST(MbrTest, ASignatureMakesNoTable) {
  MadeDisk disk(kBlockBytes);
  EXPECT_FALSE(Mbr::parse(disk.bytes).has_value());
  put_mbr(disk, 0, {});
  EXPECT_FALSE(Mbr::parse(disk.bytes)->is_table());  // a boot loader
  put_mbr(disk, 0, {{0, 1, 100}});
  EXPECT_FALSE(Mbr::parse(disk.bytes)->is_table());
  put_mbr(disk, 0, {{0x83, 1, 100}});
  EXPECT_TRUE(Mbr::parse(disk.bytes)->is_table());
  EXPECT_EQ(Mbr::parse(disk.bytes)->protective(), nullptr);
  disk.put(446 + 48, std::uint8_t{'B'});  // of a message
  EXPECT_FALSE(Mbr::parse(disk.bytes)->is_table());
  put_mbr(disk, 0, {{0x83, 1, 100}, {0xee, 1, 100}});
  EXPECT_NE(Mbr::parse(disk.bytes)->protective(), nullptr);
}

}  // namespace
}  // namespace mariner::uvfs
