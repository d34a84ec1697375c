// Takes what is in the image out of tables of pending writes, some runs at a time: thousands of
// them at once, with the payloads that go with them, keep hosts waiting for milliseconds.
//
// Owner's thread only. What is still to leave when this ends stays in its table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "proto/executor.h"
#include "server/volume/pending_table.h"

namespace mariner::volume {

class SlowErase {
 public:
  // Of so many runs some leave in a turn: more of many, so that they never become more and more.
  static constexpr std::size_t kEachTurn = 16;
  [[nodiscard]] static constexpr std::size_t runs_of_a_turn(std::size_t runs) {
    return std::max(kEachTurn, runs / 512);
  }

  struct Job {
    std::shared_ptr<PendingTable> table;  // it goes with this, if nobody else keeps it
    Lbn end;                              // what lies below leaves
    // These parts have just left, in address order. May be null.
    UniqueFunction<void(std::span<const BlockRange>)> left{};
    UniqueFunction<void()> done{};  // all has left; may be null
  };

  explicit SlowErase(Executor& executor) : executor_(executor) {}
  ~SlowErase() { *alive_ = false; }
  SlowErase(const SlowErase&) = delete;
  SlowErase& operator=(const SlowErase&) = delete;

  // runs_of_a_turn() in each turn from the next one on; behind what was added before.
  void add(Job job);
  // At once, whatever is to leave `table`: for who begins with it anew.
  void finish(const PendingTable& table);
  // What tables other than `table` still keep (PendingTable::memory_bytes()).
  [[nodiscard]] std::uint64_t memory_bytes_beside(const PendingTable* table) const;

 private:
  void go_on();
  void erase_some();
  static bool erase(Job& job, std::size_t runs_max);

  Executor& executor_;
  std::deque<Job> jobs_;
  bool goes_on_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::volume
