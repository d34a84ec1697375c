#include "index/lt_index.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <optional>
#include <random>

#include "tests/logging/log_testing.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {
namespace {

using index::BlockReader;
using index::Bosc;
using index::BTree;
using index::LtIndex;
using index::PlacedRun;
using index::RunVersion;

BlockRange blocks(std::uint64_t first, std::uint64_t count) {
  return {Lbn{first}, BlockCount{count}};
}

PlacedRun place(std::uint64_t sector, std::uint32_t payload_block = 0,
                PlacedRun::Kind kind = PlacedRun::Kind::kLog) {
  PlacedRun run;
  run.kind = kind;
  run.location = {sector, 7, 3, 2, 1};
  run.payload_block = payload_block;
  return run;
}

class LtIndexTest : public ::testing::Test {
 protected:
  void SetUp() override {
    index::IndexShape shape;
    shape.block_bytes = 4096;
    shape.group_blocks = 8;
    ASSERT_TRUE(index::format_index_file(disk_, shape));
    open();
  }
  void TearDown() override { close(); }

  void open() {
    index::BoscOptions options;
    options.memory_bytes = std::size_t{1} << 20;
    options.cache_bytes = std::size_t{64} << 10;
    options.run_blocks_max = 8;
    auto store = Bosc::open(executor_, disk_, options);
    ASSERT_TRUE(store);
    store_ = *std::move(store);
    auto tree = BTree::open(*store_, LtIndex::tree_options({1}));
    ASSERT_TRUE(tree);
    tree_ = *std::move(tree);
    index_ = std::make_unique<LtIndex>(*tree_);
    consult([&](BlockReader& reader) { index_->learn(reader); });
  }
  void close() {
    store_->drain(nullptr);
    executor_.run_until_idle();
    store_.reset();
    tree_.reset();
  }
  void consult(UniqueFunction<void(BlockReader&)> compute) {
    bool done = false;
    index::consult(*store_, std::move(compute), [&](const Result<void>& r) {
      ASSERT_TRUE(r);
      done = true;
    });
    executor_.run_ready();
    ASSERT_TRUE(done);
  }
  void commit() {
    bool done = false;
    store_->commit_all([&](const Result<void>& r) { done = r.has_value(); });
    executor_.run_until_idle();
    ASSERT_TRUE(done);
  }

  void insert(BlockRange range, const PlacedRun& at, std::uint64_t sequence) {
    index_->insert(range, at, {sequence}, ++number_);
    store_->set_used_through(number_);
    for (std::uint64_t i = 0; i < range.count.value && range.count.value <= 10'000; ++i) {
      model_[range.first.value + i][sequence] = at.advanced(i);
    }
  }
  std::vector<RunVersion> newest(BlockRange range, std::uint64_t after, std::uint64_t at) {
    std::vector<RunVersion> found;
    consult([&](BlockReader& reader) { found = index_->newest(reader, range, {{after}, {at}}); });
    return found;
  }
  // Block by block against the model.
  void compare(BlockRange range, std::uint64_t after, std::uint64_t at) {
    const std::vector<RunVersion> found = newest(range, after, at);
    std::size_t next = 0;
    for (std::uint64_t i = 0; i < range.count.value; ++i) {
      const std::uint64_t block = range.first.value + i;
      while (next < found.size() && found[next].range.end().value <= block) ++next;
      const bool has = next < found.size() && found[next].range.contains(Lbn{block});
      const auto versions = model_.find(block);
      std::optional<std::pair<std::uint64_t, PlacedRun>> expected;
      if (versions != model_.end()) {
        const auto behind = versions->second.upper_bound(at);
        if (behind != versions->second.begin() && std::prev(behind)->first > after) {
          expected = *std::prev(behind);
        }
      }
      ASSERT_EQ(has, expected.has_value()) << "block " << block;
      if (!has) continue;
      ASSERT_EQ(found[next].sequence.value, expected->first) << "block " << block;
      const std::uint64_t skipped = block - found[next].range.first.value;
      ASSERT_EQ(found[next].place.advanced(skipped), expected->second) << "block " << block;
    }
  }

  // All versions of the blocks of `ranges`, block by block against the model.
  void compare_all(const std::vector<BlockRange>& ranges, std::uint64_t after, std::uint64_t at) {
    std::vector<RunVersion> found;
    consult([&](BlockReader& reader) { found = index_->all(reader, ranges, {{after}, {at}}); });
    std::map<std::uint64_t, std::map<std::uint64_t, PlacedRun>> by_block;
    std::uint64_t last = 0;
    for (const RunVersion& version : found) {
      ASSERT_GE(version.sequence.value, last);
      last = version.sequence.value;
      for (std::uint64_t i = 0; i < version.range.count.value; ++i) {
        by_block[version.range.first.value + i][last] = version.place.advanced(i);
      }
    }
    std::map<std::uint64_t, std::map<std::uint64_t, PlacedRun>> expected;
    for (const BlockRange& range : ranges) {
      for (std::uint64_t block = range.first.value; block < range.end().value; ++block) {
        for (const auto& [sequence, placed] : model_[block]) {
          if (sequence > after && sequence <= at) expected[block][sequence] = placed;
        }
      }
    }
    ASSERT_EQ(by_block, expected);
  }

