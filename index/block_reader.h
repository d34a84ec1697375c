// One operation's look at a store of blocks, without waiting: it computes with what is in memory,
// hears what is missing, has that fetched, and computes again, until nothing is missing. So what it
// computes is of one moment, and what it does with it at once is, too.
//
// Owner's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "index/bosc.h"

namespace mariner::index {

class BlockReader {
 public:
  // `store` outlives it.
  explicit BlockReader(Bosc& store) : store_(store) {}

  // As Bosc::query's look. False when the block is missing: what is computed does not count.
  template <typename Look>
  bool look(BlockAddress address, Look look) {
    const auto found = fetched_.find(address.value);
    if (store_.look_now(address, found == fetched_.end() ? nullptr : &found->second, look)) {
      return true;
    }
    missing_.push_back(address);
    return false;
  }
  // Something else is missing for good: the computation fails with this.
  void fail(Error error) {
    if (failure_) failure_ = std::move(error);
  }

  // Of the computation since the last begin().
  [[nodiscard]] bool complete() const { return missing_.empty() && failure_.has_value(); }
  [[nodiscard]] const Result<void>& failure() const { return failure_; }
  void begin() {
    missing_.clear();
    failure_ = {};
  }
  // Reads what was missing, all of it at once. This must stay until `done` has been called.
  void fetch(UniqueFunction<void(Result<void>)> done);
  Result<void> fetch_now();  // while the caller waits

 private:
  Bosc& store_;
  std::vector<BlockAddress> missing_;
  Result<void> failure_;
  std::unordered_map<std::uint32_t, Bosc::Fetched> fetched_;
};

// Calls compute(BlockReader&) until nothing is missing, or what is damaged will not be made again
// (Bosc::when_mended); then `done`, in the same turn. What it computes counts, and what it does may
// have effects, only when reader.complete() holds at its end.
void consult(Bosc& store, UniqueFunction<void(BlockReader&)> compute,
             UniqueFunction<void(Result<void>)> done);

}  // namespace mariner::index
