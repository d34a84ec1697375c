// An Executor over one io_context, for tests and programs that use real sockets.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <ctime>
#include <memory>

#include "proto/executor.h"

namespace mariner::iscsi {

class AsioExecutor final : public Executor {
 public:
  explicit AsioExecutor(boost::asio::io_context& context) : context_(context) {}

  void post(UniqueFunction<void()> work) override {
    boost::asio::post(context_, [work = std::move(work)]() mutable { work(); });
  }
  void defer(UniqueFunction<void()> work) override { post(std::move(work)); }
  void after(std::chrono::nanoseconds delay, UniqueFunction<void()> work) override {
    auto timer = std::make_shared<boost::asio::steady_timer>(context_, delay);
    timer->async_wait(
        [timer, work = std::move(work)](const boost::system::error_code& error) mutable {
          if (!error) work();
        });
  }
  [[nodiscard]] VersionTime wall_time() const override {
    return {static_cast<std::uint64_t>(now(CLOCK_REALTIME).count())};
  }
  [[nodiscard]] std::chrono::nanoseconds monotonic_time() const override {
    return now(CLOCK_BOOTTIME);
  }

 private:
  static std::chrono::nanoseconds now(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  boost::asio::io_context& context_;
};

}  // namespace mariner::iscsi
