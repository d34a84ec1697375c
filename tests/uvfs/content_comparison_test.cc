#include "uvfs/content_comparison.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/uvfs/made_writes.h"

namespace mariner::uvfs {
namespace {

class ContentComparisonTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Of a file that is all of these blocks.
  ByteRuns map(std::initializer_list<ifsck::BlockMap::Run> runs) const {
    ByteRuns all;
    for (const auto& each : runs) {
      if (each.unwritten) continue;
      all.push_back({each.logical * each_, made_.offset_of(each.physical), each.count * each_});
    }
    return all;
  }
  bool same(const ByteRuns& before, const ByteRuns& after, std::uint64_t size,
            const std::vector<Lbn>& written, SequenceNumber at) {
    auto past = made_.past();
    const auto timelines = BlockTimelines::open(past, {{}, at}).value();
    ContentComparison comparison(timelines);
    const auto number = comparison.add({&before, &after, size, written, at});
    EXPECT_TRUE(comparison.run().has_value());
    return comparison.same(number);
  }
  Lbn lbn_of(ifsck::FsBlock block) const { return Lbn{made_.offset_of(block) / kBlockBytes}; }

  MadeWrites made_{GetParam()};
  const std::uint32_t each_ = made_.volume.layout->block_bytes();
  // Free ones, that read as zeros.
  const ifsck::FsBlock free_ = made_.volume.layout->blocks() - 64;
};

TEST_P(ContentComparisonTest, AWriteOfTheSameBytesChangesNothing) {
  const auto file = map({{0, free_, 8, false}});
  const auto at = made_.put<std::uint8_t>(made_.offset_of(free_ + 2) + 5, 0);
  EXPECT_TRUE(same(file, file, 8 * each_, {lbn_of(free_ + 2)}, at));
  const auto next = made_.put<std::uint8_t>(made_.offset_of(free_ + 2) + 5, 1);
  EXPECT_FALSE(same(file, file, 8 * each_, {lbn_of(free_ + 2)}, next));
  // That does not belong to the file, by its size or its blocks.
  EXPECT_TRUE(same(file, file, 2 * each_ + 5, {lbn_of(free_ + 2)}, next));
  EXPECT_FALSE(same(file, file, 2 * each_ + 6, {lbn_of(free_ + 2)}, next));
  const auto others = map({{0, free_, 2, false}, {2, free_ + 3, 5, false}});
  EXPECT_TRUE(same(others, others, 8 * each_, {lbn_of(free_ + 2)}, next));
}

TEST_P(ContentComparisonTest, AnotherPlaceMayHoldTheSame) {
  made_.put<std::uint8_t>(made_.offset_of(free_) + 7, 9);
  made_.put<std::uint8_t>(made_.offset_of(free_ + 20) + 7, 9);
  const auto at = made_.put<std::uint8_t>(made_.offset_of(free_ + 40), 1);
  const auto one = map({{3, free_, 1, false}});
  EXPECT_TRUE(same(one, map({{3, free_ + 20, 1, false}}), 8 * each_, {}, at));
  EXPECT_FALSE(same(one, map({{3, free_ + 40, 1, false}}), 8 * each_, {}, at));
  EXPECT_FALSE(same(one, map({{4, free_ + 20, 1, false}}), 8 * each_, {}, at));
  EXPECT_FALSE(same(one, map({}), 8 * each_, {}, at));
  EXPECT_FALSE(same(one, map({{3, free_, 1, true}}), 8 * each_, {}, at));
  // Beyond its end.
  EXPECT_TRUE(same(one, map({}), 3 * each_, {}, at));
}

TEST_P(ContentComparisonTest, HolesAndWhatWasNotWrittenAreZeros) {
  const auto at = made_.put<std::uint8_t>(made_.offset_of(free_ + 40), 1);
  EXPECT_TRUE(same(map({}), map({{0, free_, 4, false}}), 8 * each_, {}, at));
  EXPECT_TRUE(
      same(map({{1, free_ + 40, 1, true}}), map({{0, free_, 4, false}}), 8 * each_, {}, at));
}

TEST_P(ContentComparisonTest, MoreThanItComparesIsSaidToDiffer) {
  const auto at = made_.put<std::uint8_t>(made_.offset_of(free_ + 40), 1);
  const std::uint64_t many = ContentComparison::kBytesMax / each_ + 1;
  EXPECT_FALSE(same(map({}), map({{0, 1, many, false}}), many * each_, {}, at));
}

TEST_P(ContentComparisonTest, ABlockByItselfIsComparedBehindItsHead) {
  const auto head = made_.put<std::uint8_t>(made_.offset_of(free_) + 4, 2);
  const auto tail = made_.put<std::uint8_t>(made_.offset_of(free_) + 40, 2);
  auto past = made_.past();
  const auto timelines = BlockTimelines::open(past, {{}, tail}).value();
  ContentComparison comparison(timelines);
  const ByteRange behind{made_.offset_of(free_) + 32, each_ - 32};
  const auto first = comparison.add_place(behind, head);
  const auto second = comparison.add_place(behind, tail);
  ASSERT_TRUE(comparison.run().has_value());
  EXPECT_TRUE(comparison.same(first));
  EXPECT_FALSE(comparison.same(second));
}

INSTANTIATE_TEST_SUITE_P(Blocks, ContentComparisonTest,
                         ::testing::Values("-t ext2 -b 1024", "-t ext2 -b 4096"));

}  // namespace
}  // namespace mariner::uvfs
