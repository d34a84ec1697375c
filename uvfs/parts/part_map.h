// Where the bytes of a part are on its volume.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "proto/check.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::uvfs {

class PartMap {
 public:
  // The part has the bytes of the extents, one behind the other; none: it is empty.
  // kInvalidArgument: an extent that is empty, is not within the volume, or overlaps another.
  [[nodiscard]] static Result<PartMap> of(std::span<const ByteRange> extents,
                                          std::uint64_t volume_bytes);

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Each whole block of the part is a block of the volume.
  [[nodiscard]] bool aligned() const { return aligned_; }

  // Calls `visit(range of the volume)` for what `range` of the part is made of, in order. The part
  // has all of it.
  template <typename Visit>
  void for_each_piece(ByteRange range, Visit visit) const {
    CHECK(range.offset <= bytes_ && range.length <= bytes_ - range.offset);
    if (range.length == 0) return;
    auto each = std::prev(std::ranges::upper_bound(by_part_, range.offset, {}, &Extent::at));
    for (std::uint64_t at = range.offset; at < range.end(); ++each) {
      const std::uint64_t within = at - each->at;
      const std::uint64_t length = std::min(each->on_volume.length - within, range.end() - at);
      visit(ByteRange{each->on_volume.offset + within, length});
      at += length;
    }
  }
  // Calls `visit(range of the part)` for what of `range` of the volume is in the part, in the
  // volume's order.
  template <typename Visit>
  void for_each_place(ByteRange range, Visit visit) const {
    const auto end_of = [](const Extent& each) { return each.on_volume.end(); };
    auto each = std::ranges::upper_bound(by_volume_, range.offset, {}, end_of);
    for (; each != by_volume_.end() && each->on_volume.offset < range.end(); ++each) {
      const std::uint64_t begin = std::max(each->on_volume.offset, range.offset);
      const std::uint64_t end = std::min(each->on_volume.end(), range.end());
      visit(ByteRange{each->at + (begin - each->on_volume.offset), end - begin});
    }
  }

 private:
  struct Extent {
    std::uint64_t at = 0;  // in the part
    ByteRange on_volume;
  };

  PartMap() = default;

  std::vector<Extent> by_part_;
  std::vector<Extent> by_volume_;
  std::uint64_t bytes_ = 0;
  bool aligned_ = true;
};

}  // namespace mariner::uvfs
