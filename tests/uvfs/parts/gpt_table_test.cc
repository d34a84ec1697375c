#include "uvfs/parts/gpt_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/uvfs/parts/made_disk.h"

namespace mariner::uvfs {
namespace {

constexpr std::uint64_t kBytes = 8 << 20;
constexpr std::uint32_t kEither[] = {512, 4096};

PartitionTable read(MadeDisk& disk, const GptQuestion& question = {.sector_bytes = kEither}) {
  ifsck::Overlay none;
  ifsck::View view(disk, {}, none);
  return read_gpt(view, question).value();
}

class GptTableTest : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  void SetUp() override {
    put_gpt(disk_, {{100, 199, u"root"}, {300, 300, u"Gr\u00f6\u00dfe \U0001f4be"}}, gpt());
  }
  [[nodiscard]] static MadeGpt gpt() { return {.sector_bytes = GetParam()}; }
  [[nodiscard]] std::uint64_t last() const { return kBytes / GetParam() - 1; }
  [[nodiscard]] std::uint64_t offset_of(std::uint64_t sector) const { return sector * GetParam(); }
  void spoil(std::uint64_t offset) { disk_.bytes[offset] ^= std::byte{0x40}; }
  // As it was made.
  static void expect_all(const PartitionTable& table) {
    EXPECT_EQ(table.sector_bytes, GetParam());
    ASSERT_EQ(table.partitions.size(), 2U);
    EXPECT_EQ(table.partitions[0].number, 1U);
    EXPECT_EQ(table.partitions[0].first, 100U);
    EXPECT_EQ(table.partitions[0].sectors, 100U);
    EXPECT_EQ(table.partitions[0].label, "root");
    EXPECT_EQ(table.partitions[0].type, "Linux");
    EXPECT_EQ(table.partitions[1].number, 2U);
    EXPECT_EQ(table.partitions[1].sectors, 1U);
    EXPECT_EQ(table.partitions[1].label, "Gr\u00f6\u00dfe \U0001f4be");
  }
  void expect_backup(const std::string& why) {
    const auto table = read(disk_);
    expect_all(table);
    EXPECT_TRUE(table.from_backup);
    ASSERT_EQ(table.notes.size(), 2U);
    EXPECT_NE(table.notes[0].find(why), std::string::npos) << table.notes[0];
  }

