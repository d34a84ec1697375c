#include "uvfs/parts/part_map.h"

#include <fmt/format.h>

namespace mariner::uvfs {

Result<PartMap> PartMap::of(std::span<const ByteRange> extents, std::uint64_t volume_bytes) {
  PartMap map;
  for (const ByteRange& each : extents) {
    if (each.length == 0 || each.offset > volume_bytes ||
        each.length > volume_bytes - each.offset) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} bytes from {} on are no extent of a volume of {}", each.length,
                               each.offset, volume_bytes)};
    }
    if (!map.by_part_.empty() && map.by_part_.back().on_volume.end() == each.offset) {
      map.by_part_.back().on_volume.length += each.length;
    } else {
      map.by_part_.push_back({map.bytes_, each});
    }
    // It may come round; ones that overlap, without which it does not, are refused below.
    map.bytes_ += each.length;
  }
  map.by_volume_ = map.by_part_;
  std::ranges::sort(map.by_volume_, {}, [](const Extent& each) { return each.on_volume.offset; });
  for (std::size_t i = 1; i < map.by_volume_.size(); ++i) {
    const ByteRange& before = map.by_volume_[i - 1].on_volume;
    const ByteRange& each = map.by_volume_[i].on_volume;
    if (each.offset >= before.end()) continue;
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("extents overlap: bytes {} to {} and {} to {}", before.offset,
                             before.end(), each.offset, each.end())};
  }
  for (std::size_t i = 0; i < map.by_part_.size(); ++i) {
    const ByteRange& each = map.by_part_[i].on_volume;
    const bool last = i + 1 == map.by_part_.size();
    map.aligned_ &= each.offset % kBlockBytes == 0 && (last || each.length % kBlockBytes == 0);
  }
  return map;
}

}  // namespace mariner::uvfs
