// Memory for blocks that one thread fills and another is done with: it goes from hand to hand
// instead of piling up where it is freed. Any thread.
#pragma once

#include <mutex>
#include <utility>
#include <vector>

#include "proto/payload.h"

namespace mariner::index {

class BlockBuffers {
 public:
  static constexpr std::size_t kSpareMax = 256;

  explicit BlockBuffers(std::size_t block_bytes) : block_bytes_(block_bytes) {}

  [[nodiscard]] Payload take() {
    {
      const std::lock_guard lock(mutex_);
      if (!spare_.empty()) {
        Payload block = std::move(spare_.back());
        spare_.pop_back();
        return block;
      }
    }
    return Payload::allocate(block_bytes_);
  }
  void give_back(Payload block) {
    const std::lock_guard lock(mutex_);
    if (spare_.size() < kSpareMax) spare_.push_back(std::move(block));
  }

 private:
  const std::size_t block_bytes_;
  std::mutex mutex_;
  std::vector<Payload> spare_;  // guarded by mutex_
};

}  // namespace mariner::index
