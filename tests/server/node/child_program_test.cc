#include "server/node/child_program.h"

#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <string>

#include "tests/logging/temporary_directory.h"

namespace mariner::node {
namespace {

using ::testing::HasSubstr;

std::string read_all(int fd) {
  std::string all;
  std::array<char, 4096> piece{};
  for (ssize_t count; (count = ::read(fd, piece.data(), piece.size())) > 0;) {
    all.append(piece.data(), static_cast<std::size_t>(count));
  }
  ::close(fd);
  return all;
}

Result<ChildProgram> shell(const std::string& script, std::vector<std::string> environment = {}) {
  return ChildProgram::start(
      {.program = "/bin/sh", .words = {"-c", script}, .environment = std::move(environment)});
}

ChildProgram::End wait(ChildProgram& child) {
  pollfd process{.fd = child.process(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&process, 1, 20'000), 1);
  return child.end();
}

TEST(ChildProgram, PrintsAndEnds) {
  auto child = shell("echo out; echo err >&2; exit 3");
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_EQ(read_all(child->take_output()), "out\n");
  EXPECT_EQ(read_all(child->take_errors()), "err\n");
  const auto end = wait(*child);
  EXPECT_EQ(end.exit_code, 3);
  EXPECT_EQ(end.signal, 0);
}

TEST(ChildProgram, HasNothingOfThisProcess) {
  std::array<int, 2> open{};
  ASSERT_EQ(::pipe(open.data()), 0);  // which stays open over an exec
  ::signal(SIGPIPE, SIG_IGN);
  auto child = shell(
      "env | grep -v -e PWD -e SHLVL -e _=; ls /proc/self/fd | wc -l; "
      "grep SigBlk /proc/self/status; cat; kill -PIPE $$",
      {"A=b"});
  ::signal(SIGPIPE, SIG_DFL);
  for (const int each : open) ::close(each);
  ASSERT_TRUE(child) << child.error().message;
  const std::string said = read_all(child->take_output());
  EXPECT_THAT(said, HasSubstr("A=b\n4\n")) << "three, and that of the listing";
  EXPECT_THAT(said, HasSubstr("SigBlk:\t0000000000000000"));
  EXPECT_EQ(wait(*child).signal, SIGPIPE) << "which is not ignored there";
}

TEST(ChildProgram, IsEnded) {
  auto child = shell("kill -SEGV $$");
  ASSERT_TRUE(child);
  EXPECT_EQ(wait(*child).signal, SIGSEGV);
  auto endless = shell("while :; do sleep 1; done");
  ASSERT_TRUE(endless);
  endless->kill();
  EXPECT_EQ(wait(*endless).signal, SIGKILL);
}

TEST(ChildProgram, EndsWhereNobodyIsToldHow) {
  // (One that has ended before it is looked at would be unknown to the kernel.)
  ::signal(SIGCHLD, SIG_IGN);
  auto child = shell("while :; do sleep 1; done");
  if (child) child->kill();
  const auto end = child ? wait(*child) : ChildProgram::End{};
  ::signal(SIGCHLD, SIG_DFL);
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_EQ(end.exit_code, ChildProgram::kUnknown);
  EXPECT_EQ(end.signal, 0);
}

TEST(ChildProgram, WhatIsNoneIsSaid) {
  const logging::test::TemporaryDirectory folder;
  EXPECT_THAT(ChildProgram::start({.program = folder.file("none"), .words = {}, .environment = {}})
                  .error()
                  .message,
              HasSubstr("none: start: No such file"));
}

}  // namespace
}  // namespace mariner::node
