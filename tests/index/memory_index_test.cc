#include "tests/index/memory_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

namespace mariner::index {
namespace {

using logging::LogLocation;
using logging::Record;
using logging::RecordType;

LogLocation place(std::uint64_t block) { return {block, 1, 0, 1, 0}; }

Record write_record(std::uint64_t sequence, BlockRange extent) {
  Record record;
  record.type = RecordType::kWrite;
  record.sequence = {sequence};
  record.time = {sequence * 100};
  record.extent = extent;
  record.payload_blocks = static_cast<std::uint32_t>(extent.count.value);
  return record;
}

Record zero_record(std::uint64_t sequence, BlockRange extent) {
  Record record = write_record(sequence, extent);
  record.type = RecordType::kZero;
  record.payload_blocks = 0;
  return record;
}

Record rollback_record(std::uint64_t sequence, std::uint64_t target) {
  Record record;
  record.type = RecordType::kRollback;
  record.sequence = {sequence};
  record.time = {sequence * 100};
  record.target_sequence = {target};
  return record;
}

Record before_image(BlockRange extent) {
  Record record;
  record.type = RecordType::kBeforeImage;
  record.extent = extent;
  record.payload_blocks = static_cast<std::uint32_t>(extent.count.value);
  return record;
}

// What one block of a located run says.
struct Found {
  LocatedRun::Source source = LocatedRun::Source::kBase;
  LogLocation location;
  std::uint32_t payload_block = 0;
  SequenceNumber sequence;
  friend bool operator==(const Found&, const Found&) = default;
};

std::vector<Found> by_block(const std::vector<LocatedRun>& runs, BlockRange range) {
  std::vector<Found> out;
  Lbn at = range.first;
  for (const LocatedRun& run : runs) {
    EXPECT_EQ(run.range.first, at) << "runs come in order without gaps";
    EXPECT_FALSE(run.range.empty());
    for (std::uint32_t i = 0; i < run.range.count.value; ++i) {
      const bool log = run.source == LocatedRun::Source::kLog;
      out.push_back({run.source, run.location, log ? run.payload_block + (run.repeated ? 0 : i) : 0,
                     run.sequence});
    }
    at = run.range.end();
  }
  EXPECT_EQ(at, range.end());
  return out;
}

TEST(MemoryIndex, EmptyIsBase) {
  const MemoryIndex index;
  const auto runs = index.locate({{5}, {10}}, SequenceNumber{UINT64_MAX});
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].source, LocatedRun::Source::kBase);
  EXPECT_EQ(runs[0].range, (BlockRange{{5}, {10}}));
  EXPECT_TRUE(index.locate({{5}, {0}}, SequenceNumber{1}).empty());
  EXPECT_EQ(index.newest().sequence, SequenceNumber{0});
  EXPECT_EQ(index.moment_at(VersionTime{UINT64_MAX}).sequence, SequenceNumber{0});
  EXPECT_EQ(index.moment_of(SequenceNumber{9}).sequence, SequenceNumber{0});
}

TEST(MemoryIndex, MomentsAreTheLastWriteAtOrBefore) {
  MemoryIndex index;
  index.insert(write_record(10, {{0}, {1}}), place(1));
  index.insert(write_record(20, {{0}, {1}}), place(2));
  EXPECT_EQ(index.moment_at(VersionTime{999}).sequence, SequenceNumber{0});
  EXPECT_EQ(index.moment_at(VersionTime{1000}).sequence, SequenceNumber{10});
  EXPECT_EQ(index.moment_at(VersionTime{1999}).sequence, SequenceNumber{10});
  EXPECT_EQ(index.moment_at(VersionTime{2000}).sequence, SequenceNumber{20});
  EXPECT_EQ(index.moment_of(SequenceNumber{9}).sequence, SequenceNumber{0});
  EXPECT_EQ(index.moment_of(SequenceNumber{19}).sequence, SequenceNumber{10});
  EXPECT_EQ(index.moment_of(SequenceNumber{20}).time, VersionTime{2000});
}

