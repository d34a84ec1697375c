#include "server/scsi/token_lists.h"

#include "proto/bytes.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

constexpr Geometry kGeometry{
    .block_bytes = 512, .block_count = 1 << 22, .transfer_blocks_max = 4096};

using Bytes = std::vector<std::uint8_t>;

// A parameter list whose header has so many bytes.
Bytes list_of(std::size_t header_bytes, const std::vector<Extent>& extents) {
  Bytes list(header_bytes);
  for (const Extent& extent : extents) {
    const std::size_t at = list.size();
    list.resize(at + 16);
    store_be(&list[at], extent.lba);
    store_be(&list[at + 8], static_cast<std::uint32_t>(extent.blocks));
  }
  store_be(&list[0], static_cast<std::uint16_t>(list.size() - 2));
  store_be(&list[header_bytes - 2], static_cast<std::uint16_t>(list.size() - header_bytes));
  return list;
}
std::string text(const Sense& sense) {
  Response response = check_condition(sense, SenseFormat::kFixed);
  return testing::outcome_of(response).verdict();
}

class TokenListsTest : public ::testing::Test {
 protected:
  std::string populate(const Bytes& list) {
    auto parsed = parse_populate_list(std::as_bytes(std::span(list)), kGeometry);
    if (const auto* wrong = std::get_if<Sense>(&parsed)) return text(*wrong);
    populate_ = std::get<PopulateList>(parsed);
    return "good";
  }
  std::string write(const Bytes& list) {
    auto parsed = parse_write_list(std::as_bytes(std::span(list)), kGeometry);
    if (const auto* wrong = std::get_if<Sense>(&parsed)) return text(*wrong);
    write_ = std::get<WriteList>(parsed);
    return "good";
  }
  PopulateList populate_;
  WriteList write_;
};

TEST_F(TokenListsTest, Populate) {
  Bytes list = list_of(16, {{5, 6}, {100, 0}, {7 << 10, 4096}});
  list[2] = 1;
  store_be(&list[4], std::uint32_t{30});
  EXPECT_EQ(populate(list), "good");
  EXPECT_TRUE(populate_.immediate);
  EXPECT_EQ(populate_.inactivity, std::chrono::seconds(30));
  ASSERT_EQ(populate_.extents.size(), 2u) << "an empty one is no error, and nothing";
  EXPECT_EQ(populate_.extents[1].lba, 7u << 10);
  EXPECT_EQ(populate_.extents[1].blocks, 4096u);
}

TEST_F(TokenListsTest, Write) {
  Bytes list = list_of(536, {{5, 6}});
  list[2] = 2;
  store_be(&list[8], std::uint64_t{77});
  list[16] = 0xAB;
  list[527] = 0xCD;
  EXPECT_EQ(write(list), "good");
  EXPECT_FALSE(write_.immediate);
  EXPECT_TRUE(write_.delete_token);
  EXPECT_EQ(write_.offset_blocks, 77u);
  EXPECT_EQ(write_.token.front(), 0xAB);
  EXPECT_EQ(write_.token.back(), 0xCD);
  EXPECT_EQ(write_.extents[0].blocks, 6u);
}

TEST_F(TokenListsTest, ListsThatAreTooShort) {
  for (std::size_t bytes = 0; bytes < 16; ++bytes) EXPECT_EQ(populate(Bytes(bytes)), "5/1A/00");
  EXPECT_EQ(populate(Bytes(16)), "5/26/00@p0");
  EXPECT_EQ(write(Bytes(535)), "5/1A/00");
  EXPECT_EQ(write(Bytes(536)), "5/26/00@p0");
  Bytes none = list_of(16, {{0, 1}});
  none[15] = 15;
  EXPECT_EQ(populate(none), "5/26/00@p14");
  none = list_of(536, {{0, 1}});
  none[535] = 0;
  EXPECT_EQ(write(none), "5/26/00@p534");
}

TEST_F(TokenListsTest, WhatIsCutShortAtTheEndIsIgnored) {
  Bytes list = list_of(16, {{5, 6}, {50, 6}});
  list.resize(list.size() - 1);
  EXPECT_EQ(populate(list), "good");
  EXPECT_EQ(populate_.extents.size(), 1u);
  list = list_of(16, {{5, 6}, {50, 6}});
  list[15] = 31;
  EXPECT_EQ(populate(list), "good");
  EXPECT_EQ(populate_.extents.size(), 1u);
}

TEST_F(TokenListsTest, InactivityHasADefaultAndAMaximum) {
  Bytes list = list_of(16, {{0, 1}});
  EXPECT_EQ(populate(list), "good");
  EXPECT_EQ(populate_.inactivity, std::chrono::seconds(60));
  store_be(&list[4], std::uint32_t{600});
  EXPECT_EQ(populate(list), "good");
  store_be(&list[4], std::uint32_t{601});
  EXPECT_EQ(populate(list), "5/26/00@p4");
}

TEST_F(TokenListsTest, OnlyPointsInTimeAreMade) {
  Bytes list = list_of(16, {{0, 1}});
  const auto type = [&](std::uint32_t value) {
    store_be(&list[8], value);
    return populate(list);
  };
  EXPECT_EQ(type(0x0001'0000), "good") << "without RTV nobody looks at it";
  list[2] = 2;
  EXPECT_EQ(type(0x0080'0000), "good");
  EXPECT_EQ(type(0x0080'FFFF), "good");
  EXPECT_EQ(type(0x0001'0000), "5/26/00@p8");
  EXPECT_EQ(type(0xFFFF'0001), "5/26/00@p8");
}

TEST_F(TokenListsTest, Ranges) {
  const auto ranges = [&](const std::vector<Extent>& extents) {
    const std::string verdict = populate(list_of(16, extents));
    Bytes list = list_of(536, extents);
    EXPECT_EQ(write(list).substr(0, 7), verdict.substr(0, 7));
    return verdict;
  };
  EXPECT_EQ(ranges({{0, 4097}}), "5/26/00@p24") << "MAXIMUM TRANSFER LENGTH";
  EXPECT_EQ(ranges({{(1 << 22) - 1, 2}}), "5/21/00i4194304");
  EXPECT_EQ(ranges({{UINT64_MAX, 1}}).substr(0, 7), "5/21/00");
  EXPECT_EQ(ranges({{10, 5}, {100, 1}, {14, 1}}), "5/26/00@p16") << "a block twice";
  EXPECT_EQ(ranges({{10, 5}, {15, 1}}), "good");
  EXPECT_EQ(ranges(std::vector<Extent>(257)), "5/26/08");
  std::vector<Extent> most;
  for (std::uint64_t i = 0; i < 128; ++i) most.push_back({i * 4096, 4096});
  EXPECT_EQ(ranges(most), "good") << "256 MiB";
  most.push_back({128 * 4096, 1});
  EXPECT_EQ(ranges(most), "5/26/00@p14");
}

}  // namespace
}  // namespace mariner::scsi
