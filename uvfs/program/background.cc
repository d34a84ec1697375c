#include "uvfs/program/background.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace mariner::uvfs {
namespace {

[[noreturn]] void wait_for(pid_t process, const HostFd& channel) {
  char said = 0;
  ssize_t count = 0;
  while ((count = ::read(channel.fd(), &said, 1)) < 0 && errno == EINTR) {
  }
  if (count == 1) ::_exit(0);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  ::_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

}  // namespace

Result<Background> Background::begin() {
  std::array<int, 2> channel{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel.data()) != 0) {
    return errno_error(errno, "going on in the background");
  }
  HostFd here(channel[0]);
  HostFd there(channel[1]);
  HostFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const pid_t process = null.fd() < 0 ? -1 : ::fork();
  if (process < 0) return errno_error(errno, "going on in the background");
  if (process > 0) {
    (void)there.close();
    wait_for(process, here);
  }
  ::setsid();
  if (::chdir("/") != 0) return errno_error(errno, "going on in the background");
  return Background(std::move(there), std::move(null));
}

Result<void> Background::ready() {
  for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::dup2(null_.fd(), each) < 0) return errno_error(errno, "going on in the background");
  }
  if (::send(channel_.fd(), "r", 1, MSG_NOSIGNAL) != 1) {
    return Error{ErrorCode::kAborted, "whoever started this has not waited for it"};
  }
  return {};
}

}  // namespace mariner::uvfs
