#include <gtest/gtest.h>

#include <chrono>

#include "server/node/log_space.h"
#include "tests/server/node/log_space_fixture.h"

namespace mariner::node {
namespace {

using testing::LogSpaceTest;

// They may be marks, locked ones, too.
TEST_F(LogSpaceTest, WhatIsKeptStaysAsLongAsMarksCannotBeRead) {
  write(1, 'a');
  const SequenceNumber first = parts_.newest(volume());
  mark(first);
  next_track();
  write(1, 'b');
  space_->check();
  parts_.run_until([this] { return space_->tracks_freed() == 1; });
  ASSERT_GT(oldest(), first);
  const auto is_there = [&] {
    return volume().volume->index().can_be_opened(first) &&
           parts_.read(*volume().volume->view_layer(first), 1) == 'a';
  };
  ASSERT_TRUE(is_there());
  uncertain_->readable = false;
  bool pruned = false;
  space_->prune(volume().volume->id(), [&](const Result<void>& r) { pruned = r.has_value(); });
  parts_.run_until([&] { return pruned; });
  EXPECT_TRUE(is_there());
  uncertain_->readable = true;
  uncertain_->known = false;
  for (int i = 0; i < 3; ++i) {
    next_track();
    if (parts_.log_stack().writer().free_tracks() > 2) write(1, static_cast<char>('c' + i));
    look();
    EXPECT_TRUE(is_there());
  }
  uncertain_->known = true;
  look();
  EXPECT_TRUE(is_there());
}

// What a rollback is undone by, above all.
TEST_F(LogSpaceTest, AFullLogDropsNoMarkThatTheWindowHoldsAnyway) {
  close();
  open(OnFull::kShortenWindow);
  volume().meta.set_window_s(3600);
  const auto left = [this] { return uncertain_->marks(volume().volume->id())->size(); };
  write(1, 'a');
  next_track();
  write(1, 'b');
  mark(parts_.newest(volume()));
  space_->check();
  parts_.run_until([this] { return space_->tracks_freed() == 1; });
  EXPECT_EQ(left(), 1u) << "the window was shortened, and still begins before it";
  for (int i = 0; i < 8; ++i) {
    next_track();
    write(1, static_cast<char>('c' + i));
  }
  EXPECT_EQ(left(), 0u) << "writes are worth more than what is behind the window";
}

// A log with room to wait a while.
class LogSpaceClockTest : public LogSpaceTest {
 protected:
  static constexpr std::chrono::nanoseconds kDay = std::chrono::hours(24);
  LogSpaceClockTest() : LogSpaceTest(8) {
    volume().meta.set_window_s(3600);
    for (const char byte : {'a', 'b', 'c'}) {
      if (byte != 'a') next_track();
      write(1, byte);
    }
    look();
  }
  void look_later(std::chrono::nanoseconds passed) {
    parts_.advance(passed);
    look();
  }
};

TEST_F(LogSpaceClockTest, AClockThatIsAheadForAMomentTakesNoHistory) {
  ASSERT_EQ(space_->tracks_freed(), 0u);
  parts_.step_wall(kDay);
  for (int i = 0; i < 10; ++i) look_later(std::chrono::seconds(10));
  EXPECT_EQ(space_->tracks_freed(), 0u);
  EXPECT_EQ(oldest(), SequenceNumber{0});
  parts_.step_wall(-kDay);
  look_later(std::chrono::seconds(60));
  EXPECT_EQ(space_->tracks_freed(), 0u);
  // It is believed in the end: the hour has passed.
  parts_.step_wall(kDay);
  look_later(std::chrono::seconds(10));
  EXPECT_EQ(space_->tracks_freed(), 0u);
  look_later(std::chrono::seconds(130));
  EXPECT_GT(space_->tracks_freed(), 0u);
}

// What is written then is stamped with times that are still to come.
TEST_F(LogSpaceTest, AClockThatIsPutBackDoesNotStopWrites) {
  close();
  open(OnFull::kShortenWindow);
  volume().meta.set_window_s(3600);
  write(1, 'a');
  parts_.step_wall(std::chrono::hours(24));
  next_track();
  write(1, 'b');
  parts_.step_wall(-std::chrono::hours(24));
  for (int i = 0; i < 6; ++i) {
    next_track();
    write(1, static_cast<char>('c' + i));
  }
  EXPECT_EQ(parts_.read(*volume().volume->live_layer(), 1), 'h');
}

}  // namespace
}  // namespace mariner::node
