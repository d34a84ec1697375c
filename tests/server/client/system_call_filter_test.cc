#include "server/client/system_call_filter.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/xattr.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/logging/temporary_directory.h"
#include "tests/server/client/confined.h"

namespace mariner::client {
namespace {

using Files = SandboxRules::Files;

class SystemCallFilterTest : public Confined {
 protected:
  static int filtered(Files files, const std::function<int()>& act) {
    return within(
        [files]() -> Result<void> {
          if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error(errno, "prctl");
          return filter_system_calls(files);
        },
        act);
  }
  static int filtered(const std::function<int()>& act) { return filtered(Files::kNone, act); }

  logging::test::TemporaryDirectory folder_;
  const std::string file_ = folder_.file("file");
};

TEST_F(SystemCallFilterTest, WhatOnlyAnIntruderCallsEndsTheProcess) {
  const auto run = [] {
    char* const words[] = {const_cast<char*>("/bin/true"), nullptr};
    return error_of(::execv(words[0], words));
  };
  EXPECT_EQ(filtered(run), -SIGSYS);
  EXPECT_EQ(filtered([] { return error_of(::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr)); }),
            -SIGSYS);
  EXPECT_EQ(filtered([] { return error_of(::setuid(0)); }), -SIGSYS);
  EXPECT_EQ(filtered([] { return error_of(::syscall(SYS_unshare, 0)); }), -SIGSYS);
  EXPECT_EQ(filtered([] { return error_of(::syscall(SYS_bpf, 0, nullptr, 0)); }), -SIGSYS);
  EXPECT_EQ(filtered([] { return error_of(::syscall(SYS_io_uring_setup, 1, nullptr)); }), -SIGSYS);
}

TEST_F(SystemCallFilterTest, OthersAreRefused) {
  const std::string path = file_;
  std::ofstream(path) << "there";
  EXPECT_EQ(filtered([&] { return error_of(::open(path.c_str(), O_RDONLY)); }), EPERM);
  EXPECT_EQ(filtered([&] { return error_of(::open("/proc/self/mem", O_RDWR)); }), EPERM);
  EXPECT_EQ(filtered([&] { return error_of(::unlink(path.c_str())); }), EPERM);
  EXPECT_EQ(filtered([&] { return error_of(::chmod(path.c_str(), 0777)); }), EPERM);
  EXPECT_EQ(filtered([] { return error_of(::fork()); }), EPERM);
  EXPECT_EQ(filtered([] { return error_of(::kill(::getppid(), SIGTERM)); }), EPERM);
  EXPECT_EQ(filtered([] { return error_of(::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0)); }),
            EPERM);
  for (const int family : {AF_INET, AF_INET6, AF_NETLINK, AF_PACKET}) {
    EXPECT_EQ(filtered([=] { return error_of(::socket(family, SOCK_STREAM, 0)); }), EPERM);
  }
  EXPECT_EQ(filtered([] { return error_of(::socket(AF_UNIX, SOCK_DGRAM, 0)); }), EPERM);
  EXPECT_EQ(filtered([] {
              void* const got =
                  ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
              return got == MAP_FAILED ? errno : 0;
            }),
            EPERM);
  EXPECT_EQ(filtered([] {
              alignas(4096) static std::array<char, 4096> written;
              return error_of(::mprotect(written.data(), written.size(), PROT_EXEC));
            }),
            EPERM);
  EXPECT_EQ(filtered([] { return error_of(::fcntl(0, F_SETOWN, ::getppid())); }), EPERM);
  EXPECT_EQ(filtered([] { return error_of(::syscall(SYS_clone3, nullptr, 0)); }), ENOSYS);
}

TEST_F(SystemCallFilterTest, WhatProgramsAreMadeOfWorks) {
  EXPECT_EQ(filtered([] {
              std::atomic<int> sum = 0;
              {
                std::vector<std::jthread> threads;
                for (int i = 0; i < 4; ++i) threads.emplace_back([&] { ++sum; });
              }
              return sum - 4;
            }),
            0);
  EXPECT_EQ(filtered([] { return error_of(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); }), 0);
  EXPECT_EQ(filtered([] { return error_of(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)); }), 0);
  EXPECT_EQ(filtered([] {
              const std::vector<char> much(256 << 20, 'x');
              return much.back() == 'x' ? 0 : 1;
            }),
            0);
  EXPECT_EQ(filtered([]() -> int {
              try {
                throw std::runtime_error("thrown");
              } catch (const std::exception&) {
                return 0;
              }
            }),
            0);
  EXPECT_EQ(filtered([]() -> int { std::abort(); }), -SIGABRT);
}

TEST_F(SystemCallFilterTest, WhatRestoresMakesFilesAndOpensNone) {
  std::ofstream(file_) << "there";
  const std::string path = file_;
  const std::string made = folder_.file("made");
  const auto open = [](const std::string& which, int flags) {
    return filtered(Files::kMade, [=] { return error_of(::open(which.c_str(), flags, 0600)); });
  };
  EXPECT_EQ(open(path, O_RDONLY), EPERM);
  EXPECT_EQ(open(path, O_WRONLY | O_TRUNC), EPERM);
  EXPECT_EQ(open(path, O_WRONLY | O_CREAT), EPERM);
  EXPECT_EQ(open(path, O_WRONLY | O_CREAT | O_EXCL), EEXIST);
  EXPECT_EQ(open("/dev/null", O_RDWR), EPERM);
  EXPECT_EQ(open("/dev/null", O_RDWR | O_DIRECTORY), ENOTDIR);
  EXPECT_EQ(open(made, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW), 0);
  EXPECT_EQ(filtered(Files::kMade,
                     [&] {
                       const int folder = ::open(folder_.file("").c_str(), O_DIRECTORY);
                       if (::mkdirat(folder, "deep", 0700) != 0) return 1;
                       if (::symlinkat("nowhere", folder, "link") != 0) return 2;
                       if (::linkat(folder, "made", folder, "deep/twin", 0) != 0) return 3;
                       if (::renameat2(folder, "link", folder, "named", RENAME_NOREPLACE) != 0) {
                         return 4;
                       }
                       if (::fchmodat(folder, "made", 0640, 0) != 0) return 5;
                       const std::array<timespec, 2> times{};
                       if (::utimensat(folder, "made", times.data(), 0) != 0) return 6;
                       if (::unlinkat(folder, "deep/twin", 0) != 0) return 7;
                       return ::unlinkat(folder, "deep", AT_REMOVEDIR) != 0 ? 8 : 0;
                     }),
            0);
}

TEST_F(SystemCallFilterTest, WhatKeepsFilesReadsReplacesAndRemovesThem) {
  EXPECT_EQ(filtered(Files::kKept,
                     [&] {
                       const std::string other = file_ + ".new";
                       std::ofstream(other) << "kept";
                       if (std::rename(other.c_str(), file_.c_str()) != 0) return 1;
                       std::string text;
                       std::ifstream(file_) >> text;
                       if (text != "kept") return 2;
                       return ::unlink(file_.c_str()) != 0 ? 3 : 0;
                     }),
            0);
  EXPECT_EQ(filtered(Files::kKept, [&] { return error_of(::symlink("a", file_.c_str())); }), EPERM);
  EXPECT_EQ(filtered(Files::kKept, [&] { return error_of(::mknod(file_.c_str(), S_IFIFO, 0)); }),
            EPERM);
}

}  // namespace
}  // namespace mariner::client
