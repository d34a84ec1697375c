#include "server/node/wake_timer.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "proto/check.h"

namespace mariner::node {

Result<std::unique_ptr<WakeTimer>> WakeTimer::make(boost::asio::io_context& context, bool& woken) {
  const int fd = ::timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd < 0) return errno_error(errno, "cannot make a timer");
  std::unique_ptr<WakeTimer> self(new WakeTimer(fd));
  auto wake = WakeDescriptor::watch(context, fd, woken);
  if (!wake) return wake.error();
  self->wake_ = std::move(*wake);
  return self;
}

WakeTimer::~WakeTimer() {
  wake_.reset();
  ::close(fd_);
}

void WakeTimer::set(std::chrono::nanoseconds due) {
  if (std::exchange(due_, due) == due) return;
  constexpr std::int64_t kSecond = 1'000'000'000;
  // What is due at zero never is.
  const std::int64_t ns = std::max<std::int64_t>(due.count(), 1);
  itimerspec at{};
  at.it_value = {ns / kSecond, ns % kSecond};
  // It is never read: to set it anew forgets what was due.
  CHECK(::timerfd_settime(fd_, TFD_TIMER_ABSTIME, &at, nullptr) == 0);
}

}  // namespace mariner::node