  ManualExecutor executor_;
  FaultyDisk disk_{executor_, {.size_bytes = std::uint64_t{64} << 20}};
  std::unique_ptr<Bosc> store_;
  std::unique_ptr<BTree> tree_;
  std::unique_ptr<LtIndex> index_;
  std::uint64_t number_ = 0;
  std::map<std::uint64_t, std::map<std::uint64_t, PlacedRun>> model_;
};

TEST_F(LtIndexTest, APlaceIsPackedAndUnpacked) {
  PlacedRun run = place((std::uint64_t{1} << 48) - 1, 65'535, PlacedRun::Kind::kRepeated);
  run.location.payload_offset = (1u << 24) - 1;
  run.location.slot = 511;
  run.location.header_sectors = 255;
  run.location.disk = 255;
  std::array<std::byte, index::kPlacedRunBytes> bytes{};
  pack_placed_run(run, bytes);
  EXPECT_EQ(index::unpack_placed_run(bytes), run);
}

// FORMAT.md section 7.
TEST_F(LtIndexTest, GoldenBytesAndKeys) {
  PlacedRun run;
  run.kind = PlacedRun::Kind::kReplacing;
  run.location = {0x060504030201, 0x0b0a09, 0x0d0c, 8, 7};
  run.payload_block = 0x0f0e;
  std::array<std::byte, index::kPlacedRunBytes> bytes{};
  pack_placed_run(run, bytes);
  EXPECT_EQ(logging::test::hex(bytes), "01020304 05060708 090a0b04 0c0d0e0f");
  EXPECT_EQ((index::AlignedRun{0, 5 * 512 + 7}.key()), 5u << 11 | 7u);
  EXPECT_EQ((index::AlignedRun{2, 5 * 8 + 7}.key()), 5u << 11 | 2u << 9 | 7u);
  EXPECT_EQ((index::AlignedRun{5, 9}.key()), std::uint64_t{1} << 41 | std::uint64_t{5} << 36 | 9u);
}

TEST_F(LtIndexTest, AnAlignedRunCostsOneEntry) {
  insert(blocks(4096, 64), place(100), 1);
  EXPECT_EQ(tree_->effective_count(), 1u);
  insert(blocks(4096 + 64, 512), place(200), 2);
  EXPECT_EQ(tree_->effective_count(), 1u + 8u);  // the next segment has begun
}

TEST_F(LtIndexTest, OverlapsAreExact) {
  insert(blocks(0, 4096), place(1), 1);
  insert(blocks(10, 3), place(2), 2);
  insert(blocks(8, 8), place(3), 3);
  insert(blocks(12, 1), place(4), 4);
  EXPECT_EQ(newest(blocks(11, 3), 0, 2),
            (std::vector<RunVersion>{{blocks(11, 2), {2}, place(2, 1)},
                                     {blocks(13, 1), {1}, place(1, 13)}}));
  EXPECT_EQ(newest(blocks(11, 3), 0, 9),
            (std::vector<RunVersion>{{blocks(11, 1), {3}, place(3, 3)},
                                     {blocks(12, 1), {4}, place(4)},
                                     {blocks(13, 1), {3}, place(3, 5)}}));
  EXPECT_TRUE(newest(blocks(11, 3), 4, 9).empty());
}

TEST_F(LtIndexTest, AVeryLargeRunIsFoundAfterARestartToo) {
  const std::uint64_t large = std::uint64_t{1} << 30;
  insert(blocks(0, large), place(0, 0, PlacedRun::Kind::kZero), 1);
  commit();
  close();
  open();
  const auto found = newest(blocks(large - 2, 4), 0, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].range, blocks(large - 2, 2));
}

TEST_F(LtIndexTest, ALongEmptyRangeIsSkipped) {
  insert(blocks(std::uint64_t{1} << 38, 1), place(5), 1);
  const auto found = newest(blocks(0, index::kIndexedBlocksMax), 0, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].range, blocks(std::uint64_t{1} << 38, 1));
  EXPECT_LT(store_->statistics().queries, 100u);
}

