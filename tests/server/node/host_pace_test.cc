#include "server/node/host_pace.h"

#include <cstring>
#include <memory>

#include "proto/payload.h"
#include "tests/server/node/log_space_fixture.h"

namespace mariner::node::testing {
namespace {

class HostPaceTest : public LogSpaceTest {
 protected:
  ~HostPaceTest() override { pace_.reset(); }

  void begin(OnFull on_full) {
    close();
    open(on_full);
    pace_ =
        std::make_unique<HostPace>(HostPace::Parts{parts_.log_stack(), *space_, parts_.volumes(),
                                                   parts_.executor(), parts_.log()},
                                   on_full);
  }
  void end() {
    pace_.reset();
    close();
    open();
  }
  // One that is to begin a track of its own; it waits where there is none.
  void begin_write(char byte) {
    next_track();
    Payload data = Payload::allocate(kBlockBytes);
    std::memset(data.data(), byte, kBlockBytes);
    ended_ = false;
    volume().volume->live_layer()->write({kBlockBytes, kBlockBytes}, {data, 0, kBlockBytes},
                                         [this](const Result<void>& result) {
                                           ended_ = true;
                                           good_ = result.has_value();
                                         });
  }

  void write_until_short() {
    volume().meta.set_window_s(3600);
    for (int i = 0; i < 8 && !pace_->short_of_room(); ++i) {
      begin_write(static_cast<char>('a' + i));
      parts_.run_until([this] { return ended_ || pace_->short_of_room(); });
    }
    EXPECT_TRUE(pace_->short_of_room()) << "what is oldest is within the window";
  }
  void write_until_refused() {
    good_ = true;
    for (int i = 0; i < 8 && good_; ++i) {
      begin_write(static_cast<char>('a' + i));
      parts_.run_until([this] { return ended_; });
    }
    EXPECT_FALSE(good_);
    EXPECT_EQ(space_->room(), LogSpace::Room::kFull);
  }
  // What was before the first write cannot be kept by itself: its mark holds all that came after.
  void lock_everything() {
    meta::Mark mark;
    mark.set_volume_id(volume().volume->id().value);
    mark.set_name("first");
    mark.set_sequence(0);
    mark.set_locked_until_ns(~std::uint64_t{0});
    ASSERT_TRUE(parts_.store().put_mark(mark));
  }

  std::unique_ptr<HostPace> pace_;
  bool ended_ = false;
  bool good_ = false;
};

TEST_F(HostPaceTest, ALogThatHasRoomSlowsNobody) {
  begin(OnFull::kShortenWindow);
  write(1, 'a');
  space_->check();
  parts_.run_until([this] { return space_->idle(); });
  EXPECT_FALSE(pace_->short_of_room());
  EXPECT_FALSE(pace_->pace_of(volume().volume->id()));
  end();
}

TEST_F(HostPaceTest, WhoRunsOutOfRoomIsSlowedUntilThereIsSome) {
  begin(OnFull::kShortenWindow);
  write_until_short();
  parts_.run_until([this] { return ended_; });
  EXPECT_TRUE(good_) << "the window was shortened";
  end();
}

TEST_F(HostPaceTest, WhereWritesAreRefusedNobodyIsSlowed) {
  begin(OnFull::kStopWrites);
  volume().meta.set_window_s(3600);
  write_until_refused();
  EXPECT_FALSE(pace_->short_of_room());
  end();
}

TEST_F(HostPaceTest, WhatTheLogRefusesIsNotHeldBack) {
  begin(OnFull::kShortenWindow);
  lock_everything();
  write_until_refused();
  for (const char byte : {'x', 'y', 'z'}) {
    begin_write(byte);
    parts_.run_until([this] { return ended_; });
    EXPECT_FALSE(good_);
  }
  EXPECT_FALSE(pace_->short_of_room());
  end();
}

TEST_F(HostPaceTest, WhatAFullLogDoesMayChange) {
  begin(OnFull::kShortenWindow);
  write_until_short();
  pace_->set_on_full(OnFull::kThrottle);
  EXPECT_FALSE(pace_->short_of_room());
  pace_->set_on_full(OnFull::kShortenWindow);
  EXPECT_FALSE(pace_->short_of_room()) << "nobody has waited since";
  parts_.run_until([this] { return ended_; });
  EXPECT_TRUE(good_);
  end();
}

}  // namespace
}  // namespace mariner::node::testing
