// The base of a volume with an image: what the image held before the first write that the history
// knows, where the base map says so, and zeros elsewhere.
//
// Reads the image as it is. Only blocks that the index still calls kBase hold base data there; the
// history reader looks at the index again after each read.
#pragma once

#include "logging/disk.h"
#include "server/volume/base_map.h"
#include "server/volume/history_reader.h"

namespace mariner::volume {

class ImageBase final : public Base {
 public:
  // Both outlive it.
  ImageBase(logging::Disk& image, const BaseMap& map) : image_(image), map_(map) {}
  void read(BlockRange range, std::span<std::byte> to, Done done) override;
  [[nodiscard]] bool may_move() const override { return !map_.empty(); }

 private:
  logging::Disk& image_;
  const BaseMap& map_;
};

}  // namespace mariner::volume
