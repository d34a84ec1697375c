#include "server/volume/bounded_layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>

#include "tests/server/volume/volume_rig.h"

namespace mariner::volume {
namespace {

using test::VolumeRig;

constexpr std::uint64_t kBlocks = 64;
constexpr std::uint64_t kBlocksMax = 20;  // of the overlay
constexpr std::uint64_t kSector = 512;

class BoundedLayerTest : public ::testing::Test {
 protected:
  BoundedLayerTest() {
    rig_.start();
    write(rig_.volume().live(), blocks(0, 4));
    rig_.add_overlay(SequenceNumber{1});
    bound();
  }
  void bound() {
    rig_.overlay()->bound(kBlocksMax * kBlockBytes, [this](std::uint64_t used) {
      ++warnings_;
      warned_at_ = used;
    });
    rig_.manual().run_ready();
  }
  void restart() {
    rig_.crash();
    rig_.start();
    bound();
  }
  static ByteRange blocks(std::uint64_t first, std::uint64_t count) {
    return {first * kBlockBytes, count * kBlockBytes};
  }
  static PayloadSlice filled(std::uint64_t bytes, char byte) {
    Payload data = Payload::allocate(bytes);
    std::fill_n(data.data(), bytes, static_cast<std::byte>(byte));
    return {data, 0, bytes};
  }
  std::shared_ptr<Layer> layer() { return rig_.overlay()->live_layer(); }
  std::optional<std::uint64_t> used() {
    const auto bytes = rig_.overlay()->filled_bytes();
    return bytes ? std::optional(*bytes / kBlockBytes) : std::nullopt;
  }
  Result<void> write(Layer& to, ByteRange range) {
    std::optional<Result<void>> result;
    to.write(range, filled(range.length, 'w'), [&](Result<void> r) { result = std::move(r); });
    rig_.manual().run_ready();
    EXPECT_TRUE(result.has_value());
    return std::move(result).value_or(Result<void>{});
  }
  Result<void> write(ByteRange range) { return write(*layer(), range); }
  char read(std::uint64_t block) {
    char byte = 0;
    layer()->read(blocks(block, 1), [&](const Result<PayloadSlice>& r) {
      if (r) byte = static_cast<char>(r->bytes()[0]);
    });
    rig_.manual().run_ready();
    return byte;
  }

  VolumeRig rig_{{.blocks = kBlocks, .blocks_max = kBlocks}};
  int warnings_ = 0;
  std::uint64_t warned_at_ = 0;
};

TEST_F(BoundedLayerTest, WhatWouldFillMoreThanTheBoundFailsAndIsNotThere) {
  EXPECT_EQ(used(), 0u) << "what the view stands on does not count";
  ASSERT_TRUE(write(blocks(10, kBlocksMax - 1)));
  EXPECT_EQ(write(blocks(40, 2)).error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(read(40), '\0');
  EXPECT_TRUE(write(blocks(40, 1))) << "one is left";
  EXPECT_EQ(used(), kBlocksMax);
  EXPECT_EQ(write(blocks(41, 1)).error().code, ErrorCode::kNoSpace);
  EXPECT_EQ(read(0), 'w') << "and reads go on";
}

TEST_F(BoundedLayerTest, AFullOneCanBeOverwrittenAndTrimmed) {
  ASSERT_TRUE(write(blocks(10, kBlocksMax)));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(write(blocks(10, kBlocksMax)));
  EXPECT_EQ(used(), kBlocksMax);
  bool trimmed = false;
  layer()->trim(blocks(0, kBlocks), TrimMode::kUnmap,
                [&](const Result<void>& r) { trimmed = r.has_value(); });
  rig_.manual().run_ready();
  EXPECT_TRUE(trimmed);
  EXPECT_EQ(used(), 0u);
  EXPECT_TRUE(write(blocks(30, kBlocksMax)));
}

TEST_F(BoundedLayerTest, SaysOnceThatItFillsUp) {
  ASSERT_TRUE(write(blocks(10, 17)));
  EXPECT_EQ(warnings_, 0);
  ASSERT_TRUE(write(blocks(40, 1)));
  EXPECT_EQ(warnings_, 1);
  EXPECT_EQ(warned_at_, 18 * kBlockBytes);
  ASSERT_TRUE(write(blocks(41, 1)));
  EXPECT_EQ(warnings_, 1);
}

TEST_F(BoundedLayerTest, WhatIsThereIsCountedAgainAfterACrash) {
  ASSERT_TRUE(write(blocks(10, 7)));
  ASSERT_TRUE(write(blocks(12, 2)));
  for (int i = 0; i < 2; ++i) {
    restart();
    EXPECT_EQ(used(), 7u);
  }
  EXPECT_EQ(write(blocks(20, kBlocksMax)).error().code, ErrorCode::kNoSpace);
}

TEST_F(BoundedLayerTest, WritesWaitUntilWhatIsThereIsCounted) {
  ASSERT_TRUE(write(blocks(10, kBlocksMax)));
  rig_.crash();
  rig_.start();
  rig_.overlay()->bound(kBlocksMax * kBlockBytes, nullptr);
  std::optional<Result<void>> result;
  layer()->write(blocks(40, 1), filled(kBlockBytes, 'w'),
                 [&](Result<void> r) { result = std::move(r); });
  rig_.manual().run_ready();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->error().code, ErrorCode::kNoSpace);
}

TEST_F(BoundedLayerTest, ClosedItRefusesAndEnds) {
  rig_.overlay()->close({ErrorCode::kNotFound, "the view was unexposed"});
  EXPECT_EQ(write(blocks(10, 1)).error().code, ErrorCode::kNotFound);
  EXPECT_TRUE(rig_.overlay()->idle());
}

TEST_F(BoundedLayerTest, SettlesBehindWhatWaits) {
  int order = 0;
  int written = 0;
  int settled = 0;
  const std::shared_ptr<Layer> to = layer();
  for (int i = 0; i < 2; ++i) {  // the second waits for the first one's blocks
    to->write(blocks(10, 1), filled(kBlockBytes, 'w'),
              [&](const Result<void>&) { written = ++order; });
  }
  to->settle([&](const Result<void>&) { settled = ++order; });
  rig_.manual().run_ready();
  EXPECT_EQ(written, 2);
  EXPECT_EQ(settled, 3);
}

// Any operations, many at a time, beside a model of which blocks are filled.
class BoundedLayerModel : public BoundedLayerTest, public ::testing::WithParamInterface<int> {
 protected:
  using Set = std::set<std::uint64_t>;
  std::uint64_t any(std::uint64_t below) { return random_() % below; }
  static void fill(Set& set, const BlockRange& range) {
    for (std::uint64_t i = 0; i < range.count.value; ++i) set.insert(range.first.value + i);
  }
  static void zero(Set& set, const BlockRange& range) {
    for (std::uint64_t i = 0; i < range.count.value; ++i) set.erase(range.first.value + i);
  }
  ByteRange any_range() {
    const std::uint64_t sectors = kBlocks * kBlockBytes / kSector;
    if (any(2) == 0) {
      const std::uint64_t first = any(kBlocks);
      return blocks(first, 1 + any(std::min<std::uint64_t>(6, kBlocks - first)));
    }
    const std::uint64_t first = any(sectors);
    return {first * kSector, (1 + any(std::min<std::uint64_t>(40, sectors - first))) * kSector};
  }

