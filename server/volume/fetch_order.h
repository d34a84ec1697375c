// In which order a backlog is fetched: in that of the log, so that what stands together there is
// read together.
//
// Where the contents of a table's blocks stand is looked up for many of them at a time, and they
// are sorted by the numbers of the writes that the contents are of, which is the order in which the
// log was written. So every track is read once for so many blocks. What is said is an order and
// nothing else: whoever fetches asks again where a block stands, and whether it is still wanted.
// Owner's thread only, but for the sorting, which is the worker's.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "proto/executor.h"
#include "server/volume/history.h"
#include "server/volume/pending_table.h"
#include "server/volume/worker.h"

namespace mariner::volume {

class FetchOrder {
 public:
  // Runs that are looked up before they are fetched; about 24 bytes each.
  static constexpr std::size_t kRunsMax = 512u << 10;

  struct Parts {  // all outlive it
    History& history;
    Worker& worker;
    Executor& executor;
  };
  explicit FetchOrder(Parts parts) : parts_(parts) {}
  ~FetchOrder();  // nothing may be looked up
  FetchOrder(const FetchOrder&) = delete;
  FetchOrder& operator=(const FetchOrder&) = delete;

  // Looks up the first kRunsMax runs of `table`, which is of the past alone and may lose some
  // meanwhile. One at a time. `looked` is told now and then how far that has got; null: nobody is.
  // `done` runs later, on failure with what the history said.
  void look_up(std::shared_ptr<const PendingTable> table, UniqueFunction<void(Lbn)> looked,
               Done done);
  [[nodiscard]] bool looking() const { return table_ != nullptr; }
  // What is being looked up is not needed any more: `done` comes soon, with kAborted.
  void stop() { stopping_ = true; }

  // What is left of what was looked up in `table`: it begins with what the table still has, and is
  // empty if that is nothing, or if another table was looked up. Valid until it is called again, or
  // look_up() is.
  [[nodiscard]] std::span<const BlockRange> rest(const std::shared_ptr<const PendingTable>& table);
  void clear();

 private:
  struct Found {
    SequenceNumber sequence;
    BlockRange range;
  };
  // Of one question. Blocks grow and shrink so that the answer is about as long.
  static constexpr std::size_t kLookupsMax = 256;
  static constexpr std::uint64_t kBlocksMin = 2048;
  // However little was found before: what comes next may be as dense as it can be.
  static constexpr std::uint64_t kBlocksMax = std::uint64_t{1} << 18;

  void ask();
  void take(const Result<History::Located>& located);
  void sort();
  void end(const Result<void>& result);

  const Parts parts_;
  std::shared_ptr<const PendingTable> table_;  // null: nothing is looked up
  UniqueFunction<void(Lbn)> looked_;
  Done done_;
  Lbn next_;
  std::uint64_t blocks_ = kBlocksMin;
  std::shared_ptr<std::vector<Found>> found_;
  bool stopping_ = false;
  std::weak_ptr<const PendingTable> order_of_;
  std::vector<BlockRange> order_;
  std::size_t begun_ = 0;  // of the order, so many are in no table any more
};

}  // namespace mariner::volume
