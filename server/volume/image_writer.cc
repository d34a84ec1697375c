#include "server/volume/image_writer.h"

#include <utility>

#include "proto/check.h"

namespace mariner::volume {
namespace {

constexpr std::size_t kPartsMax = 512;

// Gathers neighbouring pieces of memory into one write, and neighbouring zeros into one hole.
class Gatherer {
 public:
  Gatherer(logging::Disk& image, bool past_cache) : image_(image), past_cache_(past_cache) {}

  Result<void> bytes(std::uint64_t offset, logging::ConstBytes part) {
    if (Result<void> r = end_hole(); !r) return r;
    if (offset != next_ || parts_.size() == kPartsMax) {
      if (Result<void> r = end_parts(); !r) return r;
      start_ = offset;
    }
    parts_.push_back(part);
    next_ = offset + part.size();
    return {};
  }

  Result<void> zeros(ByteRange range) {
    if (Result<void> r = end_parts(); !r) return r;
    if (hole_.length > 0 && hole_.end() == range.offset) {
      hole_.length += range.length;
      return {};
    }
    if (Result<void> r = end_hole(); !r) return r;
    hole_ = range;
    return {};
  }

  Result<void> end() {
    if (Result<void> r = end_parts(); !r) return r;
    if (Result<void> r = end_hole(); !r) return r;
    return past_cache_ ? image_.write_past_cache(writes_) : Result<void>{};
  }

 private:
  Result<void> end_parts() {
    if (parts_.empty()) return {};
    next_ = UINT64_MAX;
    if (past_cache_) {
      writes_.push_back({start_, std::exchange(parts_, {})});
      return {};
    }
    Result<void> r = image_.write(start_, parts_, logging::Durability::kVolatile);
    parts_.clear();
    return r;
  }
  Result<void> end_hole() {
    if (hole_.length == 0) return {};
    const ByteRange hole = hole_;
    hole_ = {};
    return image_.discard(hole);
  }

  logging::Disk& image_;
  const bool past_cache_;
  std::vector<logging::Disk::Write> writes_;  // until the end
  std::vector<logging::ConstBytes> parts_;
  std::uint64_t start_ = 0;
  std::uint64_t next_ = UINT64_MAX;
  ByteRange hole_;
};

Result<void> write_changes(Gatherer gatherer, const std::vector<ImageChange>& changes) {
  for (const ImageChange& change : changes) {
    const ByteRange range = to_bytes(change.range);
    if (!change.payload) {
      if (Result<void> r = gatherer.zeros(range); !r) return r;
      continue;
    }
    const std::size_t piece = change.repeated ? kBlockBytes : range.length;
    CHECK(change.offset + piece <= change.payload.size());
    const logging::ConstBytes stored = change.payload.bytes().subspan(change.offset, piece);
    for (std::uint64_t at = 0; at < range.length; at += piece) {
      if (Result<void> r = gatherer.bytes(range.offset + at, stored); !r) return r;
    }
  }
  return gatherer.end();
}

}  // namespace

Result<void> write_image(logging::Disk& image, const std::vector<ImageChange>& changes) {
  return write_changes(Gatherer(image, false), changes);
}

Result<void> write_image_past_cache(logging::Disk& image, const std::vector<ImageChange>& changes) {
  return write_changes(Gatherer(image, true), changes);
}

}  // namespace mariner::volume
