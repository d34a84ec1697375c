// The table of pending writes: what has been committed and is not yet in the image, by block.
//
// Non-overlapping runs ordered by LBN; a newer write replaces what it covers. Insertion and lookup
// cost the logarithm of the number of runs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory_resource>
#include <span>
#include <vector>

#include "proto/payload.h"
#include "proto/units.h"

namespace mariner::volume {

// The contents of a run.
struct PendingContent {
  enum class Kind : std::uint8_t {
    kMemory,  // payload bytes, from `offset`; a repeated run has one block for all
    kZero,
    kHistory,  // what the history says about these blocks as of `at`
  };
  Kind kind = Kind::kZero;
  bool repeated = false;
  Payload payload;
  std::size_t offset = 0;
  SequenceNumber at;

  // The same content, `skip` blocks further on.
  [[nodiscard]] PendingContent advanced(BlockCount skip) const {
    PendingContent next = *this;
    if (kind == Kind::kMemory && !repeated) next.offset += skip.bytes();
    return next;
  }
};

class PendingTable {
 public:
  PendingTable() : runs_(&pool_) {}
  PendingTable(const PendingTable&) = delete;
  PendingTable& operator=(const PendingTable&) = delete;

  // Replaces whatever is pending for `range`, which is not empty.
  void put(BlockRange range, PendingContent content);
  // Of each of `ranges`, which are in order and do not overlap: quickly, where nothing is pending.
  void put_each(std::span<const BlockRange> ranges, const PendingContent& content);

  // Visits `range` in order without gaps: each part with its content, or null where nothing is
  // pending. The content belongs to the part's first block.
  void visit(BlockRange range,
             const std::function<void(BlockRange, const PendingContent*)>& visitor) const;

  // Forgets the first `runs_max` runs of what is pending below `end`, and says where they were.
  // Less than that: they were all.
  std::vector<BlockRange> erase_before(Lbn end, std::size_t runs_max = SIZE_MAX);
  // Forgets what is pending in `range`.
  void erase(BlockRange range);
  void erase_each(std::span<const BlockRange> ranges);

  // What is pending at or behind `from`, up to the end of its run: for walking the table in address
  // order. An empty range when there is nothing more.
  struct Run {
    BlockRange range;
    PendingContent content;
  };
  [[nodiscard]] Run next_run(Lbn from) const;

  [[nodiscard]] bool empty() const { return runs_.empty(); }
  [[nodiscard]] std::size_t size() const { return runs_.size(); }
  // What the runs cost to apply: their bytes, and one block for zeros of any length.
  [[nodiscard]] std::uint64_t cost_bytes() const { return cost_bytes_; }
  // Of them, those of which only the history has the contents.
  [[nodiscard]] std::uint64_t history_bytes() const { return history_bytes_; }
  // Payload bytes that the table keeps in memory, at most: a payload of which a part was replaced
  // or erased counts in full for as long as the table lives.
  [[nodiscard]] std::uint64_t memory_bytes() const { return memory_bytes_; }

 private:
  struct Entry {
    BlockCount count;
    PendingContent content;
  };
  using Runs = std::pmr::map<Lbn, Entry>;
  static std::uint64_t cost_of(const Entry& entry);
  static std::uint64_t stored_bytes(const Entry& entry);
  static std::uint64_t history_bytes(const Entry& entry);
  // `next`: the first run that begins at or behind the range's first block.
  [[nodiscard]] bool nothing_pending(BlockRange range, Runs::iterator next);
  void split_at(Lbn lbn);
  void count(const Entry& entry);
  void uncount(const Entry& entry);
  void erase(Runs::iterator first, Runs::iterator last);

  std::pmr::unsynchronized_pool_resource pool_;
  Runs runs_;
  std::uint64_t cost_bytes_ = 0;
  std::uint64_t history_bytes_ = 0;
  std::uint64_t memory_bytes_ = 0;
};

}  // namespace mariner::volume
