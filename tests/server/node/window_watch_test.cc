#include "server/node/window_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "tests/support/manual_executor.h"

namespace mariner::node {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1u << 20;

// A log with room for half an hour of what is written, 1 MiB a second.
class WindowWatchTest : public ::testing::Test {
 protected:
  ~WindowWatchTest() override { ::close(fd_); }

  void write(std::chrono::nanoseconds during, std::uint64_t bytes_per_second = kMiB) {
    for (const auto end = executor_.monotonic_time() + during; executor_.monotonic_time() < end;) {
      executor_.advance(seconds(10));
      space_.written_bytes += bytes_per_second * 10;
      space_.used_bytes = std::min(space_.written_bytes, space_.room_bytes);
      watch_.look(space_, volumes_);
    }
  }
  // What the log has got since the last call.
  std::string told() {
    std::string all(static_cast<std::size_t>(::lseek(fd_, 0, SEEK_END)), ' ');
    EXPECT_EQ(::pread(fd_, all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
    return all.substr(std::exchange(read_, all.size()));
  }

  const int fd_ = ::memfd_create("log", 0);
  std::size_t read_ = 0;
  test::ManualExecutor executor_;
  Log log_{{.fd = fd_}};
  WindowWatch watch_{executor_, log_};
  WindowWatch::Space space_{.used_bytes = 0, .room_bytes = 1800 * kMiB, .written_bytes = 0};
  std::vector<WindowWatch::Volume> volumes_{{{1}, "db1", minutes(60), executor_.wall_time()},
                                            {{2}, "web", minutes(20), executor_.wall_time()}};
};

TEST_F(WindowWatchTest, TellsLongBeforeAWindowIsShort) {
  write(minutes(1));
  const std::string first = told();
  EXPECT_THAT(first, HasSubstr("the log will be too small for a window"));
  EXPECT_THAT(first, HasSubstr("volume=db1"));
  EXPECT_THAT(first, HasSubstr("lasting_s=1800"));
  EXPECT_THAT(first, ::testing::Not(HasSubstr("volume=web")));
  const auto outlook = watch_.outlook({1});
  ASSERT_TRUE(outlook && outlook->short_in);
  EXPECT_NEAR(static_cast<double>(outlook->short_in->count()), 1740, 2);
  EXPECT_EQ(watch_.outlook({2})->short_in, std::nullopt);
  write(minutes(10));
  EXPECT_EQ(told(), "") << "once";
  write(minutes(10));
  EXPECT_THAT(told(), HasSubstr("short_in_s=")) << "and again when it comes closer";
  write(minutes(10));
  EXPECT_THAT(told(), HasSubstr("the log is too small for a window"));
  EXPECT_EQ(watch_.outlook({1})->short_in, seconds(0));
}

TEST_F(WindowWatchTest, TellsAnewAfterItWasWell) {
  write(minutes(1));
  EXPECT_NE(told(), "");
  write(minutes(10), kMiB / 16);
  EXPECT_EQ(watch_.outlook({1})->short_in, std::nullopt);
  EXPECT_EQ(told(), "");
  write(minutes(10));
  EXPECT_NE(told(), "");
}

TEST_F(WindowWatchTest, KnowsNothingOfAVolumeThatIsGone) {
  write(minutes(1));
  volumes_.pop_back();
  write(minutes(1));
  EXPECT_TRUE(watch_.outlook({1}).has_value());
  EXPECT_FALSE(watch_.outlook({2}).has_value());
}

}  // namespace
}  // namespace mariner::node
