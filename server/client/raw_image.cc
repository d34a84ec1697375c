#include "server/client/raw_image.h"

namespace mariner::client {

Result<void> RawImage::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (Result<void> r = file_.clear({end_, offset - end_}); !r) return r;
  end_ = offset + bytes.size();
  return file_.write(offset, bytes);
}

Result<void> RawImage::finish() {
  if (Result<void> r = file_.clear({end_, size_bytes_ - end_}); !r) return r;
  return file_.set_length(size_bytes_);
}

}  // namespace mariner::client
