#include "uvfs/mount/mount_keeper.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <optional>

namespace mariner::uvfs {
namespace {

class MountKeeperTest : public ::testing::Test {
 protected:
  MountKeeperTest() { EXPECT_EQ(::pipe2(pipe_.data(), O_CLOEXEC), 0); }
  ~MountKeeperTest() override {
    for (const int each : pipe_) ::close(each);
  }
  // Of which the other process says that it has unmounted.
  Result<MountKeeper> begin() {
    return MountKeeper::begin(pipe_[1], [this] { (void)!::write(pipe_[1], "u", 1); });
  }
  // What was said, without waiting; nothing: 0.
  char said() {
    ::fcntl(pipe_[0], F_SETFL, O_NONBLOCK);
    char said = 0;
    (void)!::read(pipe_[0], &said, 1);
    return said;
  }

  std::array<int, 2> pipe_{};
};

TEST_F(MountKeeperTest, UnmountsOnceAndWaitsForIt) {
  auto keeper = begin();
  ASSERT_TRUE(keeper);
  EXPECT_EQ(said(), 0);
  MountKeeper other = std::move(*keeper);
  other.end();
  EXPECT_EQ(said(), 'u');
  other.end();
  EXPECT_EQ(said(), 0);
}

TEST_F(MountKeeperTest, UnmountsAfterAProcessThatIsKilled) {
  const pid_t process = ::fork();
  if (process == 0) {
    const auto keeper = begin();
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(process, &status, 0), process);
  EXPECT_TRUE(WIFSIGNALED(status));
  char said = 0;
  EXPECT_EQ(::read(pipe_[0], &said, 1), 1);
  EXPECT_EQ(said, 'u');
}

TEST_F(MountKeeperTest, NothingElseStaysOpenThere) {
  std::array<int, 2> other{};
  ASSERT_EQ(::pipe2(other.data(), O_CLOEXEC), 0);
  const auto keeper = begin();
  ASSERT_TRUE(keeper);
  ::close(other[1]);
  char end = 0;
  EXPECT_EQ(::read(other[0], &end, 1), 0) << "nobody else has it";
  ::close(other[0]);
}

}  // namespace
}  // namespace mariner::uvfs
