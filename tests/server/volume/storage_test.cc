#include "server/volume/storage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/server/volume/storage_fixture.h"

namespace mariner::volume {
namespace {

using test::Sectors;
using test::VolumeRig;

TEST_F(StorageTest, TooMuchLagHoldsWritesUntilItIsApplied) {
  make({.storage = {.lag_bytes_max = 8 * kBlockBytes}});
  rig_->image_disk().fail_writes(1000, test::FaultyDisk::Remains::kNothing);
  for (std::uint64_t i = 0; i < 8; ++i) {
    write(i, 1, i + 1);
    run();
  }
  EXPECT_EQ(written_, 8);
  write(20, 1, 99);
  run();
  EXPECT_EQ(written_, 8) << "held";
  EXPECT_GT(rig_->apply_failures(), 0u);
  rig_->image_disk().fail_writes(0, test::FaultyDisk::Remains::kNothing);
  rig_->manual().advance(std::chrono::seconds(2));
  EXPECT_EQ(written_, 9);
}

// What leaves the pending writes is in the image by then, durably; durable() waits for all of it.
TEST_F(StorageTest, WhatIsFlushedLeavesPortionByPortion) {
  make({.storage = {.apply_delay = std::chrono::milliseconds(1), .portion_bytes_max = kPortion}});
  const std::uint64_t before = Payload::total_bytes();
  for (std::uint64_t i = 0; i < kBlocks; i += 2) write(i, 2, 100 + i);
  run();
  rig_->worker().set_duration([] { return std::chrono::milliseconds(1); });
  std::uint64_t lag = storage().lag_bytes();
  std::uint64_t steps = 0;
  EXPECT_EQ(lag, kBlocks * kBlockBytes);
  for (int i = 0; i < 1000 && lag > 0; ++i) {
    rig_->manual().advance(std::chrono::microseconds(500));
    ASSERT_LE(storage().lag_bytes(), lag);
    ASSERT_LE(lag - storage().lag_bytes(), kPortion);
    steps += storage().lag_bytes() < lag ? 1 : 0;
    lag = storage().lag_bytes();
    // The worker and the last read hold some beyond what is pending.
    EXPECT_LE(Payload::total_bytes() - before, lag + 2 * kPortion);
    for (std::uint64_t block = 0; block < kBlocks; ++block) {
      ASSERT_EQ(tag(block), 100 + block / 2 * 2) << "block " << block << ", lag " << lag;
    }
    EXPECT_EQ(storage().durable(), SequenceNumber{lag == 0 ? kBlocks / 2 : 0});
  }
  EXPECT_EQ(steps, kBlocks * kBlockBytes / kPortion);
}

TEST_F(StorageTest, WhatHadLeftIsThereAfterAPowerCut) {
  make({.storage = {.apply_delay = std::chrono::milliseconds(1), .portion_bytes_max = kPortion}});
  for (std::uint64_t i = 0; i < kBlocks; i += 4) write(i, 4, 10 + i);
  run();
  rig_->worker().set_duration([] { return std::chrono::milliseconds(1); });
  while (storage().lag_bytes() > kBlocks * kBlockBytes / 2) {
    rig_->manual().advance(std::chrono::milliseconds(1));
  }
  rig_->crash();
  for (std::uint64_t block = 0; block < kBlocks / 2; ++block) {
    EXPECT_EQ(in_image(block), 10 + block / 4 * 4) << "it was flushed";
  }
  rig_->start();
  EXPECT_EQ(storage().durable(), SequenceNumber{0});
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    EXPECT_EQ(tag(block), 10 + block / 4 * 4);
  }
}

TEST_F(StorageTest, AFailureAmidAppliesTheRestAgain) {
  make({.storage = {.apply_delay = std::chrono::milliseconds(1), .portion_bytes_max = kPortion}});
  for (std::uint64_t i = 0; i < kBlocks; i += 4) write(i, 4, 10 + i);
  run();
  rig_->worker().set_duration([] { return std::chrono::milliseconds(1); });
  while (storage().lag_bytes() > kBlocks * kBlockBytes / 2) {
    rig_->manual().advance(std::chrono::milliseconds(1));
  }
  rig_->image_disk().fail_writes(1, test::FaultyDisk::Remains::kSomeSectors);
  rig_->manual().advance(std::chrono::milliseconds(100));
  EXPECT_EQ(rig_->apply_failures(), 1u);
  EXPECT_GT(storage().lag_bytes(), 0u);
  const std::size_t writes = rig_->image_disk().writes().size();
  for (std::uint64_t block = 0; block < kBlocks; ++block) {
    EXPECT_EQ(tag(block), 10 + block / 4 * 4);
  }
  drain();
  EXPECT_EQ(storage().durable(), SequenceNumber{kBlocks / 4});
  for (std::size_t i = writes; i < rig_->image_disk().writes().size(); ++i) {
    EXPECT_GE(rig_->image_disk().writes()[i].offset, kBlocks * kBlockBytes / 2) << "once is enough";
  }
}

// With far more pending than memory holds: what moves to the backlog, and leaves, some runs in a
// turn, is read in any of these turns, and written to.
class StorageSomeInATurn : public StorageTest {
 protected:
  static constexpr std::uint64_t kVolume = 1024;

