#include "server/node/log_space.h"

#include <gtest/gtest.h>

#include "tests/server/node/log_space_fixture.h"

namespace mariner::node {
namespace {

using testing::LogSpaceTest;

TEST_F(LogSpaceTest, TheLogTellsOfEachTrackThatIsBegun) {
  int told = 0;
  parts_.log_stack().set_less_room([&told] { ++told; });
  write(1, 'a');
  EXPECT_EQ(told, 1);
  write(2, 'b');
  EXPECT_EQ(told, 1) << "of the same track";
  next_track();
  write(3, 'c');
  EXPECT_EQ(told, 2);
  space_->check();
  parts_.run_until([this] { return space_->tracks_freed() == 1; });
  write(4, 'd');
  EXPECT_EQ(told, 2) << "there is more room";
  next_track();
  write(5, 'e');
  EXPECT_EQ(told, 3);
  parts_.log_stack().set_less_room(nullptr);
}

TEST_F(LogSpaceTest, TheOldestTrackGoesWhenRoomIsLow) {
  write(1, 'a');
  next_track();
  write(2, 'b');
  const SequenceNumber newest = parts_.newest(volume());
  space_->check();
  parts_.run_until([this] { return space_->tracks_freed() == 1; });
  EXPECT_EQ(parts_.log_stack().writer().free_tracks(), 3u);
  EXPECT_GT(oldest(), SequenceNumber{0});
  close();
  parts_.stop();
  parts_.start();
  open();
  EXPECT_GT(oldest(), SequenceNumber{0}) << "kept over a restart";
  EXPECT_EQ(parts_.newest(volume()), newest);
  EXPECT_EQ(parts_.read(*volume().volume->live_layer(), 1), 'a');
  // What the log has given up is logged again before it is overwritten.
  write(1, 'c');
  bool drained = false;
  volume().volume->storage()->drain([&](const Result<void>& r) { drained = r.has_value(); });
  parts_.run_until([&] { return drained; });
  EXPECT_EQ(parts_.read(*volume().volume->view_layer(newest), 1), 'a');
}

TEST_F(LogSpaceTest, AWriteThatTakesTheTrackThatWasFreedIsNotTheLast) {
  write(1, 'a');
  next_track();
  write(2, 'b');
  space_->check();
  parts_.run_until([this] { return space_->tracks_freed() == 1; });
  // The next try has found no track that is complete; now there is one.
  next_track();
  write(3, 'c');
  next_track();
  write(4, 'd');
  EXPECT_EQ(parts_.read(*volume().volume->live_layer(), 4), 'd');
}

TEST_F(LogSpaceTest, WhatAViewShowsStays) {
  write(1, 'a');
  const SequenceNumber first = parts_.newest(volume());
  next_track();
  write(1, 'b');
  NewView view;
  view.name = "old";
  view.at = parts_.answers(volume()).moment_of(first);
  ASSERT_TRUE(parts_.views().expose(volume(), view));
  space_->check();
  parts_.run_until([this] { return space_->tracks_freed() == 1; });
  EXPECT_GT(oldest(), first) << "without what is between";
  EXPECT_TRUE(volume().volume->index().can_be_opened(first));
  EXPECT_EQ(parts_.read(*volume().volume->view_layer(first), 1), 'a');
  close();
  parts_.stop();
  parts_.start();
  open();
  EXPECT_TRUE(volume().volume->index().can_be_opened(first)) << "also after a restart";
  EXPECT_EQ(parts_.read(*volume().volume->view_layer(first), 1), 'a');
  ASSERT_TRUE(parts_.views().unexpose("old"));
  bool pruned = false;
  space_->prune(volume().volume->id(), [&](const Result<void>& r) { pruned = r.has_value(); });
  parts_.run_until([&] { return pruned; });
  EXPECT_FALSE(volume().volume->index().can_be_opened(first));
}

TEST_F(LogSpaceTest, AFullLogDropsViewsButNotThoseToBeKept) {
  close();
  open(OnFull::kShortenWindow);
  volume().meta.set_window_s(3600);
  write(1, 'a');
  const SequenceNumber first = parts_.newest(volume());
  next_track();
  write(1, 'b');
  NewView view;
  view.at = parts_.answers(volume()).moment_of(first);
  view.name = "kept";
  view.keep = true;
  ASSERT_TRUE(parts_.views().expose(volume(), view));
  view.name = "younger";
  view.at = parts_.answers(volume()).moment_of(parts_.newest(volume()));
  view.keep = false;
  ASSERT_TRUE(parts_.views().expose(volume(), view));
  EXPECT_FALSE(space_->locked(volume().volume->id())) << "that is said of marks";
  // Writes go on: of the past before the window, what the view shows is left.
  for (int i = 0; i < 8; ++i) {
    next_track();
    write(1, static_cast<char>('c' + i));
  }
  EXPECT_NE(parts_.views().find("kept"), nullptr);
  EXPECT_EQ(parts_.views().find("younger"), nullptr) << "views go before the window";
  EXPECT_GT(oldest(), first);
  EXPECT_EQ(parts_.read(*volume().volume->view_layer(first), 1), 'a');
}

TEST_F(LogSpaceTest, SaysThatItIsShortOnlyWhenWhatIsOldestIsToBeKept) {
  for (int i = 0; i < 8; ++i) {
    next_track();
    write(1, static_cast<char>('a' + i));
    space_->check();
    parts_.run_until([this] { return space_->idle(); });
    EXPECT_EQ(space_->room(), LogSpace::Room::kEnough) << "it has gone round: " << i;
  }
  volume().meta.set_window_s(3600);
  const logging::LogWriter& writer = parts_.log_stack().writer();
  for (int tries = 0; tries < 1000 && space_->room() != LogSpace::Room::kFull; ++tries) {
    if (writer.free_tracks() > writer.kept_tracks_at_rest()) {
      next_track();
      write(1, 'z');
    }
    space_->check();
    bool later = false;
    parts_.executor().after(std::chrono::milliseconds(10), [&] { later = true; });
    parts_.run_until([&] { return later && space_->idle(); });
  }
  EXPECT_EQ(space_->room(), LogSpace::Room::kFull) << "and nothing may be given up";
}

TEST_F(LogSpaceTest, RecordsOfADeletedVolumeHoldNothing) {
  write(1, 'a');
  next_track();
  parts_.create("db2");
  parts_.write(*parts_.volumes().find("db2")->volume->live_layer(), 0, 'x');
  ASSERT_TRUE(parts_.remove("db1"));
  space_->check();
  parts_.run_until([this] { return space_->tracks_freed() == 1; });
}

TEST_F(LogSpaceTest, WhatAFullLogDoesMayChange) {
  close();
  open(OnFull::kStopWrites);
  volume().meta.set_window_s(3600);
  for (const char byte : {'a', 'b'}) {
    write(1, byte);
    if (byte == 'a') next_track();
  }
  for (int i = 0; i < 3; ++i) {
    look();
    EXPECT_EQ(space_->tracks_freed(), 0u);
    parts_.advance(std::chrono::minutes(1));
  }
  space_->set_on_full(OnFull::kShortenWindow);
  parts_.run_until([this] { return space_->tracks_freed() == 1; });
  EXPECT_EQ(parts_.read(*volume().volume->live_layer(), 1), 'b');
}

TEST_F(LogSpaceTest, TheWindowsOfAllWhoseHistoryIsInTheWayAreShortened) {
  close();
  open(OnFull::kShortenWindow);
  constexpr std::uint64_t kHour = 3600;
  parts_.create("db2").meta.set_window_s(kHour);
  volume().meta.set_window_s(kHour);
  const auto other = parts_.volumes().find("db2")->volume->live_layer();
  for (const char byte : {'a', 'b'}) {  // in two tracks: the first holds what both want to keep
    write(1, byte);
    parts_.write(*other, 1, byte);
    if (byte == 'a') next_track();
  }
  space_->check();
  parts_.run_until([this] { return space_->tracks_freed() == 1; });
  EXPECT_EQ(parts_.read(*volume().volume->live_layer(), 1), 'b');
  EXPECT_EQ(parts_.read(*other, 1), 'b');
}

}  // namespace
}  // namespace mariner::node
