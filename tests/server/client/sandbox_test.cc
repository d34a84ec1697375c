#include "server/client/sandbox.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <seccomp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/logging/temporary_directory.h"
#include "tests/server/client/confined.h"

namespace mariner::client {
namespace {

using ::testing::HasSubstr;
using Files = SandboxRules::Files;

class SandboxTest : public Confined {
 protected:
  SandboxTest() { ::unsetenv("MARINER_SANDBOX"); }

  static int sandboxed(const SandboxRules& rules, const std::function<int()>& act) {
    return within([rules] { return enter_sandbox(rules); }, act);
  }
  // /proc/PID/status of a process within.
  static std::map<std::string, std::string> status(const SandboxRules& rules) {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
    const pid_t process = ::fork();
    if (process == 0) {
      const bool entered = enter_sandbox(rules).has_value();
      if (::write(pipe[1], entered ? "y" : "n", 1) != 1) ::_exit(1);
      for (;;) ::pause();
    }
    char entered = 0;
    EXPECT_EQ(::read(pipe[0], &entered, 1), 1);
    EXPECT_EQ(entered, 'y');
    std::ifstream in("/proc/" + std::to_string(process) + "/status");
    std::map<std::string, std::string> found;
    for (std::string name, value; in >> name && std::getline(in >> std::ws, value);) {
      found[name] = value;
    }
    ::kill(process, SIGKILL);
    ::waitpid(process, nullptr, 0);
    for (const int each : pipe) ::close(each);
    return found;
  }
  static unsigned long long capabilities(std::map<std::string, std::string> status) {
    return std::stoull(status["CapPrm:"], nullptr, 16);
  }

