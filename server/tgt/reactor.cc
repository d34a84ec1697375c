// SPDX-License-Identifier: GPL-2.0-only
#include "server/tgt/reactor.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "server/tgt/tgt_abi.h"

namespace mariner::tgt {
namespace {

constexpr int kEventsMax = 64;  // of one turn; what is left keeps the descriptor readable

}  // namespace

Reactor* Reactor::of_tgtd(std::string& fault) {
  static Reactor reactor;
  if (reactor.epoll_ < 0 && !reactor.open()) {
    fault = std::string("the event loop: ") + std::strerror(errno);
    return nullptr;
  }
  return &reactor;
}

bool Reactor::open() {
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  const int timer = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  epoll_event event{.events = EPOLLIN, .data = {.ptr = nullptr}};  // null: the timer
  if (epoll >= 0 && timer >= 0 && ::epoll_ctl(epoll, EPOLL_CTL_ADD, timer, &event) == 0 &&
      tgt_event_add(epoll, EPOLLIN, &Reactor::wake, this) == 0) {
    epoll_ = epoll;
    timer_ = timer;
    return true;
  }
  const int error = errno;
  if (epoll >= 0) ::close(epoll);
  if (timer >= 0) ::close(timer);
  errno = error;
  return false;
}

void Reactor::add(Watched& watched) { watched_.push_back(&watched); }

void Reactor::remove(Watched& watched) { std::erase(watched_, &watched); }

bool Reactor::watch(int fd, std::uint32_t events, Watched& watched) {
  epoll_event event{.events = events, .data = {.ptr = &watched}};
  return ::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) == 0;
}

void Reactor::change(int fd, std::uint32_t events, Watched& watched) {
  epoll_event event{.events = events, .data = {.ptr = &watched}};
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

void Reactor::unwatch(int fd) { ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr); }

void Reactor::wake(int /*fd*/, int /*events*/, void* reactor) {
  static_cast<Reactor*>(reactor)->turn();
}

void Reactor::turn() {
  std::array<epoll_event, kEventsMax> events{};
  const int count = ::epoll_wait(epoll_, events.data(), kEventsMax, 0);
  bool timer = false;
  for (int i = 0; i < count; ++i) {
    auto* watched = static_cast<Watched*>(events[static_cast<std::size_t>(i)].data.ptr);
    if (watched != nullptr) {
      watched->ready(events[static_cast<std::size_t>(i)].events);
    } else {
      timer = true;
    }
  }
  // Last, because it may give up descriptors that have an event in this turn.
  if (timer) expire();
}

void Reactor::expire() {
  std::uint64_t expirations = 0;
  if (::read(timer_, &expirations, sizeof expirations) < 0 && errno != EAGAIN) return;
  armed_.reset();
  const Clock::time_point now = Clock::now();
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    Watched& watched = *watched_[i];
    if (watched.deadline && *watched.deadline <= now) {
      watched.deadline.reset();
      watched.due();
    }
  }
  deadlines_changed();
}

void Reactor::deadlines_changed() {
  std::optional<Clock::time_point> first;
  for (const Watched* watched : watched_) {
    if (watched->deadline && (!first || *watched->deadline < *first)) first = watched->deadline;
  }
  if (!first || (armed_ && *armed_ <= *first)) return;  // it may come early: nobody is due then
  using std::chrono::nanoseconds;
  const auto since_boot = std::chrono::duration_cast<nanoseconds>(first->time_since_epoch());
  itimerspec when{};
  when.it_value.tv_sec = since_boot.count() / 1'000'000'000;
  when.it_value.tv_nsec = since_boot.count() % 1'000'000'000;
  if (::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr) == 0) armed_ = first;
}

}  // namespace mariner::tgt
