#include "uvfs/mount/mount_keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>

namespace mariner::uvfs {
namespace {

// Until the other side has ended, or said so.
void wait_for_end(int channel) {
  char said = 0;
  while (::read(channel, &said, 1) < 0 && errno == EINTR) {
  }
}

void close_all_but(int one, int other) {
  const auto [low, high] = std::minmax(one, other);
  const auto close_from = [](int first, unsigned last) {
    if (static_cast<unsigned>(first) <= last) ::close_range(static_cast<unsigned>(first), last, 0);
  };
  close_from(STDERR_FILENO + 1, static_cast<unsigned>(low - 1));
  close_from(low + 1, static_cast<unsigned>(high - 1));
  close_from(high + 1, UINT_MAX);
}

[[noreturn]] void keep(int channel, int descriptor, const std::function<void()>& unmount) {
  ::setsid();
  for (const int each : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) ::signal(each, SIG_IGN);
  ::prctl(PR_SET_NAME, "uvfs-unmounts", 0, 0, 0);
  if (::chdir("/") != 0) ::_exit(1);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int each : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(null, each);
  close_all_but(channel, descriptor);
  wait_for_end(channel);
  unmount();
  ::_exit(0);
}

}  // namespace

Result<MountKeeper> MountKeeper::begin(int descriptor, const std::function<void()>& unmount) {
  std::array<int, 2> channel{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, channel.data()) != 0) {
    return errno_error(errno, "a channel to the process that unmounts");
  }
  const pid_t process = ::fork();
  if (process == 0) keep(channel[1], descriptor, unmount);
  const int error = errno;
  ::close(channel[1]);
  if (process > 0) return MountKeeper(channel[0], process);
  ::close(channel[0]);
  return errno_error(error, "a process that unmounts");
}

void MountKeeper::end() {
  if (channel_ < 0) return;
  ::shutdown(channel_, SHUT_WR);
  wait_for_end(channel_);
  ::close(std::exchange(channel_, -1));
  // (Not within a sandbox: it is gone by then all the same.)
  (void)::waitpid(process_, nullptr, 0);
}

}  // namespace mariner::uvfs
