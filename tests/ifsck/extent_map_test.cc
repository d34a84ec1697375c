#include "ifsck/extent_map.h"

#include <ext2fs/ext3_extents.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "tests/ifsck/made_volume.h"

namespace mariner::ifsck {
namespace {

TEST(ExtentMapTest, JoinsNeighbours) {
  ExtentMap map;
  map.add(0, {100, 5});
  map.add(10, {110, 5});
  map.add(5, {105, 5});
  EXPECT_EQ(map.extents(), (std::map<std::uint64_t, ExtentMap::Extent>{{0, {100, 15}}}));
  map.add(15, {115, 5, true});
  EXPECT_EQ(map.extents().size(), 2u);
  map.add(7, {200, 0});
  EXPECT_EQ(map.extents().size(), 2u);
}

TEST(ExtentMapTest, IsCutInTwo) {
  ExtentMap map;
  map.add(0, {100, 10});
  map.remove(3, 4);
  EXPECT_EQ(map.extents(),
            (std::map<std::uint64_t, ExtentMap::Extent>{{0, {100, 3}}, {7, {107, 3}}}));
  map.remove(0, ~0u);
  EXPECT_TRUE(map.extents().empty());
}

// As a table of blocks, one by one, would have it.
TEST(ExtentMapTest, IsAMap) {
  std::mt19937_64 random(3);
  std::vector<std::optional<FsBlock>> table(300);
  ExtentMap map;
  for (int i = 0; i < 5000; ++i) {
    const auto first = random() % 250;
    const auto count = random() % 50;
    const FsBlock physical = 1 + random() % 5 * 100 + first;
    const bool add = random() % 2 == 0;
    for (auto j = first; j < first + count; ++j) {
      table[j] = add ? std::optional(physical + j - first) : std::nullopt;
    }
    if (add) {
      map.add(first, {physical, count});
    } else {
      map.remove(first, count);
    }
    std::vector<std::optional<FsBlock>> found(300);
    for (const auto& [logical, extent] : map.extents()) {
      ASSERT_GT(extent.count, 0u);
      for (std::uint64_t j = 0; j < extent.count; ++j) found[logical + j] = extent.physical + j;
    }
    ASSERT_EQ(found, table);
  }
}

// In a file system, it reads as it was written.
TEST(ExtentMapTest, MakesATree) {
  for (const int extents : {0, 4, 5, 84, 85, 400}) {
    MadeVolume made("-t ext4 -b 1024 -O ^has_journal");
    const InodeNumber number = made.find("/a/large");
    ExtentMap map;
    for (int i = 0; i < extents; ++i) {
      map.add(static_cast<std::uint64_t>(i) * 10,
              {static_cast<FsBlock>(10'000 + 7 * i), 5, i % 3 == 0});
    }
    FsBlock next = 30'000;
    const auto root = map.make_tree(
        1024, [&]() -> Result<FsBlock> { return next++; },
        [&](FsBlock block, std::span<std::byte> bytes) -> Result<void> {
          auto* const head = reinterpret_cast<ext3_extent_header*>(bytes.data());
          EXPECT_EQ(ext2fs_extent_block_csum_set(made.volume->fs(), number, head), 0);
          return made.view->write({block * 1024, 1024}, bytes);
        });
    ASSERT_TRUE(root.has_value());
    auto inode = made.inode(number);
    std::ranges::copy(*root, inode.begin() + 40);
    const auto read = map_blocks(*made.volume, *made.layout, number, inode);
    ASSERT_TRUE(read.has_value());
    EXPECT_TRUE(read->faults.empty());
    EXPECT_EQ(ExtentMap(*read), map);
    EXPECT_EQ(read->nodes.size(), next - 30'000);
  }
}

}  // namespace
}  // namespace mariner::ifsck
