// A layer that bounds what hosts may fill of the one below it: the overlay of a writable view.
//
// What counts are the blocks whose newest contents are data in the overlay's log records: one that
// is overwritten counts once, one that is trimmed no more. A write that would fill more than the
// bound fails with kNoSpace (SPACE ALLOCATION FAILED), and nothing of it is there; what is there
// can still be read, overwritten and trimmed.
//
// Who writes holds its blocks until its write is in the history, so that looking it up before and
// after tells exactly what the write has changed: nothing is kept in memory for a block. What was
// there to begin with is counted first; writes wait for that. Owner's thread only. The owner keeps
// it alive until idle().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "proto/executor.h"
#include "server/volume/extent_locks.h"
#include "server/volume/history.h"
#include "server/volume/layer.h"
#include "server/volume/unplaced_writes.h"

namespace mariner::volume {

class BoundedLayer final : public Layer {
 public:
  struct Parts {  // all outlive it
    Layer& below;
    History& history;                          // of it
    UniqueFunction<SequenceNumber()> settled;  // its newest moment
    Executor& executor;
  };
  using NearlyFull = UniqueFunction<void(std::uint64_t used_bytes)>;

  // Calls `nearly_full` once, when nine tenths of `bytes_max` are filled.
  BoundedLayer(Parts parts, std::uint64_t bytes_max, NearlyFull nearly_full)
      : parts_(std::move(parts)), bytes_max_(bytes_max), nearly_full_(std::move(nearly_full)) {}

  ~BoundedLayer() override;

  // Counts what is there, in the background.
  void begin();
  // Operations that wait for that fail with this, and whatever else comes.
  void close(const Error& error);
  [[nodiscard]] bool idle() const { return operations_ == 0 && !counting_; }

  // Nothing while that is not known.
  [[nodiscard]] std::optional<std::uint64_t> used_bytes() const;

  [[nodiscard]] std::uint64_t size_bytes() const override { return parts_.below.size_bytes(); }
  [[nodiscard]] bool read_only() const override { return false; }
  void read(ByteRange range, ReadDone done) override { parts_.below.read(range, std::move(done)); }
  void prefetch(ByteRange range) override { parts_.below.prefetch(range); }
  void write(ByteRange range, PayloadSlice data, Done done) override;
  void write_same(ByteRange range, PayloadSlice pattern, Done done) override;
  void update(ByteRange range, Change change, Done done) override;
  void trim(ByteRange range, TrimMode mode, Done done) override;
  void flush(Done done) override { parts_.below.flush(std::move(done)); }
  void allocation(ByteRange range, AllocationDone done) override {
    parts_.below.allocation(range, std::move(done));
  }
  void snapshot(SnapshotDone done) override { parts_.below.snapshot(std::move(done)); }
  void settle(Done done) override;

 private:
  using CountDone = UniqueFunction<void(Result<std::uint64_t>)>;
  // What an operation leaves of its blocks.
  enum class Leaves {
    kAllFilled,
    kUnknown,  // any of them
    kEdges,    // none but those that it has in part
    kNoMore,   // none that was not filled
  };
  struct Operation;
  void submit(ByteRange range, Leaves leaves, UniqueFunction<void(Done)> carry_out, Done done);
  void enter(const std::shared_ptr<Operation>& operation);
  void admit(const std::shared_ptr<Operation>& operation);
  void carried_out(const std::shared_ptr<Operation>& operation, Result<void> result);
  void refuse(const std::shared_ptr<Operation>& operation, const Error& error);
  void leave(const std::shared_ptr<Operation>& operation);
  void counted(Result<std::uint64_t> blocks);
  // The blocks of `range` that are filled.
  void count(BlockRange range, CountDone done);
  struct Counting;
  void count_on(const std::shared_ptr<Counting>& counting);
  void warn();

  Parts parts_;
  const std::uint64_t bytes_max_;
  NearlyFull nearly_full_;  // null: it has been called
  ExtentLocks locks_;
  UnplacedWrites unplaced_;
  std::optional<std::uint64_t> used_blocks_;  // nothing: not counted yet
  std::uint64_t reserved_blocks_ = 0;         // of operations under way, at most
  bool counting_ = false;
  std::size_t operations_ = 0;
  std::optional<Error> closed_;
  // Operations that wait for that; bounded by the commands that the sessions admit.
  std::vector<std::shared_ptr<Operation>> waiting_;
};

}  // namespace mariner::volume
