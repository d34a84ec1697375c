#include "server/volume/served_volume.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <memory>
#include <optional>

#include "tests/server/volume/asked_history.h"
#include "tests/support/manual_executor.h"

namespace mariner::volume {
namespace {

using replication::Stamp;
using replication::VoidMessage;
using replication::WriteMessage;
using test::AskedHistory;

constexpr std::uint64_t kSize = 16 * kBlockBytes;

// What is elsewhere, as a target sees it: everything waits for the test.
class Elsewhere final : public replication::LoggerParticipant,
                        public replication::StorageParticipant,
                        public CurrentReader {
 public:
  void log(const WriteMessage& message, Done done) override {
    writes.push_back({message, std::move(done)});
  }
  void log_void(const VoidMessage& message, Done done) override {
    voids.push_back({message, std::move(done)});
  }
  void prepare(const WriteMessage& message) override { prepared.push_back(message); }
  void drop(const VoidMessage&) override {}
  void commit(SequenceNumber settled) override { committed = settled; }
  void read(BlockRange range, ReadDone done) override {
    Payload payload = Payload::zeroed(range.count.bytes());
    const std::size_t length = payload.size();
    done(PayloadSlice{std::move(payload), 0, length});
  }

  struct Write {
    WriteMessage message;
    Done done;
  };
  struct Void {
    VoidMessage message;
    Done done;
  };
  std::deque<Write> writes;
  std::deque<Void> voids;
  std::vector<WriteMessage> prepared;
  SequenceNumber committed;
};

class ServedVolumeTest : public ::testing::Test {
 protected:
  ~ServedVolumeTest() override {
    if (served_ == nullptr) return;
    served_->close(Error{ErrorCode::kUnavailable, "closing"});
    EXPECT_TRUE(served_->idle());
  }
  void make(const VolumeHistory& history) {
    served_ = std::make_unique<ServedVolume>(
        kSize, ServedVolume::begin_behind(history, VolumeId{7}, Epoch{3}, VersionTime{1}),
        replication::WriteCoordinator::Limits{},
        ServedVolume::Parts{elsewhere_, &elsewhere_, elsewhere_, history_, executor_});
  }
  void write(std::uint64_t block) {
    served_->live().write({block * kBlockBytes, kBlockBytes},
                          {Payload::zeroed(kBlockBytes), 0, kBlockBytes},
                          [this](const Result<void>& r) { answered_ += r ? 1 : 100; });
  }
  void logged() {
    Elsewhere::Write write = std::move(elsewhere_.writes.front());
    elsewhere_.writes.pop_front();
    write.done({});
  }

