#include "logging/cpu_share.h"

#include <algorithm>
#include <ctime>
#include <thread>
#include <utility>

namespace mariner::logging {
namespace {

std::chrono::nanoseconds thread_cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

CpuShare::CpuShare(const std::atomic<double>& share, const std::atomic<bool>& cancelled,
                   const Beside* beside)
    : share_(share),
      cancelled_(cancelled),
      beside_(beside),
      began_(std::chrono::steady_clock::now()),
      cpu_began_(cpu_time()),
      cpu_last_(cpu_began_) {}

std::chrono::nanoseconds CpuShare::cpu_time() const {
  return thread_cpu_time() +
         (beside_ == nullptr ? std::chrono::nanoseconds(0) : beside_->cpu_time());
}

Result<void> CpuShare::pause() {
  const std::chrono::nanoseconds now = cpu_time();
  most_ = std::max(most_, now - std::exchange(cpu_last_, now));
  for (;;) {
    if (cancelled_.load(std::memory_order_relaxed)) {
      return Error{ErrorCode::kAborted, "packing was stopped"};
    }
    const double share = share_.load(std::memory_order_relaxed);
    const auto passed = std::chrono::steady_clock::now() - began_;
    const auto used = cpu_time() - cpu_began_ + most_;
    if (share >= 1 ||
        static_cast<double>(used.count()) <= share * static_cast<double>(passed.count())) {
      return {};
    }
    std::this_thread::sleep_for(kStep);
  }
}

}  // namespace mariner::logging
