#include "server/volume/image_writer.h"

#include <cstdint>
#include <thread>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {
namespace {

constexpr std::size_t kPartsMax = 512;
// The device begins with the writes to the image after so many of them, or so many bytes: what it
// has at a time stays short, and the log's writes do not wait behind it. (4 KiB at random, one at a
// time: the 99th percentile is 0.8 ms with 32, and 0.4 with 8. But 8 are too few for 50,000/s.)
constexpr std::size_t kFewBegunTogether = 8;
constexpr std::size_t kManyBegunTogether = 32;
constexpr std::uint64_t kBytesBegunTogether = 1u << 20;

// From so many bytes on in one piece a write goes past the page cache, if it only overwrites: to
// copy it there, and to have it written from there, takes as long as all else that is done for it.
// What a host streams, it seldom reads again soon. At most so much at a time: the log's writes wait
// behind all of it.
constexpr std::uint64_t kStreamed = 256u << 10;
constexpr std::uint64_t kStreamedTogether = 1u << 20;

enum class Way : std::uint8_t { kCached, kCachedAndBegun, kPastCache };

constexpr std::size_t writes_of(Begin begin) {
  return begin == Begin::kMany ? kManyBegunTogether : kFewBegunTogether;
}

// Gathers neighbouring pieces of memory into one write, and neighbouring zeros into one hole.
class Gatherer {
 public:
  Gatherer(logging::Disk& image, Way way, Begin begin = Begin::kMany)
      : image_(image),
        way_(way),
        yields_(begin == Begin::kFewAndYield),
        writes_begun_together_(writes_of(begin)) {}

  Result<void> bytes(std::uint64_t offset, logging::ConstBytes part) {
    if (Result<void> r = end_hole(); !r) return r;
    const bool is_long = way_ == Way::kCachedAndBegun && offset - start_ >= kStreamedTogether;
    if (offset != next_ || parts_.size() == kPartsMax || is_long) {
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
    if (Result<void> r = begin_writes(); !r) return r;
    return end_past_cache();
  }

 private:
  Result<void> end_parts() {
    if (parts_.empty()) return {};
    const std::uint64_t end = std::exchange(next_, UINT64_MAX);
    const bool is_streamed = way_ == Way::kCachedAndBegun && end - start_ >= kStreamed &&
                             image_.has_place({start_, end - start_});
    if (is_streamed || way_ == Way::kPastCache) {
      writes_.push_back({start_, std::exchange(parts_, {})});
      past_cache_bytes_ += end - start_;
      const bool enough = is_streamed && past_cache_bytes_ >= kStreamedTogether;
      return enough ? end_past_cache() : Result<void>{};
    }
    Result<void> r = image_.write(start_, parts_, logging::Durability::kVolatile);
    parts_.clear();
    if (way_ == Way::kCachedAndBegun) {
      if (yields_) std::this_thread::yield();
      if (not_begun_++ == 0) begin_at_ = start_;
      not_begun_bytes_ += end - start_;
      end_at_ = end;
      if (not_begun_ == writes_begun_together_ || not_begun_bytes_ >= kBytesBegunTogether) {
        if (Result<void> begun = begin_writes(); !begun) return begun;
      }
    }
    return r;
  }
  // Two of them are with the device, or in its queue, at a time, for the log's writes wait behind
  // them. And what waits for this core gets it (it may be the kernel's own thread that ends those
  // writes): where nobody is preempted, this one had it until the next tick, for 4 ms.
  Result<void> begin_writes() {
    if (std::exchange(not_begun_, 0) == 0) return {};
    not_begun_bytes_ = 0;
    if (begun_.length > 0) {
      if (Result<void> r = image_.wait_for_writeback(begun_); !r) return r;
    }
    begun_ = std::exchange(begun_last_, {begin_at_, end_at_ - begin_at_});
    image_.start_writeback(begun_last_);
    std::this_thread::yield();
    return {};
  }
  Result<void> end_past_cache() {
    if (writes_.empty()) return {};
    past_cache_bytes_ = 0;
    return image_.write_past_cache(std::exchange(writes_, {}));
  }
  Result<void> end_hole() {
    if (hole_.length == 0) return {};
    const ByteRange hole = hole_;
    hole_ = {};
    return image_.discard(hole);
  }

  logging::Disk& image_;
  const Way way_;
  const bool yields_;  // after each write, too
  const std::size_t writes_begun_together_;
  std::vector<logging::Disk::Write> writes_;  // past the cache, that are still to be done
  std::uint64_t past_cache_bytes_ = 0;
  std::vector<logging::ConstBytes> parts_;
  std::uint64_t start_ = 0;
  std::uint64_t next_ = UINT64_MAX;
  ByteRange hole_;
  // Writes with which the device has not been told to begin, and where they lie.
  std::size_t not_begun_ = 0;
  std::uint64_t not_begun_bytes_ = 0;
  ByteRange begun_;  // before the last one
  ByteRange begun_last_;
  std::uint64_t begin_at_ = 0;
  std::uint64_t end_at_ = 0;
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
  return write_changes(Gatherer(image, Way::kCached), changes);
}

Result<void> write_image_and_begin(logging::Disk& image, const std::vector<ImageChange>& changes,
                                   Begin begin) {
  return write_changes(Gatherer(image, Way::kCachedAndBegun, begin), changes);
}

Result<void> write_image_past_cache(logging::Disk& image, const std::vector<ImageChange>& changes) {
  return write_changes(Gatherer(image, Way::kPastCache), changes);
}

}  // namespace mariner::volume
