#include "server/admin/repair_wire.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <string>

namespace mariner::admin {
namespace {

using ::testing::HasSubstr;

std::string record(std::uint64_t block, char byte) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(block >> (8 * i));
  return out + std::string(kBlockBytes, byte);
}

TEST(RepairWire, RecordsOfANumberAndABlock) {
  const std::string bytes = record(0x0102, 'a') + record(UINT64_MAX, 'b');
  const auto blocks = parse_repairs(bytes);
  ASSERT_TRUE(blocks);
  ASSERT_EQ(blocks->size(), 2u);
  EXPECT_EQ((*blocks)[0].block, Lbn{0x0102});
  EXPECT_EQ((*blocks)[1].block, Lbn{UINT64_MAX});
  EXPECT_EQ((*blocks)[1].bytes.size(), kBlockBytes);
  EXPECT_EQ((*blocks)[1].bytes.back(), std::byte{'b'});
  EXPECT_TRUE(parse_repairs("")->empty());
}

TEST(RepairWire, WhatIsRefused) {
  EXPECT_THAT(parse_repairs(record(1, 'a').substr(1)).error().message,
              HasSubstr("expected records of 4104 bytes, found 4103 bytes"));
  EXPECT_THAT(parse_repairs(record(2, 'a') + record(2, 'b')).error().message,
              HasSubstr("expected ascending numbers, found 2 behind 2"));
  std::string many;
  for (std::uint64_t i = 0; i < kRepairRecordsMax; ++i) many += record(i, 'x');
  EXPECT_TRUE(parse_repairs(many));
  EXPECT_LT(many.size(), 1u << 20) << "as long as a body may be";
  EXPECT_EQ(parse_repairs(many + record(1000, 'x')).error().code, ErrorCode::kLimit);
}

TEST(RepairWire, AnyBytesAtAll) {
  rc::check("are records or an error", [](const std::string& bytes) {
    const auto blocks = parse_repairs(bytes);
    RC_ASSERT(blocks.has_value() == bytes.empty());
  });
}

}  // namespace
}  // namespace mariner::admin
