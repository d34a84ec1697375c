#include "server/node/event_loop.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

namespace mariner::node {
namespace {

TEST(EventLoop, HandlesABurstThenWhatItDeferred) {
  EventLoop loop;
  std::string order;
  for (const char c : {'a', 'b', 'c'}) {
    loop.post([&loop, &order, c] {
      order += c;
      loop.defer([&loop, &order, c] {
        order += static_cast<char>(c - 'a' + 'A');
        if (c == 'a') loop.defer([&order] { order += '!'; });
      });
    });
  }
  loop.post([&loop] { loop.defer([&loop] { loop.stop(); }); });
  loop.run();
  EXPECT_EQ(order, "abcABC!");
  EXPECT_GT(loop.turns(), 0u);
}

TEST(EventLoop, WhatGoesOnInTheNextTurnLetsEventsAndWhatTheyDeferIn) {
  EventLoop loop;
  std::string order;
  int left = 3;
  UniqueFunction<void()> piece = [&] {
    order += static_cast<char>('0' + left);
    // An event that comes meanwhile, and what it has to send.
    loop.post([&loop, &order] {
      order += 'e';
      loop.defer([&order] { order += 's'; });
    });
    if (--left == 0) return loop.post([&loop] { loop.stop(); });
    loop.in_next_turn([&piece] { piece(); });
  };
  loop.post([&piece] { piece(); });
  loop.run();
  EXPECT_EQ(order, "3es2es1es");
}

TEST(EventLoop, RunsAgainAfterItWasStopped) {
  EventLoop loop;
  int ran = 0;
  for (int i = 0; i < 3; ++i) {
    loop.post([&] {
      ++ran;
      loop.stop();
    });
    loop.run();
  }
  EXPECT_EQ(ran, 3);
}

TEST(EventLoop, TimersInTheOrderOfTheirTimes) {
  EventLoop loop;
  std::string order;
  const auto before = loop.monotonic_time();
  loop.after(std::chrono::milliseconds(8), [&] {
    order += 'b';
    loop.stop();
  });
  loop.after(std::chrono::milliseconds(2), [&] { order += 'a'; });
  loop.run();
  EXPECT_EQ(order, "ab");
  EXPECT_GE(loop.monotonic_time() - before, std::chrono::milliseconds(8));
}

TEST(EventLoop, AnyThreadMayPost) {
  EventLoop loop;
  int count = 0;
  std::thread other([&] {
    for (int i = 0; i < 1000; ++i) {
      loop.post([&] {
        if (++count == 1000) loop.stop();
      });
    }
  });
  loop.run();
  other.join();
  EXPECT_EQ(count, 1000);
}

TEST(EventLoop, ADescriptorBeginsATurnAndTheHookDoesTheRest) {
  EventLoop loop;
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int events = 0;
  loop.set_turn_hook([&] {
    eventfd_t value = 0;
    if (::eventfd_read(fd, &value) != 0) return;
    if (++events == 100) return loop.stop();
    loop.defer([&] { ::eventfd_write(fd, 1); });
  });
  ASSERT_TRUE(loop.wake_on(fd).has_value());
  ::eventfd_write(fd, 1);
  loop.run();
  EXPECT_EQ(events, 100);
  loop.stop_waking();
  ::close(fd);
}

// Completions that never end keep nobody else from being heard.
TEST(EventLoop, WhatIsPostedRunsHoweverOftenTheDescriptorWakes) {
  EventLoop loop;
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  loop.set_turn_hook([&] { ::eventfd_write(fd, 1); });
  ASSERT_TRUE(loop.wake_on(fd).has_value());
  int left = 1000;
  for (int i = 0; i < 1000; ++i) {
    loop.post([&] {
      if (--left == 0) loop.stop();
    });
  }
  loop.run();
  EXPECT_EQ(left, 0);
  loop.stop_waking();
  ::close(fd);
}

// Looking and not finding ends, and what comes then is heard; so does sleeping until it is time.
TEST(EventLoop, SleepsAndLooksAsTheOutlookSays) {
  EventLoop loop;
  const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int asked = 0;
  int events = 0;
  const Result<void> set = loop.set_outlook([&](std::chrono::nanoseconds now) -> Outlook {
    using std::chrono::microseconds;
    switch (++asked % 3) {
      case 0: return {};
      case 1: return {true, now - microseconds(1), now + microseconds(1)};
      default: return {true, now + microseconds(5), now + microseconds(9)};
    }
  });
  ASSERT_TRUE(set.has_value());
  loop.set_turn_hook([&] {
    eventfd_t value = 0;
    if (::eventfd_read(fd, &value) != 0) return;
    if (++events == 100) return loop.stop();
    if (events % 3 == 0) return loop.post([&] { ::eventfd_write(fd, 1); });
    loop.after(std::chrono::microseconds(events), [&] { ::eventfd_write(fd, 1); });
  });
  ASSERT_TRUE(loop.wake_on(fd).has_value());
  ::eventfd_write(fd, 1);
  loop.run();
  EXPECT_EQ(events, 100);
  EXPECT_GE(asked, 100);
  loop.stop_waking();
  ::close(fd);
}

// With nothing else to come, the loop is woken when it is time to look.
TEST(EventLoop, IsWokenToLook) {
  EventLoop loop;
  int looked = 0;
  std::chrono::nanoseconds from{0};
  const Result<void> set = loop.set_outlook([&](std::chrono::nanoseconds now) -> Outlook {
    if (from == std::chrono::nanoseconds(0) || now >= from) {
      if (++looked == 100) loop.stop();
      from = now + std::chrono::microseconds(20);
    }
    return {true, from, from};
  });
  ASSERT_TRUE(set.has_value());
  loop.run();
  EXPECT_GE(looked, 100);
}

TEST(EventLoop, LooksForNothingWithoutAnOutlook) {
  EventLoop loop;
  ASSERT_TRUE(loop.set_outlook([](std::chrono::nanoseconds now) {
                    return Outlook{true, now + std::chrono::hours(1), now};
                  })
                  .has_value());
  loop.no_outlook();
  loop.post([&] { loop.stop(); });
  loop.run();
  EXPECT_EQ(loop.turns(), 1u);
}

// Of two loops that take all of a processor, one to look for what does not come.
TEST(EventLoop, IsNotBusyWhileItLooksInVain) {
  const auto used = [](clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
    timespec time{};
    ::clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  constexpr auto kEnough = std::chrono::milliseconds(20);
  EventLoop loop;
  const auto busy_before = loop.busy_time();
  const auto used_before = used();
  loop.post([&] {
    while (used() - used_before < kEnough) {
    }
  });
  loop.post([&] { loop.stop(); });
  loop.run();
  EXPECT_GE(loop.busy_time() - busy_before, kEnough);

  EventLoop looking;
  ASSERT_TRUE(looking
                  .set_outlook([](std::chrono::nanoseconds now) {
                    return Outlook{true, now, now + std::chrono::hours(1)};
                  })
                  .has_value());
  const auto idle_before = looking.busy_time();
  const auto looked_before = used();
  clockid_t clock{};
  ASSERT_EQ(::pthread_getcpuclockid(::pthread_self(), &clock), 0);
  std::thread other([&] {
    while (used(clock) - looked_before < kEnough) std::this_thread::yield();
    looking.stop();
  });
  looking.run();
  other.join();
  EXPECT_LT(looking.busy_time() - idle_before, (used() - looked_before) / 2);
}

TEST(EventLoop, WorkDeferredBeforeItRunsIsDone) {
  EventLoop loop;
  bool ran = false;
  loop.defer([&] { ran = true; });
  loop.stop();
  loop.run();
  EXPECT_TRUE(ran);
}

}  // namespace
}  // namespace mariner::node
