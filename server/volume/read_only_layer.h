// A layer that lets nobody write to the one below it: the overlay of a view that is not writable.
#pragma once

#include <memory>
#include <utility>

#include "server/volume/layer.h"

namespace mariner::volume {

class ReadOnlyLayer final : public Layer {
 public:
  explicit ReadOnlyLayer(std::shared_ptr<Layer> below) : below_(std::move(below)) {}

  [[nodiscard]] std::uint64_t size_bytes() const override { return below_->size_bytes(); }
  [[nodiscard]] bool read_only() const override { return true; }
  void read(ByteRange range, ReadDone done) override { below_->read(range, std::move(done)); }
  void prefetch(ByteRange range) override { below_->prefetch(range); }
  void write(ByteRange range, PayloadSlice data, Done done) override;
  void write_same(ByteRange range, PayloadSlice pattern, Done done) override;
  void update(ByteRange range, Change change, Done done) override;
  void trim(ByteRange range, TrimMode mode, Done done) override;
  void flush(Done done) override { below_->flush(std::move(done)); }
  void allocation(ByteRange range, AllocationDone done) override {
    below_->allocation(range, std::move(done));
  }
  void snapshot(SnapshotDone done) override { below_->snapshot(std::move(done)); }
  void settle(Done done) override { below_->settle(std::move(done)); }

 private:
  const std::shared_ptr<Layer> below_;
};

}  // namespace mariner::volume
