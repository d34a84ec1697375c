// A read-only view: the volume as of one settled moment.
#pragma once

#include <utility>

#include "server/volume/current_reader.h"
#include "server/volume/history_reader.h"
#include "server/volume/layer.h"
#include "server/volume/snapshot.h"

namespace mariner::volume {

class HistoryView final : public Layer {
 public:
  // The reader belongs to the volume, which outlives its views. Without `open_snapshot` there are
  // no snapshots of it.
  HistoryView(std::uint64_t size_bytes, HistoryReader& history, SequenceNumber at,
              OpenSnapshot open_snapshot = nullptr)
      : size_bytes_(size_bytes),
        history_(history),
        at_(at),
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
  const SequenceNumber at_;
  const OpenSnapshot open_snapshot_;
  std::size_t operations_ = 0;
};

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
