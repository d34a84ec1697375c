#include "tests/bench/session_stamp.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace mariner::bench {
namespace {

using Bytes = std::array<std::byte, kBlockBytes>;

constexpr SessionStamp kStamp{.session = 3, .generation = 7, .block = 12};

Bytes filled(const StampedContents& contents, const SessionStamp& stamp) {
  Bytes out{};
  contents.fill(out, stamp);
  return out;
}

TEST(SessionStamp, ABlockHoldsWhatItWasFilledWith) {
  const StampedContents contents(1);
  EXPECT_TRUE(contents.holds(filled(contents, kStamp), kStamp));
  EXPECT_EQ(contents.difference(filled(contents, kStamp), kStamp), std::nullopt);
}

TEST(SessionStamp, AnotherSessionsAnOlderAndAMisplacedBlockAreNamed) {
  const StampedContents contents(1);
  EXPECT_EQ(
      contents.difference(filled(contents, {.session = 4, .generation = 7, .block = 12}), kStamp),
      "at byte 0 generation 7 of block 12 of session 4");
  EXPECT_EQ(
      contents.difference(filled(contents, {.session = 3, .generation = 6, .block = 12}), kStamp),
      "at byte 0 generation 6 of block 12 of session 3");
  EXPECT_EQ(
      contents.difference(filled(contents, {.session = 3, .generation = 7, .block = 13}), kStamp),
      "at byte 0 generation 7 of block 13 of session 3");
}

TEST(SessionStamp, ATornBlockIsNamedWhereItIsTorn) {
  const StampedContents contents(1);
  Bytes torn = filled(contents, kStamp);
  const Bytes older = filled(contents, {.session = 3, .generation = 6, .block = 12});
  std::copy(older.begin() + 1536, older.end(), torn.begin() + 1536);
  EXPECT_FALSE(contents.holds(torn, kStamp));
  EXPECT_EQ(contents.difference(torn, kStamp),
            "at byte 1536 generation 6 of block 12 of session 3");
}

TEST(SessionStamp, EachByteThatChangesIsSeen) {
  const StampedContents contents(1);
  const Bytes whole = filled(contents, kStamp);
  for (std::size_t at = 0; at < kBlockBytes; ++at) {
    Bytes changed = whole;
    changed.at(at) ^= std::byte{1};
    ASSERT_FALSE(contents.holds(changed, kStamp)) << "byte " << at;
  }
}

TEST(SessionStamp, DamageBehindAStampAndZerosAreToldApart) {
  const StampedContents contents(1);
  Bytes damaged = filled(contents, kStamp);
  damaged[1000] ^= std::byte{0x80};
  EXPECT_EQ(contents.difference(damaged, kStamp),
            "at byte 512 the right stamp before damaged bytes");
  EXPECT_EQ(contents.difference(Bytes{}, kStamp), "at byte 0 no stamp");
}

TEST(SessionStamp, NeighboursAndSuccessorsDifferInTheirNoise) {
  const StampedContents contents(1);
  const Bytes one = filled(contents, kStamp);
  for (const SessionStamp& other : {SessionStamp{.session = 4, .generation = 7, .block = 12},
                                    SessionStamp{.session = 3, .generation = 8, .block = 12},
                                    SessionStamp{.session = 3, .generation = 7, .block = 13}}) {
    EXPECT_FALSE(
        std::equal(one.begin() + 32, one.begin() + 512, filled(contents, other).begin() + 32));
  }
}

}  // namespace
}  // namespace mariner::bench