  // Overlapping ones end in the order in which they began.
  void begin_any(Layer& to) {
    const ByteRange range = any_range();
    const BlockRange all = range.covering_blocks();
    const BlockRange inner = range.inner_blocks();
    const auto ended = [this](auto change) {
      ++under_way_;
      return [this, change](const Result<void>& result) {
        --under_way_;
        if (result) return change(filled_);
        EXPECT_EQ(result.error().code, ErrorCode::kNoSpace);
        ++refused_;
      };
    };
    const auto fills = [all](Set& set) { fill(set, all); };
    const auto zeros = [all, inner](Set& set) {
      fill(set, all);
      zero(set, inner);
    };
    switch (any(6)) {
      case 0:
      case 1: return to.write(range, filled(range.length, 'a'), ended(fills));
      case 2: return to.write_same(range, filled(kSector, 'b'), ended(fills));
      case 3: return to.write_same(range, filled(kSector, '\0'), ended(zeros));
      case 4: {
        const bool changes = any(2) == 0;
        return to.update(
            range,
            [changes, length = range.length](const PayloadSlice&) {
              return changes ? std::optional(filled(length, 'c')) : std::nullopt;
            },
            ended([all, changes](Set& set) {
              if (changes) fill(set, all);
            }));
      }
      default: {
        const auto mode = any(2) == 0 ? TrimMode::kUnmap : TrimMode::kZero;
        return to.trim(range, mode, ended([=](Set& set) {
                         if (mode == TrimMode::kZero) return zeros(set);
                         zero(set, inner);
                       }));
      }
    }
  }

  std::mt19937_64 random_{static_cast<std::uint64_t>(GetParam())};
  Set filled_;
  int under_way_ = 0;
  int refused_ = 0;
};

TEST_P(BoundedLayerModel, CountsWhatIsFilled) {
  for (int round = 0; round < 300; ++round) {
    for (std::uint64_t i = 1 + any(8); i > 0; --i) begin_any(*layer());
    rig_.manual().run_until_idle();
    ASSERT_EQ(under_way_, 0);
    ASSERT_EQ(used(), filled_.size()) << "round " << round;
    ASSERT_LE(filled_.size(), kBlocksMax);
    if (round % 50 == 49) {
      restart();
      ASSERT_EQ(used(), filled_.size()) << "after a crash";
    }
  }
  EXPECT_GT(refused_, 0);
}

INSTANTIATE_TEST_SUITE_P(Seeds, BoundedLayerModel, ::testing::Range(1, 9));

}  // namespace
}  // namespace mariner::volume
