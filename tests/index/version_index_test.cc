#include "index/version_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace mariner::index {
namespace {

LocatedRun log_run(std::uint64_t first, std::uint64_t count, std::uint32_t payload_block) {
  LocatedRun run;
  run.range = {Lbn{first}, BlockCount{count}};
  run.source = LocatedRun::Source::kLog;
  run.location = {80, 1, 2, 1, 0};
  run.payload_block = payload_block;
  run.sequence = {5};
  return run;
}

// Sorted in one way when they are few, and in another when they are many.
TEST(MergeExtents, IsWhatAnyOfThemHas) {
  std::mt19937_64 random(3);
  for (const std::uint64_t blocks : {200, 50'000, 5'000'000}) {
    for (const std::size_t count : {3, 511, 512, 20'000}) {
      std::vector<bool> has(blocks + 16, false);
      std::vector<BlockRange> extents;
      while (extents.size() < count) {
        extents.push_back({{random() % blocks}, {random() % 16}});
        for (std::uint64_t at = 0; at < extents.back().count.value; ++at) {
          has[extents.back().first.value + at] = true;
        }
      }
      std::uint64_t merged = 0;
      Lbn end{0};
      for (const BlockRange& extent : merge_extents(std::move(extents))) {
        ASSERT_TRUE(merged == 0 || extent.first > end) << "in order, and not adjacent";
        end = extent.end();
        merged += extent.count.value;
        for (Lbn at = extent.first; at < end; at = at + BlockCount{1}) ASSERT_TRUE(has[at.value]);
      }
      EXPECT_EQ(merged, static_cast<std::uint64_t>(std::ranges::count(has, true)));
    }
  }
}

// However far away they are.
TEST(MergeExtents, OfTheEndOfTheGreatestVolume) {
  constexpr std::uint64_t kLast = (std::uint64_t{1} << 38) - 1;
  std::vector<BlockRange> extents;
  for (std::uint64_t at = 0; at < 1000; ++at) extents.push_back({{kLast - 2 * at}, {1}});
  const std::vector<BlockRange> merged = merge_extents(extents);
  std::ranges::reverse(extents);
  EXPECT_EQ(merged, extents);
}

TEST(AppendRun, ARunThatGoesOnIsAddedToTheLast) {
  std::vector<LocatedRun> out;
  append_run(log_run(10, 4, 0), out);
  append_run(log_run(14, 2, 4), out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].range, (BlockRange{Lbn{10}, BlockCount{6}}));
}

TEST(AppendRun, AnotherPayloadPlaceOrSourceIsAnotherRun) {
  std::vector<LocatedRun> out;
  append_run(log_run(10, 4, 0), out);
  append_run(log_run(14, 2, 5), out);  // not the next payload block
  append_run(log_run(17, 1, 7), out);  // a gap
  LocatedRun zero;
  zero.range = {Lbn{18}, BlockCount{1}};
  zero.source = LocatedRun::Source::kZero;
  append_run(zero, out);
  EXPECT_EQ(out.size(), 4u);
}

TEST(AppendRun, RepeatedRunsShareTheirPayloadBlock) {
  std::vector<LocatedRun> out;
  for (const std::uint64_t first : {10, 12}) {
    LocatedRun run = log_run(first, 2, 3);
    run.repeated = true;
    append_run(run, out);
  }
  EXPECT_EQ(out.size(), 1u);
}

TEST(PartOf, BeginsInTheMiddleOfThePayload) {
  const LocatedRun run = log_run(10, 6, 3);
  const LocatedRun part = part_of(run, {Lbn{12}, BlockCount{100}});
  EXPECT_EQ(part.range, (BlockRange{Lbn{12}, BlockCount{4}}));
  EXPECT_EQ(part.payload_block, 5u);
  EXPECT_EQ(part.sequence, run.sequence);
  LocatedRun repeated = run;
  repeated.repeated = true;
  EXPECT_EQ(part_of(repeated, {Lbn{12}, BlockCount{1}}).payload_block, 3u);
  EXPECT_TRUE(part_of(run, {Lbn{16}, BlockCount{1}}).range.empty());
}

TEST(MergeExtents, SortsAndMergesWhatOverlapsOrTouches) {
  const auto range = [](std::uint64_t first, std::uint64_t count) {
    return BlockRange{Lbn{first}, BlockCount{count}};
  };
  EXPECT_EQ(merge_extents({range(20, 5), range(0, 3), range(3, 1), range(22, 10), range(50, 0)}),
            (std::vector<BlockRange>{range(0, 4), range(20, 12)}));
}

}  // namespace
}  // namespace mariner::index
