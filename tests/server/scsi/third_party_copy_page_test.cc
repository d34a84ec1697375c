#include "server/scsi/third_party_copy_page.h"

#include <map>

#include "proto/bytes.h"
#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

// The descriptors by their types, as hexadecimal bodies.
std::map<std::uint16_t, std::string> descriptors(std::uint32_t block_bytes) {
  const auto page = third_party_copy_page({.block_bytes = block_bytes,
                                           .block_count = 1 << 20,
                                           .transfer_blocks_max = (2 << 20) / block_bytes});
  EXPECT_EQ(page.size() - 4, load_be<std::uint16_t>(&page[2]));
  std::map<std::uint16_t, std::string> found;
  std::size_t at = 4;
  while (at < page.size()) {
    const std::size_t bytes = load_be<std::uint16_t>(&page[at + 2]);
    EXPECT_EQ(bytes % 4, 0u);
    const auto type = load_be<std::uint16_t>(&page[at]);
    EXPECT_TRUE(found.empty() || found.rbegin()->first < type) << "ascending";
    found[type] = testing::hex(std::span(page).subspan(at + 4, bytes));
    at += 4 + bytes;
  }
  return found;
}

TEST(ThirdPartyCopyPage, BlockDeviceRodTokenLimits) {
  EXPECT_EQ(descriptors(512)[0x0000],
            "00 00 00 00 00 00 01 00 00 00 02 58 00 00 00 3c 00 00 00 00 00 08 00 00 "
            "00 00 00 00 00 02 00 00");
  EXPECT_EQ(descriptors(4096)[0x0000],
            "00 00 00 00 00 00 01 00 00 00 02 58 00 00 00 3c 00 00 00 00 00 01 00 00 "
            "00 00 00 00 00 00 40 00");
}

TEST(ThirdPartyCopyPage, CommandsAsInTheTableOfThem) {
  EXPECT_EQ(descriptors(512)[0x0001], "0e 83 04 00 10 11 1c 84 06 00 03 04 05 07 08 00");
}

TEST(ThirdPartyCopyPage, TypesOfTokens) {
  const std::string types = descriptors(512)[0x0108];
  EXPECT_EQ(types.substr(0, 12 * 3 - 1), "00 00 00 80 00 80 00 00 03 00 00 00");
  EXPECT_EQ(types.substr(68 * 3, 8 * 3 - 1), "ff ff 00 01 02 00 00 00");
}

TEST(ThirdPartyCopyPage, FeaturesOfTokens) {
  const std::string features = descriptors(512)[0x0106];
  EXPECT_EQ(features.substr(0, 2), "04") << "tokens of other targets, too";
  EXPECT_EQ(features.substr(12 * 3, 12 * 3 - 1), "00 00 00 01 00 00 0e 10 00 00 02 58");
  EXPECT_EQ(features.substr(42 * 3, 10 * 3 - 1), "00 30 00 00 00 2c 00 00 00 08");
  EXPECT_EQ(features.substr(60 * 3, 8 * 3 - 1), "00 00 00 00 04 00 00 00") << "64 MiB";
}

}  // namespace
}  // namespace mariner::scsi
