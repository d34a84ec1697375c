// Extents of many writes, merged as they come: what is held is bounded by how much of the volume is
// distinct, and not by how often it was written.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "index/version_index.h"

namespace mariner::index {

class MergedExtents {
 public:
  static constexpr std::size_t kUnmergedMax = 1u << 18;  // beside as many as are distinct

  void add(const BlockRange& extent) {
    extents_.push_back(extent);
    if (extents_.size() < merge_at_) return;
    extents_ = merge_extents(std::move(extents_));
    merge_at_ = extents_.size() + std::max(kUnmergedMax, extents_.size());
  }
  // In order; it is empty then.
  [[nodiscard]] std::vector<BlockRange> take() {
    merge_at_ = kUnmergedMax;
    return merge_extents(std::exchange(extents_, {}));
  }
  [[nodiscard]] std::size_t held() const { return extents_.size(); }

 private:
  std::vector<BlockRange> extents_;
  std::size_t merge_at_ = kUnmergedMax;
};

}  // namespace mariner::index