  void make_seeded(unsigned seed) {
    random_.seed(seed);
    make({.seed = seed,
          .blocks = kVolume,
          .index_delay_max = std::chrono::microseconds(seed % 5 * 300),
          .index_small = seed % 2 == 0,
          .storage = {.pending_memory_max = (1 + seed % 8) * 16 * kBlockBytes,
                      .apply_delay = std::chrono::microseconds(100),
                      .portion_bytes_max = (1 + seed % 3) * 100 * kBlockBytes,
                      .unordered_bytes_max = seed % 4 < 2 ? 0 : kVolume * kBlockBytes}});
    const std::uint64_t longest = std::array{1u, 50u, 500u}[seed % 3];
    rig_->worker().set_duration(
        [this, longest] { return std::chrono::microseconds(random_() % longest); });
  }
  void write_some(std::uint64_t tag) {
    for (std::uint64_t i = random_() % 100; i > 0; --i) {
      const std::uint64_t first = random_() % (kVolume - 4);
      const std::uint64_t blocks = 1 + random_() % 4;
      write(first, blocks, tag);
      std::fill_n(model_.begin() + static_cast<std::ptrdiff_t>(first), blocks, tag);
      ++begun_;
    }
    for (int turn = 0; turn < 100'000 && written_ < begun_; ++turn) {
      if (rig_->manual().turn() == 0) rig_->manual().advance(std::chrono::microseconds(10));
    }
    ASSERT_EQ(written_, begun_);
  }
  void remember() { remembered_ = {rig_->volume().logged().index().newest().sequence, model_}; }
  void roll_back() {
    bool done = false;
    rig_->volume().live().rollback({remembered_.sequence, {}},
                                   [&](const Result<replication::Stamp>& r) {
                                     EXPECT_TRUE(r) << r.error().message;
                                     done = true;
                                   });
    for (int turn = 0; turn < 100'000 && !done; ++turn) {
      if (rig_->manual().turn() == 0) rig_->manual().advance(std::chrono::microseconds(10));
    }
    ASSERT_TRUE(done);
    model_ = remembered_.model;
  }
  // In as few turns as it takes.
  std::uint64_t read(std::uint64_t block) {
    std::optional<std::uint64_t> found;
    storage().read({{block}, {1}}, [&](const Result<PayloadSlice>& read) {
      found = ~0ull;
      if (read) std::memcpy(&*found, read->bytes().data(), sizeof *found);
    });
    while (!found) {
      if (rig_->manual().turn() == 0) rig_->manual().advance(std::chrono::microseconds(10));
    }
    return *found;
  }

  struct Remembered {
    SequenceNumber sequence;
    std::vector<std::uint64_t> model = std::vector<std::uint64_t>(kVolume);
  };

