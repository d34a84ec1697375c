#include "index/version_index.h"

#include <gtest/gtest.h>

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