// As a whole disk that was trimmed: a run of zeros over everything, and little above it. To look at
// each of its blocks takes far longer than one turn may.
TEST_F(LtIndexTest, ALongRangeOfOneLargeRunTakesNoLongerThanWhatIsAboveIt) {
  const BlockRange disk = blocks(0, std::uint64_t{1} << 28);  // 1 TiB
  insert(disk, place(0, 0, PlacedRun::Kind::kZero), 1);
  const std::uint64_t middle = (std::uint64_t{1} << 27) + 4096 + 7;
  insert(blocks(middle, 2), place(5), 2);
  for (const bool committed : {false, true}) {
    SCOPED_TRACE(committed);
    const auto begun = std::chrono::steady_clock::now();
    const std::vector<RunVersion> found = newest(disk, 0, 2);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
    ASSERT_EQ(found.size(), 3u);
    EXPECT_EQ(found[0].range, blocks(0, middle));
    EXPECT_EQ(found[0].sequence, SequenceNumber{1});
    EXPECT_EQ(found[1], (RunVersion{blocks(middle, 2), {2}, place(5)}));
    EXPECT_EQ(found[2].range, BlockRange::between(Lbn{middle + 2}, disk.end()));
    EXPECT_EQ(newest(disk, 1, 2).size(), 1u) << "what is of no moment";
    commit();
  }
}

TEST_F(LtIndexTest, LongRangesAgreeWithAModelWhereMostOfThemIsOfLargeRuns) {
  std::mt19937_64 random(5);
  std::uint64_t sequence = 0;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 6; ++i) {
      insert(blocks(random() % 150'000, 4'000 + random() % 6'000),
             place(0, 0, PlacedRun::Kind::kZero), ++sequence);
      insert(blocks(random() % 150'000, 1 + random() % 3), place(1 + random() % 1'000), ++sequence);
    }
    if (round % 2 == 1) commit();
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t at = random() % (sequence + 1);
      compare(blocks(random() % 100'000, 1 + random() % 100'000), random() % (at + 1), at);
    }
    if (HasFatalFailure()) return;
  }
  close();
  open();
  compare(blocks(0, 170'000), 0, sequence);
}

TEST_F(LtIndexTest, AgreesWithAModel) {
  std::mt19937_64 random(11);
  std::uint64_t sequence = 0;
  for (int round = 0; round < 60; ++round) {
    for (int i = 0; i < 60; ++i) {
      const std::uint64_t count = random() % 4 == 0 ? 1 + random() % 3'000 : 1 + random() % 40;
      const auto kind = static_cast<PlacedRun::Kind>(random() % 3);
      insert(blocks(random() % 20'000, count), place(1 + random() % 1'000'000, 0, kind),
             ++sequence);
    }
    if (random() % 3 == 0) commit();
    for (int i = 0; i < 5; ++i) {
      const std::uint64_t at = random() % (sequence + 1);
      compare(blocks(random() % 20'000, 1 + random() % 2'000), random() % (at + 1), at);
      compare(blocks(random() % 20'000, 1), 0, at);
    }
    if (HasFatalFailure()) return;
  }
  for (int i = 0; i < 15; ++i) {
    std::vector<BlockRange> ranges;
    const std::uint64_t gap = std::uint64_t{1} << random() % 12;
    for (std::uint64_t next = random() % gap; next < 20'000; next += 1 + random() % gap) {
      const std::uint64_t count = 1 + random() % (random() % 10 == 0 ? 900 : 3);
      ranges.push_back(blocks(next, count));
      next += count;
    }
    const std::uint64_t after = random() % sequence;
    compare_all(ranges, after, after + 1 + random() % (sequence - after));
    if (HasFatalFailure()) return;
  }
  for (int i = 0; i < 50; ++i) {
    const std::uint64_t block = random() % 20'000;
    const std::uint64_t after = random() % sequence;
    const std::uint64_t at = after + random() % (sequence - after + 1);
    std::vector<std::pair<std::uint64_t, PlacedRun>> expected;
    for (const auto& version : model_[block]) {
      if (version.first > after && version.first <= at) expected.push_back(version);
    }
    std::vector<std::pair<std::uint64_t, PlacedRun>> found;
    consult([&](BlockReader& reader) {
      found.clear();
      for (const RunVersion& v : index_->versions(reader, Lbn{block}, {{after}, {at}})) {
        found.emplace_back(v.sequence.value, v.place);
      }
    });
    EXPECT_EQ(found, expected);
    for (const std::size_t most : {0u, 1u, 3u}) {
      std::vector<RunVersion> some;
      consult([&](BlockReader& reader) {
        some = index_->versions(reader, Lbn{block}, {{after}, {at}}, most);
      });
      ASSERT_EQ(some.size(), std::min(most, expected.size()));
      for (std::size_t each = 0; each < some.size(); ++each) {
        EXPECT_EQ(some[each].sequence.value, expected[each].first);
      }
    }
  }
}

}  // namespace
}  // namespace mariner::test
