// The base of a volume with an image: what the image held before the first write that the history
// knows, and what the log has given up since because the image holds it.
//
// Reads the image as it is. Only blocks that the history calls base hold base data there; the
// history reader asks the history again after each read.
#pragma once

#include "logging/disk.h"
#include "server/volume/history_reader.h"

namespace mariner::volume {

class ImageBase final : public Base {
 public:
  explicit ImageBase(logging::Disk& image) : image_(image) {}  // outlives it
  void read(BlockRange range, std::span<std::byte> to, Done done) override;
  [[nodiscard]] bool may_move() const override { return true; }

 private:
  logging::Disk& image_;
};

}  // namespace mariner::volume
