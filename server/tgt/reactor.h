// SPDX-License-Identifier: GPL-2.0-only
// The descriptors and deadlines of all units, behind one descriptor in tgtd's event loop: an epoll
// of this module's own, which is added once and stays. tgtd's loop calls the handlers of a turn
// through pointers that `tgt_event_del` frees, so what comes and goes (a socket at each reconnect,
// a unit that tgtadm removes) must not be known to it. Used by tgtd's one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mariner::tgt {

using Clock = std::chrono::steady_clock;

// Something with at most one descriptor and one deadline. Outlives its watching.
class Watched {
 public:
  virtual ~Watched() = default;
  // `events` are those of epoll.
  virtual void ready(std::uint32_t events) = 0;
  // The deadline has passed; it is none any more.
  virtual void due() = 0;

  std::optional<Clock::time_point> deadline;
};

class Reactor {
 public:
  // That of the process, in tgtd's loop since the first call that succeeded. What is wrong stays in
  // `fault`, and the answer is null.
  static Reactor* of_tgtd(std::string& fault);

  Reactor(const Reactor&) = delete;
  Reactor& operator=(const Reactor&) = delete;

  void add(Watched& watched);
  void remove(Watched& watched);  // its descriptor is gone already

  // False: the system refuses.
  [[nodiscard]] bool watch(int fd, std::uint32_t events, Watched& watched);
  void change(int fd, std::uint32_t events, Watched& watched);
  void unwatch(int fd);

  // Before it waits the next time, the deadlines of all are looked at.
  void deadlines_changed();

 private:
  Reactor() = default;
  bool open();
  void turn();
  void expire();
  static void wake(int fd, int events, void* reactor);

  int epoll_ = -1;
  int timer_ = -1;
  std::vector<Watched*> watched_;  // few: one for each unit
  std::optional<Clock::time_point> armed_;
};

}  // namespace mariner::tgt
