// A read-only view: the volume as of one settled moment.
#pragma once

#include "index/stored_index.h"
#include "server/volume/base_map.h"
#include "server/volume/current_reader.h"
#include "server/volume/history_reader.h"
#include "server/volume/layer.h"
#include "server/volume/snapshot.h"

namespace mariner::volume {

class HistoryView final : public Layer {
 public:
  // The reader, index and base map belong to the volume, which outlives its views. A null map: the
  // base is another volume. Without `open_snapshot` there are no snapshots of it.
  HistoryView(std::uint64_t size_bytes, HistoryReader& history, index::StoredIndex& index,
              SequenceNumber at, const BaseMap* base, OpenSnapshot open_snapshot = nullptr)
      : size_bytes_(size_bytes),
        history_(history),
        index_(index),
        at_(at),
        base_(base),
        open_snapshot_(std::move(open_snapshot)) {}
  ~HistoryView() override;

  [[nodiscard]] std::uint64_t size_bytes() const override { return size_bytes_; }
  [[nodiscard]] bool read_only() const override { return true; }
  void read(ByteRange range, ReadDone done) override;
  void write(ByteRange range, PayloadSlice data, Done done) override;
  void write_same(ByteRange range, PayloadSlice pattern, Done done) override;
  void update(ByteRange range, Change change, Done done) override;
  void trim(ByteRange range, TrimMode mode, Done done) override;
  void flush(Done done) override { done({}); }
  void allocation(ByteRange range, AllocationDone done) override;
  void snapshot(SnapshotDone done) override;
  void settle(Done done) override { done({}); }

  [[nodiscard]] bool idle() const { return operations_ == 0; }

 private:
  const std::uint64_t size_bytes_;
  HistoryReader& history_;
  index::StoredIndex& index_;
  const SequenceNumber at_;
  const BaseMap* const base_;
  const OpenSnapshot open_snapshot_;
  std::size_t operations_ = 0;
};

// The parts of `range` that are stored, as of `at`. `base`, which outlives `done`, tells which base
// blocks are; null: all.
void allocation_at(index::StoredIndex& index, ByteRange range, SequenceNumber at,
                   const BaseMap* base, AllocationDone done);

// The base of a writable view: another volume as of one moment.
class ViewBase final : public Base {
 public:
  ViewBase(HistoryReader& parent, SequenceNumber at) : parent_(parent), at_(at) {}
  void read(BlockRange range, std::span<std::byte> to, Done done) override {
    parent_.read(range, at_, to, std::move(done));
  }
  [[nodiscard]] bool may_move() const override { return false; }

 private:
  HistoryReader& parent_;
  const SequenceNumber at_;
};

// Current reads of a volume that has no image: a writable view. Everything is in the history.
class HistoryCurrent final : public CurrentReader {
 public:
  // `settled` tells the newest moment at each read.
  HistoryCurrent(HistoryReader& history, UniqueFunction<SequenceNumber()> settled)
      : history_(history), settled_(std::move(settled)) {}
  void read(BlockRange range, ReadDone done) override;

 private:
  HistoryReader& history_;
  UniqueFunction<SequenceNumber()> settled_;
};

}  // namespace mariner::volume
