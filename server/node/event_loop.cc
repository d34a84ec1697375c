#include "server/node/event_loop.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "proto/check.h"

namespace mariner::node {
namespace {

std::uint64_t clock_ns(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

// A hint of one thread: handlers need no locking against each other.
EventLoop::EventLoop() : context_(1) {}

void EventLoop::run() {
  run_until([this] { return stopping_.load(std::memory_order_relaxed); });
  stopping_.store(false, std::memory_order_relaxed);
}

void EventLoop::run_until(UniqueFunction<bool()> ended) {
  context_.restart();  // the end of an earlier run, which left it without work, has stopped it
  const auto work = boost::asio::make_work_guard(context_);
  run_deferred();
  while (!ended()) turn();
}

void EventLoop::turn() {
  woken_ = false;
  wait();
  // Completions wait for nothing: the next batch has gathered already, and to look for further
  // events costs a system call when there is none.
  for (int i = 1; !woken_ && i < kEventsPerTurn && context_.poll_one() != 0; ++i) {
  }
  if (turn_hook_) turn_hook_();
  run_deferred();
  turns_.fetch_add(1, std::memory_order_relaxed);
}

// Until an event has been handled, or it has been woken.
void EventLoop::wait() {
  const std::chrono::nanoseconds now = monotonic_time();
  const Outlook outlook = outlook_ ? outlook_(now) : Outlook{};
  const bool polls = busy_poll_.allowed(outlook.under_way);
  std::chrono::nanoseconds until = polls ? now + busy_poll_.value() : now;
  if (now < outlook.from) {
    timer_->set(outlook.from);
  } else {
    until = std::max(until, outlook.until);
  }
  if (!found(now, until)) context_.run_one();
  if (polls) busy_poll_.waited(monotonic_time() - now);
}

// Whether looking has handled an event, or something has woken it.
bool EventLoop::found(std::chrono::nanoseconds now, std::chrono::nanoseconds until) {
  while (now < until) {
    if (context_.poll_one() != 0 || woken_) return true;
    // The kernel's own threads, which complete what is waited for, may need this processor.
    ::sched_yield();
    const std::chrono::nanoseconds later = monotonic_time();
    looked_ += later - std::exchange(now, later);
  }
  return false;
}

std::chrono::nanoseconds EventLoop::busy_time() const {
  return std::chrono::nanoseconds(clock_ns(CLOCK_THREAD_CPUTIME_ID)) - looked_;
}

Result<void> EventLoop::wake_on(int fd) {
  CHECK(!wake_);
  Result<std::unique_ptr<WakeDescriptor>> wake = WakeDescriptor::watch(context_, fd, woken_);
  if (!wake) return wake.error();
  wake_ = std::move(*wake);
  return {};
}

Result<void> EventLoop::set_outlook(UniqueFunction<Outlook(std::chrono::nanoseconds)> outlook) {
  Result<std::unique_ptr<WakeTimer>> timer = WakeTimer::make(context_, woken_);
  if (!timer) return timer.error();
  timer_ = std::move(*timer);
  outlook_ = std::move(outlook);
  return {};
}

void EventLoop::stop() {
  post([this] { stopping_.store(true, std::memory_order_relaxed); });
}

void EventLoop::run_deferred() {
  // What deferred work defers runs in the same turn.
  while (!deferred_.empty()) {
    UniqueFunction<void()> work = std::move(deferred_.front());
    deferred_.pop_front();
    work();
  }
}

void EventLoop::post(UniqueFunction<void()> work) { boost::asio::post(context_, std::move(work)); }

void EventLoop::defer(UniqueFunction<void()> work) { deferred_.push_back(std::move(work)); }

void EventLoop::after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) {
  auto timer = std::make_unique<boost::asio::steady_timer>(
      context_, std::chrono::duration_cast<std::chrono::steady_clock::duration>(delay));
  boost::asio::steady_timer& ref = *timer;
  ref.async_wait([timer = std::move(timer),
                  work = std::move(work)](const boost::system::error_code& error) mutable {
    if (!error) work();
  });
}

VersionTime EventLoop::wall_time() const { return {clock_ns(CLOCK_REALTIME)}; }

std::chrono::nanoseconds EventLoop::monotonic_time() const {
  return std::chrono::nanoseconds(clock_ns(CLOCK_BOOTTIME));
}

}  // namespace mariner::node
