// The base of an imported volume: what its image held before the first write.
//
// Reads the image as it is. Only blocks that the index still calls kBase hold base data there; the
// history reader looks at the index again after each read.
#pragma once

#include "logging/disk.h"
#include "server/volume/history_reader.h"

namespace mariner::volume {

class ImageBase final : public Base {
 public:
  explicit ImageBase(logging::Disk& image) : image_(image) {}
  void read(BlockRange range, std::span<std::byte> to, Done done) override {
    const ByteRange bytes = to_bytes(range);
    if (image_.try_read(bytes.offset, to)) return done({});
    image_.async_read(bytes.offset, to, std::move(done));
  }
  [[nodiscard]] bool is_zero() const override { return false; }
  [[nodiscard]] bool may_move() const override { return true; }

 private:
  logging::Disk& image_;
};

}  // namespace mariner::volume
