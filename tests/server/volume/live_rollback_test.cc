// Rollbacks step by step: server/volume/live_rollback.cc. Whole ones are in live_volume_test.cc.
#include <gtest/gtest.h>

#include "server/volume/live_volume.h"
#include "tests/server/volume/sectors.h"
#include "tests/server/volume/volume_rig.h"

namespace mariner::volume {
namespace {

using test::Sectors;

constexpr std::uint64_t kBlocks = 16;

// A volume whose first block was 1, then 2.
class LiveRollback : public ::testing::Test {
 protected:
  LiveRollback() {
    rig_.start();
    write(1);
    write(2);
    rig_.manual().run_ready();
  }
  LiveVolume& live() { return rig_.volume().live(); }
  void write(std::uint64_t tag) {
    const Payload data = test::bytes_of(Sectors(test::kSectorsPerBlock, tag));
    live().write({0, kBlockBytes}, {data, 0, kBlockBytes},
                 [this](const Result<void>& r) { written_ += r ? 1 : 100; });
  }
  void read() {
    live().read({0, kBlockBytes}, [this](const Result<PayloadSlice>& read) {
      ASSERT_TRUE(read);
      for (std::uint64_t tag = 0; tag < 10; ++tag) {
        const Sectors expected(test::kSectorsPerBlock, tag);
        if (!test::mismatch(read->bytes(), expected)) seen_.push_back(tag);
      }
    });
  }
  // Up to where nobody reads or writes and all that it changes is known.
  LiveVolume::RollbackSteps held_up(std::uint64_t target) {
    const auto steps = live().begin_rollback({SequenceNumber{target}, {}});
    bool ready = false;
    live().look_up(steps, [&](const Result<void>& first) {
      ASSERT_TRUE(first);
      live().hold_up(steps, [&, steps] {
        live().look_up(steps, [&](const Result<void>& second) { ready = second.has_value(); });
      });
    });
    rig_.manual().run_ready();
    EXPECT_TRUE(ready);
    return steps;
  }

  test::VolumeRig rig_{{.blocks = kBlocks, .storage = {.apply_delay = std::chrono::seconds(1)}}};
  int written_ = 0;
  std::vector<std::uint64_t> seen_;
};

TEST_F(LiveRollback, NobodyReadsOrWritesUntilItLetsGo) {
  const auto steps = held_up(1);
  EXPECT_TRUE(rig_.volume().rolling_back()) << "its target is kept";
  read();
  write(3);
  std::optional<SequenceNumber> number;
  live().log_rollback(steps, [&](const Result<replication::Stamp>& r) { number = r->sequence; });
  read();
  rig_.manual().run_ready();
  EXPECT_EQ(number, SequenceNumber{3});
  EXPECT_EQ(written_, 2);
  EXPECT_TRUE(seen_.empty()) << "it is on record, and nobody knows yet";
  live().let_go(steps);
  rig_.manual().run_ready();
  EXPECT_EQ(written_, 3);
  EXPECT_EQ(seen_, (std::vector<std::uint64_t>{1, 1}));
  read();
  rig_.manual().run_ready();
  EXPECT_EQ(seen_.back(), 3u);
  EXPECT_TRUE(live().idle());
  EXPECT_FALSE(rig_.volume().rolling_back());
}

TEST_F(LiveRollback, LettingGoWithoutARecordChangesNothing) {
  const auto steps = held_up(1);
  read();
  live().let_go(steps);
  write(3);
  rig_.manual().run_ready();
  read();
  rig_.manual().run_ready();
  EXPECT_EQ(seen_, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(rig_.volume().index().newest().sequence, SequenceNumber{3});
  EXPECT_TRUE(live().idle());
}

// As at a start, when nothing is under way: nothing has a chance to be served before.
TEST_F(LiveRollback, HoldsUpAtOnceWhatIsIdle) {
  const auto steps = live().begin_rollback({SequenceNumber{1}, {}});
  bool held = false;
  live().hold_up(steps, [&] { held = true; });
  EXPECT_TRUE(held);
  read();
  bool found = false;
  live().look_up(steps, [&](const Result<void>& r) { found = r.has_value(); });
  rig_.manual().run_ready();
  EXPECT_TRUE(found);
  live().log_rollback(steps, [](const Result<replication::Stamp>& r) { EXPECT_TRUE(r); });
  rig_.manual().run_ready();
  live().let_go(steps);
  rig_.manual().run_ready();
  EXPECT_EQ(seen_, (std::vector<std::uint64_t>{1}));
}

// Who waits for the lock stops readers itself.
TEST_F(LiveRollback, OneBehindTheOther) {
  const auto first = held_up(1);
  const auto second = live().begin_rollback({SequenceNumber{0}, {}});
  bool held = false;
  live().hold_up(second, [&] { held = true; });
  rig_.manual().run_ready();
  EXPECT_FALSE(held);
  live().let_go(first);
  rig_.manual().run_ready();
  EXPECT_TRUE(held);
  live().let_go(second);
  EXPECT_TRUE(live().idle());
}

TEST_F(LiveRollback, ARecordThatIsRefusedIsTold) {
  const auto steps = held_up(1);
  rig_.volume().close(Error{ErrorCode::kUnavailable, "stopping"});
  bool refused = false;
  live().log_rollback(steps, [&](const Result<replication::Stamp>& r) {
    refused = r.error().code == ErrorCode::kUnavailable;
  });
  rig_.manual().run_ready();
  EXPECT_TRUE(refused);
  live().let_go(steps);
  EXPECT_TRUE(live().idle());
}

}  // namespace
}  // namespace mariner::volume
