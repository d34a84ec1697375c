#include "ifsck/extent_node.h"

#include <gtest/gtest.h>

#include "proto/bytes.h"

namespace mariner::ifsck {
namespace {

TEST(ExtentNode, LongRunsAreSeveralExtents) {
  std::vector<ExtentEntry> entries;
  add_extents({7, 1ULL << 33, 70'000, false}, entries);
  add_extents({100'000, 50, 40'000, true}, entries);
  ASSERT_EQ(entries.size(), 5u);
  std::uint64_t written = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(entries[i].logical, 7 + written);
    EXPECT_EQ(entries[i].block, (1ULL << 33) + written);
    EXPECT_LE(entries[i].length, EXT_INIT_MAX_LEN);
    written += entries[i].length;
  }
  EXPECT_EQ(written, 70'000u);
  EXPECT_EQ(entries[3].length, EXT_INIT_MAX_LEN + EXT_UNINIT_MAX_LEN);
  EXPECT_EQ(entries[3].length + entries[4].length - 2 * EXT_INIT_MAX_LEN, 40'000);
  EXPECT_EQ(entries[4].block, 50u + EXT_UNINIT_MAX_LEN);
}

TEST(ExtentNode, LeavesAndIndexesHaveTheseBytes) {
  EXPECT_EQ(extents_max(60), 4u);
  EXPECT_EQ(extents_max(4096), 340u);
  const std::vector<ExtentEntry> entries{{0x01020304, 0x0a0b0c0d0e0f, 0x1112}};
  std::vector<std::byte> node(60);
  put_extent_node(node, entries, 0);
  EXPECT_EQ(load_le<std::uint16_t>(node.data()), 0xf30a);
  EXPECT_EQ(load_le<std::uint16_t>(node.data() + 2), 1u);
  EXPECT_EQ(load_le<std::uint16_t>(node.data() + 4), 4u);
  EXPECT_EQ(load_le<std::uint16_t>(node.data() + 6), 0u);
  EXPECT_EQ(load_le<std::uint32_t>(node.data() + 12), 0x01020304u);
  EXPECT_EQ(load_le<std::uint16_t>(node.data() + 16), 0x1112u);
  EXPECT_EQ(load_le<std::uint16_t>(node.data() + 18), 0x0a0bu);
  EXPECT_EQ(load_le<std::uint32_t>(node.data() + 20), 0x0c0d0e0fu);
  put_extent_node(node, entries, 2);
  EXPECT_EQ(load_le<std::uint16_t>(node.data() + 6), 2u);
  EXPECT_EQ(load_le<std::uint32_t>(node.data() + 16), 0x0c0d0e0fu);
  EXPECT_EQ(load_le<std::uint16_t>(node.data() + 20), 0x0a0bu);
  EXPECT_EQ(load_le<std::uint16_t>(node.data() + 22), 0u);
}

}  // namespace
}  // namespace mariner::ifsck
