// How many regions a stretch of track refers to: what reading it in order costs. PACK.md section 4.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mariner::logging {

class PackFanOut {
 public:
  static constexpr std::uint64_t kStretchBytes = 128u << 10;  // of track, from a multiple of it on

  explicit PackFanOut(std::uint32_t foreign_max) : foreign_max_(foreign_max) {}

  // What comes stands at that place. `own_region` is the one that its blocks would go to: it, and
  // later ones, are a stretch's own.
  void enter(std::size_t track, std::uint64_t at, std::uint32_t own_region) {
    const std::uint64_t stretch = at / kStretchBytes;
    if (track == track_ && stretch == stretch_) return;
    track_ = track;
    stretch_ = stretch;
    first_own_ = own_region;
    foreign_.clear();
  }

  // Whether the stretch may refer to the region for the sake of one block.
  [[nodiscard]] bool allows(std::uint32_t region) const {
    return knows(region) || foreign_.size() < foreign_max_;
  }
  void refer(std::uint32_t region) {
    if (!knows(region)) foreign_.push_back(region);
  }

 private:
  [[nodiscard]] bool knows(std::uint32_t region) const {
    return region >= first_own_ || std::ranges::find(foreign_, region) != foreign_.end();
  }

  const std::uint32_t foreign_max_;
  std::size_t track_ = SIZE_MAX;
  std::uint64_t stretch_ = 0;
  std::uint32_t first_own_ = 0;
  std::vector<std::uint32_t> foreign_;  // at most the blocks of a stretch
};

}  // namespace mariner::logging
