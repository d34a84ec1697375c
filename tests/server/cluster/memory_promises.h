// What a participant has promised, in memory: kept a turn later, or when a test says so.
#pragma once

#include <algorithm>
#include <deque>
#include <utility>

#include "proto/executor.h"
#include "replication/participant.h"

namespace mariner::cluster {

class MemoryPromises final : public replication::PromiseStore {
 public:
  using Done = UniqueFunction<void(Result<void>)>;
  explicit MemoryPromises(Executor& executor) : executor_(executor) {}

  void promise(VolumeId /*volume*/, Epoch epoch, VersionTime /*floor*/, Done done) override {
    asked_.push_back({epoch, std::move(done)});
    if (!holding_) keep_later();
  }

  // From here on promises wait, until release().
  void hold() { holding_ = true; }
  void release() {
    holding_ = false;
    for (std::size_t i = asked_.size(); i > 0; --i) keep_later();
  }
  // The newest that was kept.
  [[nodiscard]] Epoch epoch() const { return epoch_; }

 private:
  struct Asked {
    Epoch epoch;
    Done done;
  };
  void keep_later() {
    executor_.post([this] {
      Asked asked = std::move(asked_.front());
      asked_.pop_front();
      epoch_ = std::max(epoch_, asked.epoch);
      asked.done({});
    });
  }

  Executor& executor_;
  std::deque<Asked> asked_;
  Epoch epoch_;
  bool holding_ = false;
};

}  // namespace mariner::cluster
