#include "server/iscsi/unacknowledged.h"

#include <gtest/gtest.h>

#include "tests/server/iscsi/iscsi_testing.h"

namespace mariner::iscsi {
namespace {

SentCompletion answer_of(std::uint32_t stat_sn, std::uint32_t itt, std::size_t bytes) {
  SentCompletion sent{.transfer = {.itt = itt, .read = true}, .response = {}, .stat_sn = stat_sn};
  sent.response.data_in.push_back({Payload::allocate(bytes), 0, bytes});
  return sent;
}

TEST(UnacknowledgedTest, KeepsUntilAcknowledged) {
  Unacknowledged kept;
  kept.keep(answer_of(5, 1, 100));
  kept.keep(6, Bhs{}, {});
  kept.keep(answer_of(7, 2, 50));
  EXPECT_EQ(kept.bytes(), 150u);
  kept.acknowledge(5);
  EXPECT_EQ(kept.size(), 3u) << "5 is expected, not had";
  kept.acknowledge(7);
  EXPECT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept.bytes(), 50u);
  EXPECT_FALSE(kept.answered(1));
  EXPECT_TRUE(kept.answered(2));
  kept.acknowledge(9);
  EXPECT_EQ(kept.size(), 1u) << "8 has not been sent";
  kept.acknowledge(8);
  EXPECT_EQ(kept.size(), 0u);
  EXPECT_EQ(kept.bytes(), 0u);
}

TEST(UnacknowledgedTest, DataOfAllKindsCounts) {
  Unacknowledged kept;
  kept.keep(5, Bhs{}, {.payload = Payload::allocate(300), .offset = 0, .length = 300});
  kept.keep(answer_of(6, 1, 100));
  kept.keep(7, Bhs{}, {.payload = Payload::allocate(40), .offset = 0, .length = 40});
  EXPECT_EQ(kept.bytes(), 440u);
  EXPECT_EQ(kept.other_bytes(), 340u);
  kept.acknowledge(6);
  EXPECT_EQ(kept.bytes(), 140u);
  EXPECT_EQ(kept.other_bytes(), 40u);
  kept.acknowledge(8);
  EXPECT_EQ(kept.bytes(), 0u);
  EXPECT_EQ(kept.other_bytes(), 0u);
}

TEST(UnacknowledgedTest, NumbersWrap) {
  Unacknowledged kept;
  kept.keep(0xffffffff, Bhs{}, {});
  kept.keep(0, Bhs{}, {});
  kept.acknowledge(0);
  EXPECT_EQ(kept.size(), 1u);
  kept.acknowledge(1);
  EXPECT_EQ(kept.size(), 0u);
}

}  // namespace
}  // namespace mariner::iscsi
