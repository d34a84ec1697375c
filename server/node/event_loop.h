// The event loop of a node: one thread that owns its volumes, its log and its sessions.
//
// Events that are at hand are handled together (up to a bound), then what they deferred runs: one
// batch to the log, one send for each session, one submission to the ring.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <memory>

#include "proto/error.h"
#include "proto/executor.h"
#include "server/node/busy_poll.h"
#include "server/node/patience.h"
#include "server/node/wake_descriptor.h"
#include "server/node/wake_timer.h"

namespace mariner::node {

class EventLoop final : public Executor {
 public:
  EventLoop();

  [[nodiscard]] boost::asio::io_context& context() { return context_; }

  // Handles events until stop(). The calling thread becomes the owner. May be called again.
  void run();
  // Handles events until `ended` holds. Not from within a turn.
  void run_until(UniqueFunction<bool()> ended);
  // Ends run() after the turn at hand. Any thread, and signal-safe by post().
  void stop();

  void post(UniqueFunction<void()> work) override;
  void defer(UniqueFunction<void()> work) override;
  void after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) override;
  [[nodiscard]] VersionTime wall_time() const override;
  [[nodiscard]] std::chrono::nanoseconds monotonic_time() const override;

  // Begins a turn whenever `fd` becomes readable, until stop_waking(); what there is to do then is
  // the turn hook's. One at a time. Owner's thread only, or before run().
  Result<void> wake_on(int fd);
  void stop_waking() { wake_.reset(); }

  // Called at the end of each turn, before what was deferred: to pick up completions that are there
  // without being woken for them.
  void set_turn_hook(UniqueFunction<void()> hook) { turn_hook_ = std::move(hook); }

  // Asked, with the time, before the loop would sleep: what is under way, and from when on to look
  // for its end, again and again. What sleeping and waking costs may be more than an event that is
  // due soon is worth waiting for. Owner's thread only, or before run(); until no_outlook().
  Result<void> set_outlook(UniqueFunction<Outlook(std::chrono::nanoseconds now)> outlook);
  void no_outlook() {
    outlook_ = nullptr;
    timer_.reset();
  }

  // How long to look for events before it would sleep besides; at first not at all. Owner's thread
  // only, or before run().
  void set_busy_poll(BusyPoll busy_poll) { busy_poll_ = busy_poll; }

  // For how long it has worked: the CPU time of the owner's thread, which must call this, less the
  // time in which it looked for events in vain (too much, where it let others run meanwhile).
  [[nodiscard]] std::chrono::nanoseconds busy_time() const;

  // Turns of the loop so far: the watchdog looks whether it moves.
  [[nodiscard]] std::uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }

 private:
  static constexpr int kEventsPerTurn = 64;

  void turn();
  void run_deferred();
  void wait();
  [[nodiscard]] bool found(std::chrono::nanoseconds now, std::chrono::nanoseconds until);

  boost::asio::io_context context_;
  std::deque<UniqueFunction<void()>> deferred_;
  UniqueFunction<void()> turn_hook_;
  UniqueFunction<Outlook(std::chrono::nanoseconds)> outlook_;
  BusyPoll busy_poll_;
  std::chrono::nanoseconds looked_{0};  // in vain, so far
  bool woken_ = false;                  // by the descriptor or the timer, in this turn
  std::unique_ptr<WakeDescriptor> wake_;
  std::unique_ptr<WakeTimer> timer_;  // when it is time to look
  std::atomic<std::uint64_t> turns_{0};
  std::atomic<bool> stopping_{false};
};

}  // namespace mariner::node
