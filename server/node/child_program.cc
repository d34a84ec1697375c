#include "server/node/child_program.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "proto/check.h"

namespace mariner::node {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> out;
  for (const std::string& each : words) out.push_back(const_cast<char*>(each.c_str()));
  out.push_back(nullptr);
  return out;
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(std::exchange(fd, -1));
}

// What posix_spawn() is told.
class Spawn {
 public:
  Spawn(int output, int errors) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions_, errors, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~Spawn() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;

  // An errno, or 0.
  int run(const ChildProgram::Options& options, pid_t& process) const {
    std::vector<std::string> words{options.program};
    words.insert(words.end(), options.words.begin(), options.words.end());
    return ::posix_spawn(&process, options.program.c_str(), &actions_, &attributes_,
                         pointers(words).data(), pointers(options.environment).data());
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

// The daemon's is among the last to be ended when memory runs out; this one is as any other.
void give_up_protection(pid_t process) {
  const int file =
      ::open(fmt::format("/proc/{}/oom_score_adj", process).c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  (void)!::write(file, "0", 1);
  ::close(file);
}

}  // namespace

Result<ChildProgram> ChildProgram::start(const Options& options) {
  const auto failed = [&](int error) { return errno_error(error, options.program + ": start"); };
  ChildProgram child;
  std::array<int, 2> output{-1, -1};
  std::array<int, 2> errors{-1, -1};
  if (::pipe2(output.data(), O_CLOEXEC) != 0) return failed(errno);
  child.output_ = output[0];
  const bool piped = ::pipe2(errors.data(), O_CLOEXEC) == 0;
  int error = piped ? 0 : errno;
  child.errors_ = errors[0];
  pid_t process = -1;
  if (error == 0) error = Spawn(output[1], errors[1]).run(options, process);
  close_fd(output[1]);
  close_fd(errors[1]);
  if (error != 0) return failed(error);
  child.id_ = process;
  give_up_protection(process);
  child.process_ = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));
  if (child.process_ >= 0) return child;
  error = errno;
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
  return failed(error);
}

ChildProgram::ChildProgram(ChildProgram&& other) noexcept
    : output_(std::exchange(other.output_, -1)),
      errors_(std::exchange(other.errors_, -1)),
      process_(std::exchange(other.process_, -1)),
      id_(other.id_) {}

ChildProgram::~ChildProgram() {
  if (process_ >= 0) kill();
  close_fd(output_);
  close_fd(errors_);
  close_fd(process_);
}

int ChildProgram::take_output() { return std::exchange(output_, -1); }
int ChildProgram::take_errors() { return std::exchange(errors_, -1); }

void ChildProgram::kill() { (void)::syscall(SYS_pidfd_send_signal, process_, SIGKILL, nullptr, 0); }

ChildProgram::End ChildProgram::end() {
  siginfo_t about{};
  if (::waitid(P_PIDFD, static_cast<id_t>(process_), &about, WEXITED) != 0) {
    // (Whoever started this process has it ignore SIGCHLD: how its programs end nobody is told.)
    CHECK(errno == ECHILD);
    return {.exit_code = kUnknown, .signal = 0};
  }
  if (about.si_code == CLD_EXITED) return {.exit_code = about.si_status, .signal = 0};
  return {.exit_code = 1, .signal = about.si_status};
}

}  // namespace mariner::node
