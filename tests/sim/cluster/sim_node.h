// A node of the simulated cluster: an executor that can crash, come back, and stand still.
//
// All nodes share one virtual clock. What a node has set going ends with its life; while it stands
// still (a process that was stopped, a machine that hangs), everything that becomes due waits, and
// happens when it goes on, its clock having moved meanwhile.
#pragma once

#include <deque>
#include <iterator>
#include <map>
#include <utility>

#include "replication/cluster_messages.h"
#include "tests/support/manual_executor.h"

namespace mariner::test {

class SimNode final : public Executor {
 public:
  SimNode(ManualExecutor& world, replication::NodeId id) : world_(world), id_(id) {}

  void post(UniqueFunction<void()> work) override { world_.post(guarded(std::move(work))); }
  void defer(UniqueFunction<void()> work) override { world_.defer(guarded(std::move(work))); }
  void after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) override {
    world_.after(delay, guarded(std::move(work)));
  }
  [[nodiscard]] VersionTime wall_time() const override {
    return {world_.wall_time().ns + static_cast<std::uint64_t>(wall_skew_.count())};
  }
  [[nodiscard]] std::chrono::nanoseconds monotonic_time() const override {
    return world_.monotonic_time();
  }

  // `work` for this life, whoever runs it. What comes through one `channel` stays in order also
  // when it has had to wait.
  [[nodiscard]] UniqueFunction<void()> guarded(UniqueFunction<void()> work,
                                               std::uint64_t channel = 0) {
    return [this, channel, life = life_, work = std::move(work)]() mutable {
      run(life, channel, work);
    };
  }
  // The same, now, of what was for life `life`.
  void run(std::uint64_t life, std::uint64_t channel, UniqueFunction<void()>& work) {
    if (life != life_) return;
    if (paused_) {
      held_[channel].push_back(std::move(work));
    } else {
      work();
    }
  }
  [[nodiscard]] std::uint64_t life() const { return life_; }

  void crash() {
    ++life_;
    up_ = false;
    paused_ = false;
    held_.clear();
  }
  void start() { up_ = true; }
  void pause() { paused_ = true; }
  // What has had to wait happens: whose comes first, is chance.
  template <typename Random>
  void resume(Random& random) {
    paused_ = false;
    auto held = std::exchange(held_, {});
    while (!held.empty()) {
      auto channel = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      post(std::move(channel->second.front()));
      channel->second.pop_front();
      if (channel->second.empty()) held.erase(channel);
    }
  }
  // Its wall clock is wrong by so much from now on.
  void set_wall_skew(std::chrono::nanoseconds skew) { wall_skew_ = skew; }

  [[nodiscard]] replication::NodeId id() const { return id_; }
  [[nodiscard]] bool up() const { return up_; }
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] ManualExecutor& world() { return world_; }

 private:
  ManualExecutor& world_;
  const replication::NodeId id_;
  std::uint64_t life_ = 0;
  bool up_ = false;
  bool paused_ = false;
  std::chrono::nanoseconds wall_skew_{0};
  std::map<std::uint64_t, std::deque<UniqueFunction<void()>>> held_;  // by channel
};

}  // namespace mariner::test