  test::ManualExecutor executor_;
  Elsewhere elsewhere_;
  AskedHistory history_;
  std::unique_ptr<ServedVolume> served_;
  int answered_ = 0;
};

TEST_F(ServedVolumeTest, WritesGoToTheLoggerAndToTheStorage) {
  make({});
  write(3);
  ASSERT_EQ(elsewhere_.prepared.size(), 1u);
  EXPECT_EQ(elsewhere_.prepared[0].stamp.epoch, Epoch{3});
  EXPECT_EQ(elsewhere_.prepared[0].stamp.sequence, SequenceNumber{1});
  EXPECT_EQ(answered_, 0);
  EXPECT_FALSE(served_->idle());
  logged();
  EXPECT_EQ(answered_, 1);
  EXPECT_EQ(elsewhere_.committed, SequenceNumber{1});
  EXPECT_TRUE(served_->idle());
}

TEST_F(ServedVolumeTest, WhatACrashMayHaveUsedIsVoidBeforeAnythingIsStamped) {
  VolumeHistory history;
  history.last = SequenceNumber{20};
  history.last_time = VersionTime{99};
  history.frontier = SequenceNumber{18};
  history.holes = {{SequenceNumber{7}, SequenceNumber{8}}};
  make(history);
  ASSERT_EQ(elsewhere_.voids.size(), 2u);
  EXPECT_EQ(elsewhere_.voids[0].message.first, SequenceNumber{7});
  EXPECT_EQ(elsewhere_.voids[1].message.first, SequenceNumber{21});
  EXPECT_EQ(elsewhere_.voids[1].message.last.value, 20 + ServedVolume::kVoidMargin);
  EXPECT_EQ(served_->replicator().coordinator().frontier(), SequenceNumber{18});
  write(1);
  for (auto& lost : std::exchange(elsewhere_.voids, {})) {
    EXPECT_TRUE(elsewhere_.writes.empty());
    lost.done({});
  }
  ASSERT_EQ(elsewhere_.writes.size(), 1u);
  EXPECT_EQ(elsewhere_.writes[0].message.stamp.sequence.value, 21 + ServedVolume::kVoidMargin);
  EXPECT_GT(elsewhere_.writes[0].message.stamp.time, VersionTime{99});
  logged();
}

TEST_F(ServedVolumeTest, AVoidThatCannotBeLoggedRefusesWrites) {
  VolumeHistory history;
  history.last = SequenceNumber{20};
  make(history);
  write(1);
  elsewhere_.voids[0].done(Error{ErrorCode::kIo, "the log disk has failed"});
  EXPECT_EQ(answered_, 100);
}

TEST_F(ServedVolumeTest, WritesWaitForWhatTheStorageGrants) {
  make({});
  served_->grant(0);
  write(1);
  EXPECT_TRUE(elsewhere_.writes.empty());
  served_->grant(kBlockBytes);
  ASSERT_EQ(elsewhere_.writes.size(), 1u);
  logged();
}

// Everything that it asks is answered late: writes go on, then they wait.
TEST_F(ServedVolumeTest, ARollbackHoldsItsTargetAndAsksTwiceWhatChanged) {
  make({});
  for (int i = 0; i < 3; ++i) {
    write(1);
    logged();
  }
  std::optional<Result<Stamp>> stamp;
  served_->live().rollback({SequenceNumber{1}, VersionTime{5}},
                           [&](Result<Stamp> r) { stamp = std::move(r); });
  AskedHistory::HoldAt hold = AskedHistory::next(history_.holds);
  EXPECT_EQ(hold.at, SequenceNumber{1});
  const auto held = std::make_shared<int>(0);
  hold.done(History::Hold(held));
  AskedHistory::Changed first = AskedHistory::next(history_.changes);
  EXPECT_EQ(first.from, SequenceNumber{1});
  EXPECT_EQ(first.to, SequenceNumber{3});
  write(9);
  logged();
  first.portion(std::vector<BlockRange>{{{1}, {1}}});
  first.done({});
  AskedHistory::Changed second = AskedHistory::next(history_.changes);
  EXPECT_EQ(second.from, SequenceNumber{3});
  EXPECT_EQ(second.to, SequenceNumber{4});
  write(10);
  EXPECT_TRUE(elsewhere_.writes.empty()) << "it waits";
  second.portion(std::vector<BlockRange>{{{9}, {1}}});
  second.done({});
  ASSERT_EQ(elsewhere_.writes.size(), 2u);
  EXPECT_EQ(elsewhere_.writes[0].message.write.target, SequenceNumber{1});
  EXPECT_EQ(*elsewhere_.writes[0].message.write.changed,
            (std::vector<BlockRange>{{{1}, {1}}, {{9}, {1}}}));
  EXPECT_EQ(held.use_count(), 2);
  EXPECT_FALSE(stamp);
  logged();
  ASSERT_TRUE(stamp && *stamp);
  EXPECT_EQ(held.use_count(), 1) << "on record, it needs no hold";
  logged();
}

TEST_F(ServedVolumeTest, ARollbackThatCannotAskLeavesNothingBehind) {
  make({});
  write(1);
  logged();
  const Error away{ErrorCode::kUnavailable, "the logger is away"};
  for (int asked = 0; asked < 3; ++asked) {
    const auto held = std::make_shared<int>(0);
    std::optional<ErrorCode> code;
    served_->live().rollback({}, [&](const Result<Stamp>& r) { code = r.error().code; });
    AskedHistory::HoldAt hold = AskedHistory::next(history_.holds);
    if (asked == 0) {
      hold.done(away);
    } else {
      hold.done(History::Hold(held));
    }
    for (int i = 1; i < asked; ++i) AskedHistory::next(history_.changes).done({});
    if (asked > 0) AskedHistory::next(history_.changes).done(away);
    EXPECT_EQ(code, ErrorCode::kUnavailable);
    EXPECT_TRUE(served_->idle());
    hold = {};
    EXPECT_EQ(held.use_count(), 1);
    write(2);
    ASSERT_EQ(elsewhere_.writes.size(), 1u) << "nothing is locked";
    logged();
  }
}

TEST_F(ServedVolumeTest, OfWhatStorageGrantsAndHostsArePacedToTheLesserCounts) {
  make({});
  served_->pace(2 * kBlockBytes);
  for (std::uint64_t block = 0; block < 4; ++block) write(block);
  EXPECT_EQ(elsewhere_.writes.size(), 2u);
  served_->grant(3 * kBlockBytes);
  EXPECT_EQ(elsewhere_.writes.size(), 2u);
  served_->pace(replication::WriteCoordinator::kUnlimited);
  EXPECT_EQ(elsewhere_.writes.size(), 3u);
  served_->grant(replication::WriteCoordinator::kUnlimited);
  EXPECT_EQ(elsewhere_.writes.size(), 4u);
  while (!elsewhere_.writes.empty()) logged();
  EXPECT_EQ(answered_, 4);
}

}  // namespace
}  // namespace mariner::volume