  std::mt19937 random_;
  std::vector<std::uint64_t> model_ = std::vector<std::uint64_t>(kVolume);
  Remembered remembered_;
  int begun_ = 0;
};

TEST_F(StorageSomeInATurn, IsReadWrittenAndRolledBackMeanwhile) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::ranges::fill(model_, 0);
    remembered_ = {};
    written_ = begun_ = 0;
    make_seeded(seed);
    for (std::uint64_t round = 1; round <= 30; ++round) {
      if (random_() % 4 != 0) write_some(round);
      if (random_() % 12 == 0) remember();
      if (random_() % 3 == 0) roll_back();
      if (HasFatalFailure()) return;
      for (std::uint64_t i = random_() % 4; i > 0; --i) {
        const std::uint64_t block = random_() % kVolume;
        ASSERT_EQ(read(block), model_[block]) << "block " << block << ", round " << round;
      }
      if (random_() % 3 == 0) rig_->manual().advance(std::chrono::microseconds(random_() % 1000));
      if (random_() % 50 == 0) {
        rig_->image_disk().fail_writes(1, test::FaultyDisk::Remains::kSomeSectors);
      }
      if (random_() % 60 == 0) {
        rig_->crash();
        rig_->start();
      }
    }
    rig_->image_disk().fail_writes(0, test::FaultyDisk::Remains::kNothing);
    drain();
    for (std::uint64_t block = 0; block < kVolume; ++block) {
      ASSERT_EQ(in_image(block), model_[block]) << "block " << block;
    }
    rig_.reset();
  }
}

// A writer that is four times as fast as the image, which takes 40 MB a second.
class SustainedWriting : public StorageTest {
 protected:
  static constexpr std::uint64_t kVolume = 4096;
  static constexpr std::uint64_t kWrite = 4;
  static constexpr std::uint64_t kLagMax = 4u << 20;
  static constexpr std::uint64_t kMemory = 1u << 20;
  static constexpr auto kPerBlock = std::chrono::microseconds(100);

  SustainedWriting() {
    make({.blocks = kVolume,
          .log_delay_max = std::chrono::microseconds(50),
          .storage = {.pending_memory_max = kMemory,
                      .lag_bytes_max = kLagMax,
                      .apply_delay = std::chrono::milliseconds(5),
                      .portion_bytes_max = 128u << 10}});
    rig_->worker().set_duration([this] {
      std::uint64_t blocks = 0;
      const auto& writes = rig_->image_disk().writes();
      for (; seen_ < writes.size(); ++seen_) blocks += writes[seen_].length / kBlockBytes;
      return std::chrono::nanoseconds(kPerBlock * blocks);
    });
  }
  // Begins the next write of the sequential load, and another one when it is answered.
  void write_on() {
    if (!on_) return;
    const std::uint64_t first = next_;
    next_ = (next_ + kWrite) % kVolume;
    const auto data = Payload::zeroed(kWrite * kBlockBytes);
    rig_->volume().live().write({first * kBlockBytes, data.size()}, {data, 0, data.size()},
                                [this](const Result<void>& r) {
                                  ASSERT_TRUE(r);
                                  answered();
                                });
  }
  void answered() {
    const auto now = rig_->manual().monotonic_time();
    longest_gap_ = std::max(longest_gap_, now - last_);
    last_ = now;
    bytes_ += kWrite * kBlockBytes;
    lag_max_ = std::max(lag_max_, storage().lag_bytes());
    // Four of them write four times as fast as the image takes it.
    rig_->executor().after(kWrite * kPerBlock, [this] { write_on(); });
  }
  void begin(int depth) {
    last_ = rig_->manual().monotonic_time();
    for (int i = 0; i < depth; ++i) write_on();
  }
  void advance(std::chrono::milliseconds time) {
    bytes_ = 0;
    lag_max_ = 0;
    longest_gap_ = {};
    rig_->manual().advance(time);
  }
  double share_of_image_rate(std::chrono::milliseconds time) const {
    const auto blocks = static_cast<double>(bytes_ / kBlockBytes);
    return blocks * static_cast<double>(std::chrono::nanoseconds(kPerBlock).count()) /
           static_cast<double>(std::chrono::nanoseconds(time).count());
  }

  bool on_ = true;
  std::size_t seen_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t lag_max_ = 0;
  std::chrono::nanoseconds last_{0};
  std::chrono::nanoseconds longest_gap_{0};
};

