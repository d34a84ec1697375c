// The live volume: the layer that initiators write to. From the SCSI disk to the coordinator.
//
// Whole-block writes go straight to the coordinator. A write of part of a block is merged under
// that block's lock, once every earlier write is settled, and goes on whole. A read waits for the
// writes that were acknowledged before it and sees only settled ones.
//
// Rollbacks are in live_rollback.cc.
//
// With storage it is a volume; without, reading through the history, a writable view.
// Owner's thread only. The owner keeps it alive until idle().
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "index/version_index.h"
#include "replication/replicator.h"
#include "server/volume/current_reader.h"
#include "server/volume/extent_locks.h"
#include "server/volume/history.h"
#include "server/volume/layer.h"
#include "server/volume/repair_source.h"
#include "server/volume/snapshot.h"
#include "server/volume/unplaced_writes.h"

namespace mariner::volume {

class LiveVolume final : public Layer {
 public:
  // One record for a long range of the same, which costs nothing, may bring about that all that was
  // there is logged as before-images: so it comes in pieces, for each of which a log has room.
  static constexpr std::uint64_t kPieceBytes = 32u << 20;

  struct Parts {  // all outlive it
    replication::Replicator& replicator;
    CurrentReader& current;
    History& history;
    // Somebody applies what is written to an image, and must hear what a rollback changes.
    bool has_image = false;
    // Images keep nothing under zeros: all that zeros replace is logged.
    bool logs_what_zeros_replace = false;
    OpenSnapshot open_snapshot{};
  };

  LiveVolume(std::uint64_t size_bytes, Parts parts)
      : size_bytes_(size_bytes), parts_(std::move(parts)) {}
  ~LiveVolume() override;

  // What is behind the old end reads as zeros. Never less than before; beside anything under way.
  void grow(std::uint64_t size_bytes);

  [[nodiscard]] std::uint64_t size_bytes() const override { return size_bytes_; }
  [[nodiscard]] bool read_only() const override { return false; }
  void read(ByteRange range, ReadDone done) override;
  void prefetch(ByteRange range) override { parts_.current.prefetch(range.covering_blocks()); }
  void write(ByteRange range, PayloadSlice data, Done done) override;
  void write_same(ByteRange range, PayloadSlice pattern, Done done) override;
  void update(ByteRange range, Change change, Done done) override;
  void trim(ByteRange range, TrimMode mode, Done done) override;
  void flush(Done done) override { done({}); }  // acknowledged is durable
  void allocation(ByteRange range, AllocationDone done) override;
  void snapshot(SnapshotDone done) override;
  void settle(Done done) override;

  // Logs one record that takes the volume back to `target`, in order with all writes. `done` has
  // its stamp when it is durable and visible; kOutsideWindow when `target` is before the horizon.
  // Until `done` the history keeps the target.
  //
  // With `repairs`, writes them right behind it, and nobody reads or writes in between: the
  // operations of others wait. `done` comes when all of them are durable, or one has failed: then
  // the rollback has happened all the same, and `repairs` knows why.
  void rollback(index::IndexMoment target, std::shared_ptr<RepairSource> repairs,
                replication::Replicator::WriteDone done);
  void rollback(index::IndexMoment target, replication::Replicator::WriteDone done) {
    rollback(target, nullptr, std::move(done));
  }

  // The same step by step, so that several volumes go back at one point: begin_rollback(),
  // look_up() while hosts go on, hold_up(), look_up() for what came meanwhile, log_rollback(), and
  // at last, whatever has become of it, let_go(). One step at a time.
  struct Rollback;
  using RollbackSteps = std::shared_ptr<Rollback>;
  [[nodiscard]] RollbackSteps begin_rollback(index::IndexMoment target);
  // Finds what it changes, in what has been settled since the last time. kOutsideWindow when the
  // target is before the horizon; from then on the history keeps it. After an error it may be tried
  // again.
  void look_up(const RollbackSteps& rollback, Done done);
  // From `done` on nobody reads or writes, and all that was written before is settled. Once.
  void hold_up(const RollbackSteps& rollback, UniqueFunction<void()> done);
  // `done` when the record is durable and visible. After an error it may be tried again.
  void log_rollback(const RollbackSteps& rollback, replication::Replicator::WriteDone done);
  // Who was held up goes on.
  void let_go(const RollbackSteps& rollback);

  [[nodiscard]] bool idle() const { return operations_ == 0 && locks_.idle(); }

 private:
  using Stamp = replication::Stamp;
  using Merge = std::function<replication::WriteRequest(const Payload& head, const Payload& tail)>;

  void find_changed(const RollbackSteps& rollback, SequenceNumber to, Done done);
  void stop_writers(const RollbackSteps& rollback, UniqueFunction<void()> done);
  void place_rollback(const RollbackSteps& rollback);
  void write_repairs(const RollbackSteps& rollback, const Stamp& stamp);
  void end_rollback(const RollbackSteps& rollback, Result<Stamp> stamp);
  // Readers were stopped: asks again when they may go on.
  void wait_to_read(UniqueFunction<void()> again);
  void end_reading();
  // No reader begins from here on; runs `then` when those have ended that had begun.
  void stop_readers(UniqueFunction<void()> then);
  void let_readers();
  void submit(replication::WriteRequest request, Done done);
  // One after the other, until one fails.
  void in_pieces(ByteRange range, std::function<void(ByteRange, Done)> operation, Done done);
  void write_whole(replication::WriteRequest request, Done done);
  void write_partial(ByteRange range, Merge merge, Done done);
  void read_edge(Lbn block, UniqueFunction<void(Result<Payload>)> done);

  std::uint64_t size_bytes_;
  const Parts parts_;
  ExtentLocks locks_;
  UnplacedWrites unplaced_;
  std::size_t operations_ = 0;
  // Readers stop while a rollback is mended. Bounded by the commands that the sessions admit.
  std::size_t reading_ = 0;
  bool readers_stopped_ = false;
  UniqueFunction<void()> when_unread_;
  std::vector<UniqueFunction<void()>> waiting_readers_;
};

}  // namespace mariner::volume