TEST(MemoryIndex, VoidsGapsAndMarksAreNoVersions) {
  MemoryIndex index;
  for (const RecordType type : {RecordType::kVoid, RecordType::kGap, RecordType::kMark}) {
    Record record;
    record.type = type;
    record.sequence = {5};
    record.target_sequence = {7};
    index.insert(record, place(1));
  }
  EXPECT_EQ(index.statistics().writes, 0u);
}

TEST(MemoryIndex, TheLargestVolumeAndItsEdges) {
  MemoryIndex index;
  const BlockCount all{MemoryIndex::kBlocksMax};
  index.insert(zero_record(1, {{0}, all}), place(1));
  index.insert(write_record(2, {{all.value - 1}, {1}}), place(2));
  index.insert(zero_record(3, {{1}, {all.value - 2}}), place(3));
  const auto runs = index.locate({{0}, all}, SequenceNumber{3});
  ASSERT_EQ(runs.size(), 3u);
  EXPECT_EQ(runs[0].sequence, SequenceNumber{1});
  EXPECT_EQ(runs[1].sequence, SequenceNumber{3});
  EXPECT_EQ(runs[1].range.count.value, all.value - 2);
  EXPECT_EQ(runs[2].sequence, SequenceNumber{2});
}

TEST(MemoryIndex, ALargeExtentCostsFewEntries) {
  MemoryIndex index;
  const auto before = index.statistics().memory_bytes;
  index.insert(zero_record(1, {{1}, {(std::uint64_t{1} << 38) - 2}}), place(1));
  EXPECT_LT(index.statistics().memory_bytes - before, 128u * 1024);
}

TEST(MemoryIndex, TheFirstBeforeImageOfABlockStays) {
  MemoryIndex index;
  index.insert(before_image({{4}, {2}}), place(10));
  index.insert(before_image({{2}, {6}}), place(20));  // the same again after a crash, and more
  const auto found = by_block(index.locate({{0}, {10}}, SequenceNumber{0}), {{0}, {10}});
  const auto log = [](std::uint64_t block, std::uint32_t payload) {
    return Found{LocatedRun::Source::kLog, place(block), payload, SequenceNumber{0}};
  };
  const std::vector<Found> expected{{},         {},         log(20, 0), log(20, 1), log(10, 0),
                                    log(10, 1), log(20, 4), log(20, 5), {},         {}};
  EXPECT_EQ(found, expected);
}

TEST(MemoryIndex, ChangedReachesBackThroughNestedRollbacks) {
  MemoryIndex index;
  index.insert(write_record(1, {{1}, {1}}), place(1));
  index.insert(write_record(2, {{2}, {1}}), place(2));
  index.insert(rollback_record(3, 1), place(3));  // takes block 2 away
  index.insert(write_record(4, {{4}, {1}}), place(4));
  index.insert(rollback_record(5, 2), place(5));  // brings block 2 back, takes block 4 away
  const std::vector<BlockRange> expected{{{2}, {1}}, {{4}, {1}}};
  EXPECT_EQ(index.changed(SequenceNumber{4}, SequenceNumber{5}), expected);
  EXPECT_EQ(index.changed(SequenceNumber{3}, SequenceNumber{5}), expected);
  EXPECT_TRUE(index.changed(SequenceNumber{5}, SequenceNumber{5}).empty());
}

