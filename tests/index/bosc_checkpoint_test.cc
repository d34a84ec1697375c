// Checkpoints (bosc_checkpoint.cc): what a crash leaves, and what a damaged one is answered with.
// FORMAT.md section 4.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "index/bosc.h"
#include "proto/bytes.h"
#include "proto/crc32c.h"
#include "tests/index/bosc_rig.h"
#include "tests/logging/log_testing.h"

namespace mariner::test {
namespace {

using index::Bosc;
using index::IndexSuperblock;
using Remains = FaultyDisk::Remains;

// Its blocks 0 to `blocks` - 1 are on disk, and others have something queued.
void fill(BoscRig& rig) {
  for (std::uint32_t i = 0; i < rig.options.blocks; i += 2) rig.add(i, 0, i + 1);
}

TEST(BoscCheckpoint, ItsFrontierIsBelowTheOldestPendingNumber) {
  BoscRig rig;
  rig.add(1, 0);
  rig.add(2, 0);
  std::uint64_t told = 0;
  rig.store->on_checkpoint([&](std::uint64_t frontier) { told = frontier; });
  rig.disk->hold();
  rig.store->commit_all([](const Result<void>&) {});
  rig.turn(3);
  rig.add(2, 0);  // behind the run that is under way
  rig.add(3, 0);
  rig.disk->release();
  rig.executor.run_until_idle();
  EXPECT_EQ(told, 2u);
  EXPECT_EQ(rig.store->frontier(), 2u);
  ASSERT_TRUE(rig.commit_all());
  EXPECT_EQ(told, 4u);
}

TEST(BoscCheckpoint, WithNothingPendingItsFrontierIsWhatWasUsed) {
  BoscRig rig;
  rig.add(1, 0);
  rig.store->set_used_through(1'000);
  ASSERT_TRUE(rig.commit_all());
  EXPECT_EQ(rig.store->frontier(), 1'000u);
  rig.restart();
  EXPECT_EQ(rig.store->frontier(), 1'000u);
}

TEST(BoscCheckpoint, ItsFrontierGoesBackWhileABlockIsMadeAgain) {
  BoscRig rig;
  rig.add(1, 0);
  rig.add(2, 0);
  ASSERT_TRUE(rig.commit_all());
  ASSERT_EQ(rig.store->frontier(), 2u);
  rig.store->hold({3});
  rig.store->restore({3}, CounterFunction::change(1, 1));
  EXPECT_EQ(rig.commit_all().error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(rig.store->frontier(), 0u);
  EXPECT_FALSE(rig.store->on_disk({3}));
  rig.store->end_hold({3});
  ASSERT_TRUE(rig.commit_all());
  EXPECT_TRUE(rig.store->on_disk({3}));
  EXPECT_EQ(rig.store->frontier(), 2u);
}

TEST(BoscCheckpoint, NothingIsReplayedAfterACommitOfAll) {
  BoscRig rig;
  fill(rig);
  ASSERT_TRUE(rig.commit_all());
  rig.crash();
  EXPECT_EQ(rig.replayed, 0u);
  EXPECT_EQ(rig.compare(), "");
}

TEST(BoscCheckpoint, APowerCutAtAnyWriteAndAReplayGiveTheExactState) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    bool reached = true;
    for (std::uint64_t writes = 0; reached; ++writes) {
      BoscRig::Options options;
      options.seed = seed * 1'000 + writes;
      BoscRig rig(options);
      std::mt19937_64 random(seed);
      const auto some = [&] {
        for (int i = 0; i < 60; ++i) {
          rig.add(static_cast<std::uint32_t>(random() % 40),
                  static_cast<std::uint32_t>(random() % 16), random());
        }
      };
      some();
      ASSERT_TRUE(rig.commit_all());
      some();
      rig.disk->cut_power_after(writes);
      rig.store->commit_all([](const Result<void>&) {});
      for (int i = 0; i < 60; ++i) {
        if (i % 10 == 0) rig.add(static_cast<std::uint32_t>(random() % 40), 0);
        rig.turn(1);
      }
      reached = !rig.disk->powered();
      rig.crash();
      ASSERT_EQ(rig.compare(), "") << "seed " << seed << ", cut at write " << writes;
      ASSERT_TRUE(rig.commit_all());
      rig.crash();
      ASSERT_EQ(rig.compare(), "") << "seed " << seed << ", cut at write " << writes;
      EXPECT_EQ(rig.store->statistics().damaged, 0u);
    }
  }
}

TEST(BoscCheckpoint, APowerCutInAnyTurnAndAReplayGiveTheExactState) {
  for (std::size_t turns = 0; turns < 60; ++turns) {
    BoscRig::Options options;
    options.seed = turns + 1;
    BoscRig rig(options);
    fill(rig);
    ASSERT_TRUE(rig.commit_all());
    fill(rig);
    rig.store->commit_all([](const Result<void>&) {});
    rig.turn(turns);
    rig.crash();
    ASSERT_EQ(rig.compare(), "") << turns;
    EXPECT_EQ(rig.store->statistics().damaged, 0u);
  }
}

TEST(BoscCheckpoint, AFailedOneIsMadeAgain) {
  for (const Remains remains : {Remains::kNothing, Remains::kSomeSectors, Remains::kEverything}) {
    BoscRig rig;
    fill(rig);
    ASSERT_TRUE(rig.commit_all());
    rig.disk->fail_writes(1, remains);  // nothing but the checkpoint is to be written
    EXPECT_FALSE(rig.commit_all());
    EXPECT_EQ(rig.errors.size(), 1u);
    fill(rig);
    ASSERT_TRUE(rig.commit_all());
    rig.crash();
    EXPECT_EQ(rig.replayed, 0u);
    EXPECT_EQ(rig.compare(), "");
  }
}

TEST(BoscCheckpoint, ASuperblockIsWrittenUntilItStands) {
  BoscRig rig;
  fill(rig);
  ASSERT_TRUE(rig.commit_all());
  fill(rig);
  rig.store->commit_all([](const Result<void>&) {});
  const std::uint64_t checkpoints = rig.store->statistics().checkpoints;
  while (rig.store->statistics().checkpoints == checkpoints) rig.turn(1);
  rig.turn(2);  // its area is written, and the flush is under way
  rig.disk->fail_writes(3, Remains::kEverything);
  const std::uint64_t frontier = rig.store->frontier();
  rig.turn(20);
  EXPECT_EQ(rig.store->frontier(), frontier);
  EXPECT_EQ(rig.errors.size(), 1u);
  rig.executor.run_until_idle();
  EXPECT_EQ(rig.errors.size(), 3u);
  EXPECT_GT(rig.store->frontier(), frontier);
  rig.crash();
  EXPECT_EQ(rig.compare(), "");
}

// The older one then holds, of which some places may have been written since.
TEST(BoscCheckpoint, AfterADamagedSuperblockNothingWrongIsTakenForGood) {
  std::size_t refused = 0;
  std::size_t damaged = 0;
  std::size_t good = 0;
  for (std::uint64_t writes = 0; writes < 12; ++writes) {
    BoscRig rig;
    for (int i = 0; i < 3; ++i) {
      fill(rig);
      ASSERT_TRUE(rig.commit_all());
    }
    for (std::uint32_t i = 0; i < 40; i += 4) rig.add(i, 1);
    rig.disk->cut_power_after(writes);
    rig.store->commit_all([](const Result<void>&) {});
    rig.turn(100);
    rig.disk->cut_power();
    rig.close();
    rig.disk->restore_power();
    const IndexSuperblock newest = *index::read_index_superblock(*rig.disk);
    rig.disk->flip_bit(index::superblock_offset(newest.generation) + 100, 1);
    if (const auto opened = Bosc::open(rig.executor, *rig.disk, rig.options.store); !opened) {
      EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
      ++refused;
      continue;
    }
    rig.open();
    EXPECT_EQ(rig.store->frontier(), newest.generation == 3 ? 40u : 60u);
    for (std::uint32_t i = 0; i < 40; ++i) {
      const auto found = rig.read(i);
      ASSERT_TRUE(found ? *found == rig.model[i] : found.error().code == ErrorCode::kCorrupt);
      ++(found ? good : damaged);
    }
  }
  EXPECT_GT(refused, 0u);
  EXPECT_GT(damaged, 0u);
  EXPECT_GT(good, 0u);
}

// A store of `blocks` blocks of which the even ones are on disk, closed; and its last checkpoint.
class DamagedCheckpoint : public ::testing::Test {
 protected:
  void make(std::uint32_t blocks) {
    BoscRig::Options options;
    options.blocks = blocks;
    rig_ = std::make_unique<BoscRig>(options);
    fill(*rig_);
    CHECK(rig_->commit_all());
    rig_->close();
    superblock_ = *index::read_index_superblock(*rig_->disk);
    bytes_ = rig_->disk->bytes(
        {superblock_.area_offset(superblock_.generation), superblock_.checkpoint_bytes});
    used_ = 32 + blocks * std::size_t{24} + 16 + 4;
  }
  // Opens it with these bytes in its checkpoint's place, under a checksum that fits them: what
  // that fails with.
  std::optional<ErrorCode> open(const std::vector<std::byte>& bytes) {
    rig_->disk->overwrite(superblock_.area_offset(superblock_.generation), bytes);
    IndexSuperblock superblock = superblock_;
    superblock.checkpoint_bytes = bytes.size();
    superblock.checkpoint_crc = crc32c(bytes);
    std::vector<std::byte> block(kBlockBytes);
    for (const std::uint64_t ahead : {0u, 1u}) {
      superblock.generation = superblock_.generation + 2 * ahead;
      index::pack_index_superblock(superblock, block);
      rig_->disk->overwrite(index::superblock_offset(superblock.generation), block);
    }
    const auto opened = Bosc::open(rig_->executor, *rig_->disk, rig_->options.store);
    return opened ? std::nullopt : std::optional(opened.error().code);
  }

  std::unique_ptr<BoscRig> rig_;
  IndexSuperblock superblock_;
  std::vector<std::byte> bytes_;
  std::size_t used_ = 0;
};

TEST_F(DamagedCheckpoint, GoldenBytes) {
  make(2);
  EXPECT_EQ(bytes_.size(), kBlockBytes);
  EXPECT_EQ(logging::test::hex(std::span(bytes_).first(112)),
            "01000000 00000000 02000000 01000000\n"
            "00000000 00000000 00000000 00000000\n"
            "00000000 05000000 01000000 00000000\n"
            "01000000 00000000 01000000 05000000\n"
            "00000000 02000000 00000000 00000000\n"
            "05000000 00000000 04000000 00000000\n"
            "02000000 00000000 00000000 00000000");
  EXPECT_EQ(open(bytes_), std::nullopt);
}

TEST_F(DamagedCheckpoint, ABitThatIsFlippedIsFoundByTheChecksum) {
  make(2);
  const std::uint64_t area = superblock_.area_offset(superblock_.generation);
  for (const std::size_t bit : {0u, 300u, 900u, 32'767u}) {
    rig_->disk->flip_bit(area + bit / 8, bit % 8);
    const auto opened = Bosc::open(rig_->executor, *rig_->disk, rig_->options.store);
    ASSERT_FALSE(opened.has_value()) << bit;
    EXPECT_EQ(opened.error().code, ErrorCode::kCorrupt);
    EXPECT_EQ(opened.error().message, "the index's checkpoint fails its checksum");
    rig_->disk->flip_bit(area + bit / 8, bit % 8);
  }
}

TEST_F(DamagedCheckpoint, EveryTruncationIsOpenedOrCorrupt) {
  make(200);  // more than a block
  ASSERT_EQ(bytes_.size(), 2 * kBlockBytes);
  ASSERT_EQ(open(bytes_), std::nullopt);
  const std::vector<std::byte> cut(bytes_.begin(), bytes_.begin() + kBlockBytes);
  EXPECT_EQ(open(cut), ErrorCode::kCorrupt);
  const std::size_t entries_end = used_ - 20;
  std::vector<std::byte> zeroed = bytes_;
  for (std::size_t at = used_; at-- > 0;) {
    zeroed[at] = std::byte{0};
    const std::optional<ErrorCode> answer = open(zeroed);
    ASSERT_TRUE(!answer || answer == ErrorCode::kCorrupt);
    // What the function saved is anything; of no blocks and functions nothing is missing.
    if (at > entries_end || at <= 8) continue;
    ASSERT_EQ(answer, ErrorCode::kCorrupt) << "at " << at;
  }
}

TEST_F(DamagedCheckpoint, WhatBreaksATableIsCorrupt) {
  make(12);
  const auto with = [&](std::size_t at, std::uint32_t word) {
    std::vector<std::byte> bytes = bytes_;
    store_le(bytes.data() + at, word);
    return open(bytes);
  };
  constexpr std::size_t kThird = 32 + 2 * 24;
  ASSERT_EQ(with(kThird, 2), std::nullopt);
  EXPECT_EQ(with(kThird, 1), ErrorCode::kCorrupt) << "an address twice";
  EXPECT_EQ(with(kThird, 0), ErrorCode::kCorrupt) << "addresses out of order";
  EXPECT_EQ(with(32 + 11 * 24, superblock_.blocks), ErrorCode::kCorrupt) << "behind the last";
  EXPECT_EQ(with(kThird + 4, 0), ErrorCode::kCorrupt) << "of no function";
  EXPECT_EQ(with(kThird + 12, 3), ErrorCode::kCorrupt) << "in no place";
  EXPECT_EQ(with(8, 1'000), ErrorCode::kCorrupt) << "more blocks than follow";
  EXPECT_EQ(with(8, UINT32_MAX), ErrorCode::kCorrupt);
  EXPECT_EQ(with(used_ - 20, 0), ErrorCode::kCorrupt) << "a section of no function";
  EXPECT_EQ(with(used_ - 12, 4'096), ErrorCode::kCorrupt) << "a section behind the end";
  EXPECT_EQ(with(used_ - 8, UINT32_MAX), ErrorCode::kCorrupt) << "a section without end";
}

TEST_F(DamagedCheckpoint, GarbledOnesAreOpenedOrCorruptAndNothingElse) {
  make(12);
  std::mt19937_64 random(1);
  std::size_t corrupt = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> garbled = bytes_;
    for (std::uint64_t i = 1 + random() % 3; i > 0; --i) {
      garbled[random() % (used_ + 8)] ^= std::byte{1} << (random() % 8);
    }
    const std::optional<ErrorCode> answer = open(garbled);
    ASSERT_TRUE(!answer || answer == ErrorCode::kCorrupt);
    corrupt += answer == ErrorCode::kCorrupt ? 1 : 0;
  }
  EXPECT_GT(corrupt, 5'000u);
}

}  // namespace
}  // namespace mariner::test