TEST_F(SustainedWriting, HasNoLongPauseAndConvergesToTheImagesRateFromMemory) {
  begin(4);
  advance(std::chrono::milliseconds(200));  // the burst, and the brake
  EXPECT_GE(lag_max_, kLagMax / 2) << "a burst is not slowed";
  EXPECT_LT(lag_max_, kLagMax);
  EXPECT_TRUE(storage().pacing());
  EXPECT_LT(longest_gap_, std::chrono::milliseconds(5));
  advance(std::chrono::milliseconds(200));
  EXPECT_GT(share_of_image_rate(std::chrono::milliseconds(200)), 0.4);
  EXPECT_LT(longest_gap_, std::chrono::milliseconds(5));
  advance(std::chrono::milliseconds(200));
  EXPECT_GT(share_of_image_rate(std::chrono::milliseconds(200)), 0.9);
  EXPECT_LT(longest_gap_, std::chrono::milliseconds(5));
  EXPECT_LT(lag_max_, kMemory) << "so that none of it is read back from the log";
  on_ = false;
  drain();
}

TEST_F(SustainedWriting, ALightWriterIsNeverSlowed) {
  for (int i = 0; i < 300; ++i) {
    write(static_cast<std::uint64_t>(i) * 4, 4, 1);
    ASSERT_EQ(rig_->volume().replicator().coordinator().waiting(), 0u) << "write " << i;
    rig_->manual().advance(std::chrono::microseconds(500));
  }
  EXPECT_FALSE(storage().pacing());
  drain();
}

TEST_F(SustainedWriting, ALightWriterBehindABurstIsNotSlowed) {
  begin(4);
  advance(std::chrono::milliseconds(40));
  on_ = false;
  rig_->manual().advance(std::chrono::milliseconds(20));
  ASSERT_TRUE(storage().pacing());
  for (int i = 0; i < 50; ++i) {
    write(static_cast<std::uint64_t>(i) * 4, 4, 1);
    ASSERT_EQ(rig_->volume().replicator().coordinator().waiting(), 0u) << "write " << i;
    rig_->manual().advance(std::chrono::milliseconds(2));
  }
  drain();
}

TEST_F(SustainedWriting, WhatIsOnItsWayCountsAsLag) {
  rig_->log_disk().hold();
  for (std::uint64_t i = 0; i < 400; ++i) {
    write(i * kWrite, kWrite, 1);
    run();
  }
  EXPECT_EQ(rig_->volume().replicator().coordinator().in_flight(),
            kLagMax / (kWrite * kBlockBytes));
  rig_->log_disk().release();
  rig_->manual().advance(std::chrono::seconds(1));
  EXPECT_EQ(written_, 400);
  drain();
}

TEST_F(SustainedWriting, AnImageThatStandsStillIsNeverOutrunByMoreThanTheBound) {
  rig_->image_disk().fail_writes(1u << 30, test::FaultyDisk::Remains::kNothing);
  begin(16);
  advance(std::chrono::milliseconds(500));
  EXPECT_GE(storage().lag_bytes(), kLagMax);
  EXPECT_LT(storage().lag_bytes(), kLagMax + kWrite * kBlockBytes);
  const std::uint64_t answered = bytes_;
  rig_->manual().advance(std::chrono::milliseconds(500));
  EXPECT_EQ(bytes_, answered);
  rig_->image_disk().fail_writes(0, test::FaultyDisk::Remains::kNothing);
  for (int i = 0; i < 200 && bytes_ == answered; ++i) {
    rig_->manual().advance(std::chrono::milliseconds(10));
  }
  EXPECT_GT(bytes_, answered) << "and goes on";
  on_ = false;
  drain();
}

