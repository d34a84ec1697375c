#include "server/client/moment_keeper.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/server/client/daemon.h"

namespace mariner::client {
namespace {

using std::chrono::milliseconds;

class MomentKeeperTest : public DaemonTest {
 protected:
  MomentKeeperTest() {
    fake().past.set_id("17");
    fake().past.mutable_from()->set_sequence(3);
  }
  admin::FakePast& fake() { return control.of_the_past; }
  Result<std::unique_ptr<MomentKeeper>> keep(KeeperPace pace) {
    return MomentKeeper::keep({.socket = socket, .volume = "db1"}, pace);
  }
  // How often it was asked; in the daemon's thread.
  std::ptrdiff_t times_asked(const std::string& what) {
    return on_daemon([&] { return std::ranges::count(fake().asked, what); });
  }
  void wait_for(const std::string& what, std::ptrdiff_t times) {
    while (times_asked(what) < times) std::this_thread::yield();
  }
};

TEST_F(MomentKeeperTest, LooksAfterItsReading) {
  auto keeper = keep({.look = milliseconds(1), .replace = std::chrono::hours(1)});
  ASSERT_TRUE(keeper);
  wait_for("show 17", 3);
  keeper->reset();
  EXPECT_EQ(times_asked("open volume: \"db1\" from { }"), 1);
  EXPECT_EQ(times_asked("close 17"), 1);
}

TEST_F(MomentKeeperTest, HasTheNextReadingBeforeTheLastOneEnds) {
  auto keeper = keep({.look = milliseconds(1), .replace = milliseconds(0)});
  ASSERT_TRUE(keeper);
  const std::string again = "open volume: \"db1\" from { sequence: 3 }";
  wait_for(again, 2);
  keeper->reset();
  const auto asked = on_daemon([this] { return fake().asked; });
  int open = 0;
  for (std::size_t i = 0; i < asked.size(); ++i) {
    open += asked[i].starts_with("open") ? 1 : -1;
    EXPECT_GE(open, i + 1 < asked.size() ? 1 : 0) << i;
  }
}

TEST_F(MomentKeeperTest, AMomentThatIsNotThereIsNotKept) {
  fake().error = Error{ErrorCode::kOutsideWindow, "too old"};
  EXPECT_EQ(keep({}).error().code, ErrorCode::kOutsideWindow);
}

TEST_F(MomentKeeperTest, EndsAtOnce) {
  ASSERT_TRUE(keep({.look = std::chrono::hours(1), .replace = std::chrono::hours(1)}));
}

}  // namespace
}  // namespace mariner::client
