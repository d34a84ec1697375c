// What is known of a pack's payload blocks before its regions are written: which are zero, which
// are equal, and which are versions of one block of a volume. The first pass over the tracks.
//
// The blocks of all tracks are numbered through in the order of tracks and places. Immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "logging/pack_source.h"
#include "logging/pack_window.h"
#include "proto/error.h"

namespace mariner::logging {

[[nodiscard]] bool is_zero_block(std::span<const std::byte> bytes);

class PackSurvey {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Options {
    bool equals = true;    // find equal blocks
    bool versions = true;  // find earlier versions
  };
  struct Place {
    std::size_t track = 0;
    std::uint32_t at = 0;  // byte offset in the track
  };

  // Reads every payload block. The tracks are within bounds.
  [[nodiscard]] static Result<PackSurvey> of(std::span<const PackTrack> tracks, PackWindow& window,
                                             const Options& options);

  [[nodiscard]] std::uint32_t blocks() const { return static_cast<std::uint32_t>(first_.size()); }
  [[nodiscard]] bool is_zero(std::uint32_t block) const { return first_[block] == kNone; }
  // The first block with its contents (their hash); itself, if there is none before it. Not of one
  // that is zero.
  [[nodiscard]] std::uint32_t first_equal(std::uint32_t block) const { return first_[block]; }
  // The version before it, of the same block of the same volume; or kNone.
  [[nodiscard]] std::uint32_t previous_version(std::uint32_t block) const {
    return previous_.empty() ? kNone : previous_[block];
  }
  // Whether a later block has it, or one equal to it, as its previous version.
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

  void mark_followed();

  std::vector<Run> runs_;
  std::vector<std::uint32_t> first_;     // kNone: zero
  std::vector<std::uint32_t> previous_;  // of each block
  std::vector<bool> followed_;
};

}  // namespace mariner::logging