// The image cannot be written without the log, which has its before-images, and so the lag can
// never fall.
TEST_F(StorageTest, WhoWaitsForTheImageIsToldThatTheLogHasFailed) {
  make({.base_in_image = true, .storage = {.lag_bytes_max = 8 * kBlockBytes}});
  rig_->worker().set_duration([] { return std::chrono::milliseconds(10); });
  for (std::uint64_t i = 0; i < 8; ++i) write(i, 1, i + 1);
  run();
  EXPECT_EQ(written_, 8);
  const auto answer = std::make_shared<std::optional<Result<void>>>();
  const Payload data = Payload::zeroed(kBlockBytes);
  rig_->volume().live().write({0, kBlockBytes}, {data, 0, kBlockBytes},
                              [answer](const Result<void>& result) { *answer = result; });
  run();
  EXPECT_FALSE(*answer) << "it waits";
  rig_->log_disk().fail_writes(2, test::FaultyDisk::Remains::kNothing);
  rig_->manual().advance(std::chrono::seconds(3));
  ASSERT_TRUE(*answer);
  EXPECT_EQ((*answer)->error().code, ErrorCode::kIo);
}

TEST_F(StorageTest, AFailedApplyIsTriedAgainAndNothingIsDurableBefore) {
  make({.storage = {.apply_delay = std::chrono::milliseconds(1)}});
  rig_->image_disk().fail_writes(2, test::FaultyDisk::Remains::kSomeSectors);
  write(1, 4, 5);
  rig_->manual().advance(std::chrono::milliseconds(500));
  EXPECT_EQ(storage().durable(), SequenceNumber{0});
  EXPECT_EQ(tag(2), 5u);
  rig_->manual().advance(std::chrono::seconds(3));
  EXPECT_EQ(rig_->apply_failures(), 2u);
  EXPECT_EQ(storage().durable(), SequenceNumber{1});
  EXPECT_EQ(in_image(2), 5u);
}

TEST_F(StorageTest, DrainsAtOnceWhenThereIsNothing) {
  make({});
  bool drained = false;
  storage().drain([&](const Result<void>&) { drained = true; });
  EXPECT_TRUE(drained);
}

TEST_F(StorageTest, ARollbackThatMovesNothingRestoresNothingAndIsInTheImage) {
  make({.storage = {.apply_delay = std::chrono::milliseconds(1)}});
  rig_->volume().live().rollback({}, [](const Result<replication::Stamp>&) {});
  run();
  EXPECT_FALSE(storage().restoring());
  rig_->manual().advance(std::chrono::milliseconds(10));
  EXPECT_EQ(storage().durable(), SequenceNumber{1});
}

TEST_F(StorageTest, ARollbackTakesEffectBeforeItIsRestored) {
  make({.storage = {.apply_delay = std::chrono::seconds(1)}});
  write(1, 2, 5);
  run();
  drain();
  write(2, 2, 6);
  run();
  rig_->image_disk().fail_writes(1, test::FaultyDisk::Remains::kNothing);  // for a while
  rig_->volume().live().rollback({SequenceNumber{1}, {}}, [](const Result<replication::Stamp>&) {});
  run();
  EXPECT_TRUE(storage().restoring());
  EXPECT_EQ(tag(2), 5u);
  EXPECT_EQ(tag(3), 0u);
  drain();
  EXPECT_FALSE(storage().restoring());
  EXPECT_EQ(in_image(2), 5u);
  EXPECT_EQ(in_image(3), 0u);
}

TEST_F(StorageTest, AfterARestartWhatTheImageLacksIsApplied) {
  make({.storage = {.apply_delay = std::chrono::seconds(9)}});
  write(1, 3, 5);
  run();
  rig_->crash();
  rig_->start();
  EXPECT_EQ(tag(2), 5u);
  EXPECT_EQ(in_image(2), 0u);
  drain();
  EXPECT_EQ(in_image(2), 5u);
}

TEST_F(StorageTest, StoppingFailsDrainsAndKeepsThePendingReadable) {
  make({.storage = {.apply_delay = std::chrono::seconds(9)}});
  write(1, 1, 5);
  run();
  std::optional<ErrorCode> drained;
  storage().drain([&](const Result<void>& r) { drained = r.error().code; });
  storage().stop();
  EXPECT_EQ(drained, ErrorCode::kAborted);
  rig_->manual().advance(std::chrono::seconds(20));
  EXPECT_TRUE(storage().idle());
  EXPECT_EQ(tag(1), 5u);
}

}  // namespace
}  // namespace mariner::volume
