#include "logging/damaged_read.h"

#include <algorithm>

namespace mariner::logging {

Result<void> read_with_damage(Disk& disk, std::uint64_t offset, std::span<std::byte> to) {
  Result<void> whole = disk.read(offset, to);
  if (whole || whole.error().code != ErrorCode::kCorrupt) return whole;
  while (!to.empty()) {
    const std::span<std::byte> block = to.first(std::min<std::size_t>(to.size(), kBlockBytes));
    if (Result<void> r = disk.read(offset, block); !r) {
      if (r.error().code != ErrorCode::kCorrupt) return r;
      std::ranges::fill(block, std::byte{0});
    }
    offset += block.size();
    to = to.subspan(block.size());
  }
  return {};
}

}  // namespace mariner::logging
