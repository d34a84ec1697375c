// A target whose own storage asks the history for what it has missed, which a test answers.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/server/cluster/target_rig.h"
#include "tests/server/volume/asked_history.h"

namespace mariner::cluster {
namespace {

using namespace std::chrono_literals;
using test::AskedHistory;
using State = TargetPart::State;
using States = std::vector<State>;
using Epochs = std::vector<std::uint64_t>;

class TargetCatchUp : public ::testing::Test {
 protected:
  TargetPart& target() { return *rig_.member.target; }

  TargetRig rig_;
};

TEST_F(TargetCatchUp, NothingIsServedBeforeTheOwnStorageHasCaughtUp) {
  AskedHistory history;
  // What the storage is about to overwrite is nobody's base.
  const auto let_apply = [&] {
    rig_.executor.advance(5s);
    for (; !history.locates.empty(); rig_.executor.advance(1s)) {
      auto blocks = AskedHistory::next(history.locates);
      blocks.done(volume::History::Located{
          {{blocks.lookups[0].range, volume::PastRun::Source::kZero, false, {}}}, {}});
    }
  };
  rig_.begin(&history);
  rig_.executor.advance(1s);
  ASSERT_EQ(target().state(), State::kServing) << "a new volume has no history";
  rig_.write_block(0, 'a');
  let_apply();
  rig_.member.lease.stop([] {});
  rig_.member.lease.start();
  rig_.executor.advance(5s);
  ASSERT_EQ(rig_.member.epochs, (Epochs{1, 2}));
  ASSERT_TRUE(target().coordinator()->ready());
  EXPECT_EQ(target().state(), State::kTransitioning);
  EXPECT_EQ(*rig_.begin_read({{0}, {1}}), "unavailable");
  rig_.write_block(0, 'b');
  EXPECT_EQ(rig_.answers, "aB");
  rig_.member.told();
  AskedHistory::next(history.changes).done({});
  rig_.executor.advance(1s);
  EXPECT_EQ(rig_.member.told(), States{State::kServing});
  EXPECT_EQ(rig_.read({{0}, {1}}), "a");
  let_apply();
}

TEST_F(TargetCatchUp, AReadThatNeedsTheLoggerWaitsForIt) {
  AskedHistory history;
  rig_.begin(&history);
  rig_.executor.advance(1s);
  rig_.write_block(0, 'a');
  rig_.executor.run_ready();
  rig_.member.lease.stop([] {});
  rig_.member.lease.start();
  rig_.executor.advance(1s);
  while (history.changes.empty()) rig_.executor.advance(100ms);
  auto missed = AskedHistory::next(history.changes);
  missed.portion(std::vector<BlockRange>{{{5}, {1}}});
  missed.done({});
  rig_.executor.advance(200ms);
  ASSERT_EQ(target().state(), State::kServing);
  const auto text = rig_.begin_read({{5}, {1}});
  EXPECT_EQ(*text, "");
  for (int tries = 0; tries < 3; ++tries) {
    AskedHistory::next(history.reads).done(Error{ErrorCode::kUnavailable, "away"});
    rig_.executor.advance(100ms);
    EXPECT_EQ(*text, "") << "it waits";
  }
  auto asked = AskedHistory::next(history.reads);
  std::ranges::fill(asked.to, std::byte{'h'});
  asked.done(std::vector<BlockRange>{});
  rig_.executor.run_ready();
  EXPECT_EQ(*text, "h");
  const auto again = rig_.begin_read({{5}, {1}});
  rig_.member.target->close();
  AskedHistory::next(history.reads).done(Error{ErrorCode::kUnavailable, "away"});
  rig_.executor.advance(100ms);
  EXPECT_EQ(*again, "unavailable") << "its time is over";
  while (!history.locates.empty()) {
    AskedHistory::next(history.locates).done(Error{ErrorCode::kUnavailable, "away"});
  }
}

}  // namespace
}  // namespace mariner::cluster
