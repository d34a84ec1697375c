// What becomes of code that has given up what it does not need: in a process of its own.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "proto/error.h"

namespace mariner::client {

class Confined : public ::testing::Test {
 protected:
#ifdef MARINER_UNCONFINED
  void SetUp() override { GTEST_SKIP() << "sanitizers need more"; }
#endif

  static constexpr int kNotConfined = 200;
  static constexpr int kThrown = 201;

  // What `act` returned after `confine` (errno, or 0: it may do that); or the signal that ended it,
  // negative.
  static int within(const std::function<Result<void>()>& confine, const std::function<int()>& act) {
    const pid_t process = ::fork();
    if (process == 0) {
      try {
        ::_exit(confine() ? act() : kNotConfined);
      } catch (...) {
        ::_exit(kThrown);
      }
    }
    int status = 0;
    EXPECT_EQ(::waitpid(process, &status, 0), process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  // errno of a call that returned -1, else 0.
  static int error_of(long returned) { return returned == -1 ? errno : 0; }
};

}  // namespace mariner::client