  MadeDisk disk_{kBytes};
};

INSTANTIATE_TEST_SUITE_P(SectorBytes, GptTableTest, ::testing::Values(512, 4096));

TEST_P(GptTableTest, ThePrimaryTableIsRead) {
  const auto table = read(disk_);
  expect_all(table);
  EXPECT_FALSE(table.from_backup);
  EXPECT_TRUE(table.notes.empty());
}

TEST_P(GptTableTest, OfADamagedHeaderTheBackupIsRead) {
  spoil(offset_of(1) + 60);
  expect_backup("has another CRC");
}
TEST_P(GptTableTest, OfAHeaderThatIsGoneTheBackupIsRead) {
  spoil(offset_of(1));
  expect_backup("has no signature");
}
TEST_P(GptTableTest, OfDamagedEntriesTheBackupIsRead) {
  spoil(offset_of(2) + 40);
  expect_backup("its entries have another CRC");
}
TEST_P(GptTableTest, AHeaderOfAnotherPlaceIsNone) {
  disk_.put(offset_of(1) + 24, std::uint64_t{17});
  seal_gpt(disk_, GetParam(), 1);
  expect_backup("says that it is in sector 17");
}
TEST_P(GptTableTest, EntriesWithoutEndAreNone) {
  for (const auto& [at, value, why] :
       {std::tuple{80, 0xffffffffu, "4294967295 entries of 128 bytes"},
        {80, 8193u, "8193 entries of 128 bytes"},
        {84, 64u, "128 entries of 64 bytes"},
        {84, 129u, "128 entries of 129 bytes"},
        {72, 0xffffffffu, "entries begin in sector 4294967295"}}) {
    SetUp();
    disk_.put(offset_of(1) + at, value);
    seal_gpt(disk_, GetParam(), 1);
    expect_backup(why);
  }
}
TEST_P(GptTableTest, AHeaderLongerThanItsSectorIsNone) {
  for (const std::uint32_t bytes : {91u, GetParam() + 1, 0xffffffffu}) {
    SetUp();
    disk_.put(offset_of(1) + 12, bytes);
    expect_backup("says that it has " + std::to_string(bytes) + " bytes");
  }
}

TEST_P(GptTableTest, WithoutAGoodTableThereIsNone) {
  spoil(offset_of(1) + 60);
  spoil(offset_of(last()) + 60);
  const auto table = read(disk_);
  EXPECT_TRUE(table.partitions.empty());
  EXPECT_EQ(table.sector_bytes, 0U);
  EXPECT_EQ(table.notes.size(), 4U);
}

TEST_P(GptTableTest, OnADiskThatGrewTheBackupIsWhereItEnded) {
  spoil(offset_of(1) + 60);
  disk_.bytes.resize(2 * kBytes);
  EXPECT_TRUE(read(disk_).partitions.empty());
  const auto table = read(disk_, {.sector_bytes = kEither, .former_last = last()});
  expect_all(table);
  EXPECT_TRUE(table.from_backup);
}

TEST_P(GptTableTest, SectorsOfAnotherSizeAreNotAskedForWhereItIsKnown) {
  const std::uint32_t other[] = {GetParam() == 512 ? 4096u : 512u};
  EXPECT_TRUE(read(disk_, {.sector_bytes = other}).partitions.empty());
  const std::uint32_t right[] = {GetParam()};
  expect_all(read(disk_, {.sector_bytes = right}));
}

TEST_P(GptTableTest, EntriesMayBeFewAndLarge) {
  MadeDisk disk(kBytes);
  put_gpt(disk, {{100, 199, u"a"}, {200, 250, u"b"}},
          {.sector_bytes = GetParam(), .entries = 5, .entry_bytes = 256});
  const auto table = read(disk);
  ASSERT_EQ(table.partitions.size(), 2U);
  EXPECT_EQ(table.partitions[1].label, "b");
  EXPECT_EQ(table.partitions[1].first, 200U);
}

TEST_P(GptTableTest, AnUnknownTypeIsItsGuid) {
  MadeDisk disk(kBytes);
  put_gpt(disk, {{100, 199, u"", std::string_view("\1\2\3\4\5\6\7\x8\x9\xa\xb\xc\xd\xe\xf\x10")}},
          gpt());
  EXPECT_EQ(read(disk).partitions.at(0).type, "04030201-0605-0807-090A-0B0C0D0E0F10");
}

TEST_P(GptTableTest, LabelsAreMadeFitToBeShown) {
  MadeDisk disk(kBytes);
  std::u16string odd(36, u'x');
  odd[0] = 0xd83d;  // half of a pair
  odd[2] = 0xdcbe;  // the other half
  odd[3] = 0x1b;
  odd[4] = '\n';
  odd[35] = 0xd83d;
  put_gpt(disk, {{100, 199, odd}}, gpt());
  EXPECT_EQ(read(disk).partitions.at(0).label,
            "\ufffdx\ufffd\ufffd\ufffd" + std::string(30, 'x') + "\ufffd");
}

TEST_P(GptTableTest, OneThatEndsBeforeItBeginsHasNoSectors) {
  MadeDisk disk(kBytes);
  put_gpt(disk, {{200, 199, u""}, {0, ~std::uint64_t{0}, u""}}, gpt());
  const auto table = read(disk);
  EXPECT_EQ(table.partitions.at(0).sectors, 0U);
  EXPECT_EQ(table.partitions.at(1).sectors, 0U);  // there are no such numbers
}

}  // namespace
}  // namespace mariner::uvfs
