// What the records of a pack's tracks tell of its payload blocks before one of them is read: where
// they stand, and which are versions of one block of a volume.
//
// The blocks of all tracks are numbered through in the order of tracks and places. Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "logging/pack_source.h"

namespace mariner::logging {

class PackSurvey {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Place {
    std::size_t track = 0;
    std::uint32_t at = 0;  // byte offset in the track
  };

  // The tracks are within bounds. `versions`: find earlier ones.
  explicit PackSurvey(std::span<const PackTrack> tracks, bool versions = true);

  [[nodiscard]] std::uint32_t blocks() const { return blocks_; }
  // The version before it, of the same block of the same volume; or kNone.
  [[nodiscard]] std::uint32_t previous_version(std::uint32_t block) const {
    return previous_.empty() ? kNone : previous_[block];
  }
  // Whether a later block has it as its previous version.
  [[nodiscard]] bool has_later_version(std::uint32_t block) const {
    return !followed_.empty() && followed_[block];
  }
  [[nodiscard]] Place place_of(std::uint32_t block) const;

 private:
  struct Run {
    std::uint32_t first = 0;  // number of its first block
    std::uint32_t track = 0;
    std::uint32_t at = 0;
  };

  void find_versions(std::span<const PackTrack> tracks);

  std::uint32_t blocks_ = 0;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> previous_;  // of each block
  std::vector<bool> followed_;
};

}  // namespace mariner::logging
