#include "uvfs/program/background.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>

namespace mariner::uvfs {
namespace {

// How a process ends, as who started it sees it, that does `act` in the background.
int ends(const std::function<int(Background&)>& act) {
  const pid_t process = ::fork();
  if (process == 0) {
    auto background = Background::begin();
    ::_exit(background ? act(*background) : 99);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(process, &status, 0), process);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Background, WhoStartedItGoesOnWhenItIsReady) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  EXPECT_EQ(ends([&](Background& background) {
              if (!background.ready()) return 1;
              char end = 0;
              ::close(pipe[1]);
              // It is still there: it ends with this test's end of the pipe.
              return static_cast<int>(::read(pipe[0], &end, 1));
            }),
            0);
  for (const int each : pipe) ::close(each);
}

TEST(Background, AnEndBeforeIsTheEndOfAll) {
  EXPECT_EQ(ends([](Background&) { return 3; }), 3);
  EXPECT_EQ(ends([](Background&) -> int {
              ::raise(SIGKILL);
              return 0;
            }),
            1);
}

TEST(Background, IsOfASessionOfItsOwnAndPrintsNothing) {
  EXPECT_EQ(ends([](Background& background) {
              std::array<char, 8> folder{};
              if (::getsid(0) != ::getpid()) return 4;
              if (::getcwd(folder.data(), folder.size()) == nullptr || folder[1] != '\0') return 5;
              if (!background.ready()) return 6;
              return 0;
            }),
            0);
}

}  // namespace
}  // namespace mariner::uvfs
