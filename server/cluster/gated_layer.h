// The layer of a volume that this node serves at times: what it is asked goes to whoever serves
// now.
//
// Whether anybody does is asked when a command arrives; kUnavailable while nobody does. What is
// under way when the time is over, whoever was asked answers. Owner's thread only.
#pragma once

#include <functional>
#include <memory>

#include "server/volume/layer.h"

namespace mariner::cluster {

class GatedLayer final : public volume::Layer {
 public:
  // Null: nobody serves. What is returned lives until what it is asked is done.
  using Serving = std::function<volume::Layer*()>;

  GatedLayer(std::uint64_t size_bytes, Serving serving)
      : size_bytes_(size_bytes), serving_(std::move(serving)) {}

  // Nobody serves from now on.
  void close() { serving_ = nullptr; }

  [[nodiscard]] std::uint64_t size_bytes() const override { return size_bytes_; }
  [[nodiscard]] bool read_only() const override { return false; }
  void read(ByteRange range, volume::ReadDone done) override;
  void prefetch(ByteRange range) override;
  void write(ByteRange range, PayloadSlice data, volume::Done done) override;
  void write_same(ByteRange range, PayloadSlice pattern, volume::Done done) override;
  void update(ByteRange range, volume::Change change, volume::Done done) override;
  void trim(ByteRange range, volume::TrimMode mode, volume::Done done) override;
  void flush(volume::Done done) override;
  void allocation(ByteRange range, volume::AllocationDone done) override;
  void snapshot(volume::SnapshotDone done) override;
  void settle(volume::Done done) override;

 private:
  template <typename Done, typename Ask>
  void pass_on(Done& done, Ask ask);

  const std::uint64_t size_bytes_;
  Serving serving_;
};

}  // namespace mariner::cluster
