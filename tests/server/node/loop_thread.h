// An event loop on a thread of its own, and how a test asks what lives there.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <type_traits>
#include <utility>

#include "proto/check.h"
#include "server/node/event_loop.h"

namespace mariner::node::testing {

class LoopThread {
 public:
  static constexpr auto kPatience = std::chrono::seconds(20);

  LoopThread() = default;
  ~LoopThread() { end(); }
  LoopThread(const LoopThread&) = delete;
  LoopThread& operator=(const LoopThread&) = delete;

  [[nodiscard]] EventLoop& loop() { return loop_; }
  void begin() {
    thread_ = std::thread([this] { loop_.run(); });
  }
  // Nothing after that, if it had begun.
  void end() {
    if (!thread_.joinable()) return;
    loop_.stop();
    thread_.join();
  }

  // What `work` returns, run on the loop's thread.
  template <typename Work>
  auto run(Work work) {
    using Value = std::invoke_result_t<Work>;
    auto promise = std::make_shared<std::promise<Value>>();
    loop_.post([promise, work = std::move(work)]() mutable {
      if constexpr (std::is_void_v<Value>) {
        work();
        promise->set_value();
      } else {
        promise->set_value(work());
      }
    });
    return await(promise);
  }

  // What is answered to `ask`, which is called with the way to answer, on the loop's thread.
  template <typename Value, typename Ask>
  Value answer(Ask ask) {
    auto promise = std::make_shared<std::promise<Value>>();
    loop_.post([promise, ask = std::move(ask)]() mutable {
      ask([promise](Value value) { promise->set_value(std::move(value)); });
    });
    return await(promise);
  }

  // Whether it comes true while the loop goes on.
  static bool eventually(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

 private:
  template <typename Value>
  static Value await(const std::shared_ptr<std::promise<Value>>& promise) {
    std::future<Value> future = promise->get_future();
    CHECK_MSG(future.wait_for(kPatience) == std::future_status::ready,
              "what a test waits for does not come");
    return future.get();
  }

  EventLoop loop_;
  std::thread thread_;
};

}  // namespace mariner::node::testing
