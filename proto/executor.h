// Where completions run: the thread that owns a volume, its log and its sessions.
//
// An interface only. The daemon implements it over its event loop, tests by a queue that they turn
// by hand. Everything that belongs to one Executor is touched on that Executor's thread alone, so
// it needs no lock ("one strand per volume before any lock").
#pragma once

#include <chrono>
#include <utility>

#include "proto/unique_function.h"
#include "proto/units.h"

namespace mariner {

class Executor {
 public:
  virtual ~Executor() = default;

  // Runs `work` on the owner's thread, later, after everything posted before it. Any thread may
  // call.
  virtual void post(UniqueFunction<void()> work) = 0;

  // Runs `work` on the owner's thread when the events at hand have been handled: the place to
  // send what a burst of events has gathered as one batch. Owner's thread only.
  virtual void defer(UniqueFunction<void()> work) = 0;

  // Runs `work` in a turn of its own, behind the events at hand and what they have gathered: how
  // long work goes on piece by piece. (What posts itself has many turns in one.) Owner's thread
  // only; what waits so when this ends is dropped.
  void in_next_turn(UniqueFunction<void()> work) {
    defer([this, work = std::move(work)]() mutable { post(std::move(work)); });
  }

  // Runs `work` on the owner's thread once `delay` has passed. Owner's thread only.
  virtual void after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) = 0;

  // The wall clock, for version times. Any thread.
  [[nodiscard]] virtual VersionTime wall_time() const = 0;

  // A clock that never steps back and goes on during suspend (CLOCK_BOOTTIME). Any thread.
  [[nodiscard]] virtual std::chrono::nanoseconds monotonic_time() const = 0;
};

}  // namespace mariner
