#include "server/volume/image_base.h"

#include <utility>

#include "proto/check.h"

namespace mariner::volume {

void ImageBase::read(BlockRange range, std::span<std::byte> to, Done done) {
  CHECK(to.size() == range.count.bytes());
  if (image_.try_read(range.first.byte_offset(), to)) return done({});
  image_.async_read(range.first.byte_offset(), to, std::move(done));
}

}  // namespace mariner::volume