  logging::test::TemporaryDirectory folder_;
};

TEST_F(SandboxTest, TheKernelSaysSo) {
  auto found = status({});
  EXPECT_EQ(found["Seccomp:"], "2");
  EXPECT_EQ(found["NoNewPrivs:"], "1");
  EXPECT_EQ(capabilities(found), 0u);
}

TEST_F(SandboxTest, WhatRestoresKeepsWhatOwnersTake) {
  if (::geteuid() != 0) GTEST_SKIP() << "of root";
  const int folder = ::open(folder_.file("").c_str(), O_PATH | O_DIRECTORY);
  const auto kept = capabilities(status({.files = Files::kMade, .folder = folder}));
  const auto has = [&](int capability) { return (kept >> capability & 1) != 0; };
  EXPECT_TRUE(has(0) && has(1) && has(3)) << "CHOWN, DAC_OVERRIDE, FOWNER";
  EXPECT_FALSE(has(21) || has(19) || has(12) || has(17))
      << "SYS_ADMIN, SYS_PTRACE, NET_ADMIN, RAWIO";
  ::close(folder);
}

TEST_F(SandboxTest, FilesProgramsAndSocketsAreRefused) {
  EXPECT_NE(sandboxed({}, [] { return error_of(::open("/etc/passwd", O_RDONLY)); }), 0);
  EXPECT_EQ(sandboxed({},
                      [] {
                        char* const words[] = {const_cast<char*>("/bin/true"), nullptr};
                        return error_of(::execv(words[0], words));
                      }),
            -SIGSYS);
  EXPECT_EQ(sandboxed({}, [] { return error_of(::socket(AF_INET, SOCK_STREAM, 0)); }), EPERM);
}

TEST_F(SandboxTest, WhatWasOpenStaysOpen) {
  const std::string path = folder_.file("image");
  std::ofstream(path) << "bytes";
  const int open = ::open(path.c_str(), O_RDWR);
  EXPECT_EQ(sandboxed({},
                      [open] {
                        char first = 0;
                        return ::pread(open, &first, 1, 0) == 1 && first == 'b' ? 0 : 1;
                      }),
            0);
  ::close(open);
}

TEST_F(SandboxTest, RestoringStaysBelowItsFolder) {
  ASSERT_EQ(::mkdir(folder_.file("target").c_str(), 0700), 0);
  const int folder = ::open(folder_.file("target").c_str(), O_RDONLY | O_DIRECTORY);
  const SandboxRules rules{.files = Files::kMade, .folder = folder};
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW;
  EXPECT_EQ(sandboxed(rules, [=] { return error_of(::openat(folder, "file", kFlags, 0600)); }), 0);
  const int outside =
      sandboxed(rules, [=] { return error_of(::openat(folder, "../file", kFlags, 0600)); });
  EXPECT_TRUE(outside == EACCES || outside == 0) << outside;  // 0: without Landlock
  EXPECT_EQ(sandboxed(rules, [=] { return error_of(::openat(folder, "file", O_RDONLY)); }), EPERM);
  ::close(folder);
}

TEST_F(SandboxTest, MemoryIsBounded) {
  const auto take = [](std::uint64_t bytes) {
    return sandboxed({}, [bytes] { return std::vector<char>(bytes).empty() ? 1 : 0; });
  };
  EXPECT_EQ(take(1u << 30), 0);
  EXPECT_EQ(take(kSandboxBytesMax), kThrown);
}

TEST_F(SandboxTest, NoCoreIsLeft) {
  EXPECT_EQ(sandboxed({},
                      [] {
                        rlimit limit{};
                        return ::getrlimit(RLIMIT_CORE, &limit) != 0 || limit.rlim_max != 0 ? 1 : 0;
                      }),
            0);
  EXPECT_EQ(sandboxed({}, []() -> int { std::abort(); }), -SIGABRT);
}

TEST_F(SandboxTest, TheZoneIsThatOfBefore) {
  const auto offset = [] {
    const std::time_t at = 1'700'000'000;
    std::tm local{};
    ::tzset();
    ::localtime_r(&at, &local);
    return static_cast<int>(local.tm_gmtoff);
  };
  ::setenv("TZ", "Asia/Kathmandu", 1);
  const int expected = offset();
  EXPECT_EQ(sandboxed({}, [&] { return offset() - expected; }), 0);
  ::unsetenv("TZ");
  EXPECT_EQ(sandboxed({}, [&] { return std::string(::getenv("TZ")) == ":/etc/localtime" ? 0 : 1; }),
            0);
}

TEST_F(SandboxTest, TheEnvironmentMayDoWithoutAndSaysNothingElse) {
  ::setenv("MARINER_SANDBOX", "off", 1);
  EXPECT_EQ(sandboxed({}, [] { return error_of(::open("/etc/passwd", O_RDONLY)); }), 0);
  ::setenv("MARINER_SANDBOX", "maybe", 1);
  const auto wrong = enter_sandbox({});
  ::unsetenv("MARINER_SANDBOX");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(wrong.error().message, HasSubstr("MARINER_SANDBOX=maybe: expected off"));
}

// A kernel that refuses a system call, as far as this process can tell.
void refuse(int call, int error) {
  const scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
  ASSERT_EQ(seccomp_rule_add(filter, SCMP_ACT_ERRNO(error), call, 0), 0);
  ASSERT_EQ(seccomp_load(filter), 0);
  seccomp_release(filter);
}

TEST_F(SandboxTest, AKernelWithoutFiltersIsAnErrorThatSaysWhatToDo) {
  std::ofstream said(folder_.file("said"));
  EXPECT_EQ(within([] { return Result<void>(); },
                   [&] {
                     refuse(SCMP_SYS(seccomp), EINVAL);
                     const auto entered = enter_sandbox({});
                     said << (entered ? "entered" : entered.error().message) << std::flush;
                     return entered ? 0 : static_cast<int>(entered.error().code);
                   }),
            static_cast<int>(ErrorCode::kIo));
  std::ifstream in(folder_.file("said"));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  EXPECT_THAT(text, HasSubstr("no sandbox: seccomp: Invalid argument. Foreign file systems"));
  EXPECT_THAT(text, HasSubstr("MARINER_SANDBOX=off in the environment reads them without"));
}

TEST_F(SandboxTest, AKernelWithoutLandlockIsNone) {
  EXPECT_EQ(within([] { return Result<void>(); },
                   [] {
                     refuse(SCMP_SYS(landlock_create_ruleset), ENOSYS);
                     if (!enter_sandbox({})) return 1;
                     return error_of(::open("/etc/passwd", O_RDONLY));
                   }),
            EPERM);
}

}  // namespace
}  // namespace mariner::client
