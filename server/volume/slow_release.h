// Lets go of payloads some at a time: thousands of them at once, as when a portion of pending
// writes is in the image, keep hosts waiting for milliseconds.
//
// Owner's thread only. What waits goes with it when it ends.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "proto/executor.h"
#include "proto/payload.h"

namespace mariner::volume {

class SlowRelease {
 public:
  static constexpr std::size_t kEachTurn = 128;

  explicit SlowRelease(Executor& executor) : executor_(executor) {}
  ~SlowRelease() { *alive_ = false; }
  SlowRelease(const SlowRelease&) = delete;
  SlowRelease& operator=(const SlowRelease&) = delete;

  // kEachTurn of them in each turn from the next one on.
  void add(std::vector<Payload> payloads);

 private:
  void go_on();

  Executor& executor_;
  std::vector<Payload> waiting_;
  bool goes_on_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::volume