TEST(MemoryIndex, ALongChainOfUndoingEnds) {
  MemoryIndex index;
  index.insert(write_record(1, {{0}, {1}}), place(1));
  for (std::uint64_t n = 2; n < 20'000; ++n) index.insert(rollback_record(n, n - 2), place(n));
  // Each takes back the one before it: write 1 is there at every odd moment.
  EXPECT_EQ(index.locate({{0}, {1}}, SequenceNumber{19'999})[0].sequence, SequenceNumber{1});
  EXPECT_EQ(index.locate({{0}, {1}}, SequenceNumber{19'998})[0].source, LocatedRun::Source::kBase);
}

TEST(MergeExtents, SortsAndJoinsWhatTouches) {
  const std::vector<BlockRange> expected{{{0}, {4}}, {{6}, {3}}, {{20}, {1}}};
  EXPECT_EQ(
      merge_extents({{{20}, {1}}, {{2}, {2}}, {{0}, {2}}, {{6}, {3}}, {{7}, {1}}, {{9}, {0}}}),
      expected);
  EXPECT_TRUE(merge_extents({}).empty());
}

// Against a list of all writes, block by block.
class Reference {
 public:
  explicit Reference(std::uint64_t blocks) : blocks_(blocks) {
    states_.push_back({SequenceNumber{0}, std::vector<Found>(blocks)});
  }

  void write(const Record& record, const LogLocation& location) {
    std::vector<Found> next = states_.back().blocks;
    if (record.type == RecordType::kRollback) {
      next = at(record.target_sequence);
    } else {
      for (const logging::RecordPiece& piece : logging::pieces_of(record)) {
        for (std::uint64_t i = 0; i < piece.range.count.value; ++i) {
          Found& found = next[piece.range.first.value + i];
          found = {LocatedRun::Source::kZero, {}, 0, record.sequence};
          if (piece.kind == logging::RecordPiece::Kind::kZero) continue;
          found.source = LocatedRun::Source::kLog;
          found.location = location;
          const bool one = piece.kind == logging::RecordPiece::Kind::kRepeated;
          found.payload_block = piece.payload_block + static_cast<std::uint32_t>(one ? 0 : i);
        }
      }
      for (std::uint64_t i = 0; i < record.extent.count.value; ++i) {
        writes_.push_back({record.sequence, record.extent.first.value + i});
      }
    }
    states_.push_back({record.sequence, std::move(next)});
  }

  void capture(const Record& record, const LogLocation& location) {
    for (std::uint32_t i = 0; i < record.extent.count.value; ++i) {
      for (State& state : states_) {
        Found& found = state.blocks[record.extent.first.value + i];
        if (found.source != LocatedRun::Source::kBase) continue;
        found = {LocatedRun::Source::kLog, location, i, SequenceNumber{0}};
      }
    }
  }

  [[nodiscard]] const std::vector<Found>& at(SequenceNumber moment) const {
    const State* best = &states_.front();
    for (const State& state : states_) {
      if (state.sequence <= moment) best = &state;
    }
    return best->blocks;
  }

  [[nodiscard]] std::vector<SequenceNumber> versions(std::uint64_t block, SequenceNumber from,
                                                     SequenceNumber to) const {
    std::vector<SequenceNumber> out;
    for (const auto& [sequence, changed] : writes_) {
      if (changed == block && sequence > from && sequence <= to) out.push_back(sequence);
    }
    return out;
  }

  [[nodiscard]] std::uint64_t blocks() const { return blocks_; }

 private:
  struct State {
    SequenceNumber sequence;
    std::vector<Found> blocks;
  };
  const std::uint64_t blocks_;
  std::vector<State> states_;
  std::vector<std::pair<SequenceNumber, std::uint64_t>> writes_;
};

class IndexModel : public ::testing::Test {
 protected:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  BlockRange any_extent(std::uint64_t blocks) {
    const std::uint64_t first = below(blocks);
    const std::uint64_t most =
        one_in(4) ? blocks - first : std::min<std::uint64_t>(blocks - first, 9);
    return {{first}, {1 + below(most)}};
  }

  Record any_record(std::uint64_t sequence, std::uint64_t blocks) {
    Record record = write_record(sequence, any_extent(blocks));
    const std::uint64_t count = record.extent.count.value;
    switch (below(6)) {
      case 0:
      case 1: break;
      case 2:
        record.type = RecordType::kZero;
        record.payload_blocks = 0;
        add_edges(record, count);
        break;
      case 3:
        record.flags = logging::kRepeats;
        record.payload_blocks = 1;
        add_edges(record, count);
        break;
      case 4: return rollback_record(sequence, below(sequence));
      default:
        return rollback_record(sequence,
                               sequence - 1 - below(std::min<std::uint64_t>(sequence, 3)));
    }
    return record;
  }

  void add_edges(Record& record, std::uint64_t count) {
    if (count > 2 && one_in(2)) {
      record.flags |= logging::kHasHead;
      ++record.payload_blocks;
    }
    if (count > 2 && one_in(2)) {
      record.flags |= logging::kHasTail;
      ++record.payload_blocks;
    }
  }

  void run(std::uint64_t seed) {
    random_.seed(seed);
    const std::uint64_t blocks = 1 + below(100);
    MemoryIndex index;
    Reference reference(blocks);
    std::uint64_t sequence = 0;
    std::uint64_t location = 1;
    for (int i = 0; i < 40; ++i) {
      if (one_in(6)) {
        const Record record = before_image(any_extent(blocks));
        index.insert(record, place(++location));
        reference.capture(record, place(location));
        continue;
      }
      sequence += 1 + below(3);  // voids in between
      const Record record = any_record(sequence, blocks);
      ASSERT_TRUE(logging::record_is_consistent(record));
      index.insert(record, place(++location));
      reference.write(record, place(location));
    }
    const BlockRange all{{0}, {blocks}};
    for (std::uint64_t moment = 0; moment <= sequence + 1; ++moment) {
      const SequenceNumber at{moment};
      ASSERT_EQ(by_block(index.locate(all, at), all), reference.at(at)) << "at #" << moment;
      check_changed(index, reference, {below(moment + 1)}, at);
    }
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const SequenceNumber from{below(sequence + 1)};
      ASSERT_EQ(index.versions({block}, from, {sequence}),
                reference.versions(block, from, {sequence}));
    }
    const BlockRange part = any_extent(blocks);
    const auto found = by_block(index.locate(part, {sequence}), part);
    const auto& expected = reference.at({sequence});
    ASSERT_TRUE(std::equal(found.begin(), found.end(),
                           expected.begin() + static_cast<std::ptrdiff_t>(part.first.value)));
  }

  // Whatever differs between two moments is in changed(), which is sorted, disjoint and not
  // adjacent.
  void check_changed(const MemoryIndex& index, const Reference& reference, SequenceNumber from,
                     SequenceNumber to) {
    const std::vector<BlockRange> changed = index.changed(from, to);
    for (std::size_t i = 1; i < changed.size(); ++i) {
      ASSERT_LT(changed[i - 1].end(), changed[i].first);
    }
    for (std::uint64_t block = 0; block < reference.blocks(); ++block) {
      if (reference.at(from)[block] == reference.at(to)[block]) continue;
      ASSERT_TRUE(
          std::any_of(changed.begin(), changed.end(),
                      [&](const BlockRange& extent) { return extent.contains(Lbn{block}); }))
          << "block " << block << " between #" << from.value << " and #" << to.value;
    }
  }

  std::mt19937_64 random_;
};

TEST_F(IndexModel, EveryMomentEqualsTheReference) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    run(seed);
    if (HasFatalFailure()) return;
  }
}

TEST(MemoryIndex, ForgottenVersionsLeaveTheBaseAndTheNumbers) {
  MemoryIndex index;
  const BlockRange all{{0}, {64}};
  for (std::uint64_t n = 1; n <= 10; ++n) index.insert(write_record(n, {{n}, {2}}), place(n));
  const std::uint64_t memory = index.statistics().memory_bytes;
  index.set_horizon({{6}, {600}});
  for (std::uint64_t n = 1; n <= 6; ++n) index.forget(write_record(n, {{n}, {2}}), place(n));
  index.forget(write_record(3, {{3}, {2}}), place(3));  // again: nothing
  EXPECT_LT(index.statistics().memory_bytes, memory);
  EXPECT_EQ(index.oldest().sequence, SequenceNumber{6});
  EXPECT_EQ(index.newest().sequence, SequenceNumber{10});
  const auto found = by_block(index.locate(all, {10}), all);
  for (std::uint64_t block = 0; block < 64; ++block) {
    const bool kept = block >= 7 && block <= 11;
    EXPECT_EQ(found[block].source, kept ? LocatedRun::Source::kLog : LocatedRun::Source::kBase);
  }
  EXPECT_EQ(index.moment_at({650}).sequence, SequenceNumber{6}) << "known though forgotten";
  EXPECT_EQ(index.moment_of({6}).sequence, SequenceNumber{6});
  EXPECT_EQ(index.moment_at({599}).sequence, SequenceNumber{0}) << "before the horizon";
  EXPECT_EQ(index.versions({6}, {0}, {10}), std::vector<SequenceNumber>{});
  for (std::uint64_t n = 7; n <= 10; ++n) index.forget(write_record(n, {{n}, {2}}), place(n));
  EXPECT_EQ(index.newest().sequence, SequenceNumber{10});
  index.insert(write_record(11, {{1}, {1}}), place(11));
  EXPECT_EQ(index.locate({{1}, {1}}, {11})[0].sequence, SequenceNumber{11});
}

TEST(MemoryIndex, OneForgottenInTheMiddleHidesNoOther) {
  MemoryIndex index;
  index.insert(write_record(1, {{0}, {8}}), place(1));
  index.insert(write_record(2, {{0}, {8}}), place(2));
  index.insert(write_record(3, {{4}, {1}}), place(3));
  index.forget(write_record(2, {{0}, {8}}), place(2));
  EXPECT_EQ(index.locate({{0}, {1}}, {3})[0].sequence, SequenceNumber{1});
  EXPECT_EQ(index.locate({{4}, {1}}, {3})[0].sequence, SequenceNumber{3});
  EXPECT_EQ(index.moment_of({2}).sequence, SequenceNumber{2}) << "a moment all the same";
}

TEST(MemoryIndex, AForgottenRollbackBringsNothingBack) {
  MemoryIndex index;
  index.insert(write_record(1, {{0}, {1}}), place(1));
  index.insert(write_record(2, {{0}, {1}}), place(2));
  index.insert(rollback_record(3, 1), place(3));
  EXPECT_EQ(index.last_rollback(), SequenceNumber{3});
  EXPECT_EQ(index.rollback_targets({2}), (std::vector<SequenceNumber>{{1}}));
  EXPECT_TRUE(index.rollback_targets({3}).empty());
  index.set_horizon({{3}, {300}});
  index.forget(write_record(1, {{0}, {1}}), place(1));
  index.forget(write_record(2, {{0}, {1}}), place(2));
  index.forget(rollback_record(3, 1), place(3));
  EXPECT_EQ(index.locate({{0}, {1}}, {3})[0].source, LocatedRun::Source::kBase);
}

TEST(MemoryIndex, ARebaseMakesBeforeImagesVoidWhereItReaches) {
  MemoryIndex index;
  index.insert(before_image({{2}, {8}}), place(5));
  Record rebase;
  rebase.type = RecordType::kRebase;
  rebase.extent = {{4}, {3}};
  index.insert(rebase, place(6));
  const BlockRange all{{0}, {12}};
  const auto found = by_block(index.locate(all, {0}), all);
  for (std::uint64_t block = 0; block < 12; ++block) {
    const bool kept = block == 2 || block == 3 || (block >= 7 && block <= 9);
    EXPECT_EQ(found[block].source, kept ? LocatedRun::Source::kLog : LocatedRun::Source::kBase)
        << block;
    if (kept) {
      EXPECT_EQ(found[block].payload_block, block - 2);
    }
  }
  index.insert(before_image({{4}, {3}}), place(7));
  EXPECT_EQ(index.locate({{5}, {1}}, {0})[0].location, place(7));
  index.forget(before_image({{2}, {8}}), place(5));
  EXPECT_EQ(index.locate({{2}, {1}}, {0})[0].source, LocatedRun::Source::kBase);
  EXPECT_EQ(index.locate({{5}, {1}}, {0})[0].location, place(7)) << "another's";
}

}  // namespace
}  // namespace mariner::index
