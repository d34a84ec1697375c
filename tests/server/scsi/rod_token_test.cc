#include "server/scsi/rod_token.h"

#include <algorithm>

#include "tests/server/scsi/scsi_testing.h"

namespace mariner::scsi {
namespace {

using testing::example_identity;
using testing::hex;

void ones(std::span<std::uint8_t> bytes) { std::ranges::fill(bytes, std::uint8_t{0xFF}); }

TEST(RodToken, SaysWhatItStandsForButNotWhere) {
  const RodTokenBytes token = make_rod_token(0x0102, example_identity(), 512, 0x30000, ones);
  const auto part = [&](std::size_t from, std::size_t bytes) {
    return hex(std::span(token).subspan(from, bytes));
  };
  EXPECT_EQ(part(0, 16), "00 80 00 00 00 00 01 f8 00 00 00 00 00 00 01 02");
  EXPECT_EQ(part(16, 32),  // the unit, by its NAA designator, and its block length
            "e4 00 00 00 01 03 00 08 30 11 22 33 44 55 66 77 00 00 00 00 00 00 00 00 00 00 00 00 "
            "00 00 02 00");
  EXPECT_EQ(part(48, 16), "00 00 00 00 00 00 00 00 00 00 00 00 00 03 00 00");
  EXPECT_EQ(part(96, 8), "00 00 02 00 00 03 00 00");
  EXPECT_EQ(part(128, 8), "53 a8 00 1c 69 71 6e 2e") << "the target, by its name";
  EXPECT_EQ(part(256, 2), "ff ff");
  EXPECT_EQ(part(510, 2), "ff ff");
}

TEST(RodToken, ALongNameOfTheTargetIsLeftOut) {
  Identity identity = example_identity();
  identity.target_name = std::string(223, 'n');
  const RodTokenBytes token = make_rod_token(1, identity, 4096, 1, ones);
  EXPECT_EQ(hex(std::span(token).subspan(128, 8)), "01 23 00 08 30 11 22 33");
}

TEST(RodToken, IsRecognised) {
  RodTokenBytes token = make_rod_token(7, example_identity(), 512, 1, system_random);
  EXPECT_EQ(rod_type_of(token), RodType::kPointInTimeDefault);
  EXPECT_EQ(rod_identifier_of(token), 7u);
  EXPECT_TRUE(has_rod_length(token));
  EXPECT_TRUE(well_formed_rod(token));
  EXPECT_TRUE(same_rod(token, token));
  for (const std::size_t byte : {0u, 255u, 511u}) {
    RodTokenBytes other = token;
    other[byte] ^= 1;
    EXPECT_FALSE(same_rod(token, other)) << byte;
  }
  EXPECT_FALSE(same_rod(token, make_rod_token(7, example_identity(), 512, 1, system_random)))
      << "it cannot be made a second time";
  for (const std::size_t byte : {4u, 16u, 64u, 95u}) {
    RodTokenBytes other = token;
    other[byte] ^= 1;
    EXPECT_FALSE(well_formed_rod(other)) << byte;
  }
  token[7] = 0;
  EXPECT_FALSE(has_rod_length(token));
}

}  // namespace
}  // namespace mariner::scsi
