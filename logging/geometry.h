// The geometry table of a log disk: which log sectors form a track, and how fast the disk turns.
//
// A log sector is the log disk's own sector, 512 or 4096 bytes. Tracks are numbered from 0 in the
// order of their sectors; a zone is a run of consecutive tracks of equal length. Between zones
// there may be sectors that belong to no track (a reserved area, spare sectors).
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>

#include "proto/error.h"

namespace mariner::logging {

// Log sectors [first, end()). Empty when count is 0.
struct SectorRange {
  std::uint64_t first = 0;
  std::uint32_t count = 0;

  friend constexpr auto operator<=>(const SectorRange&, const SectorRange&) = default;
  [[nodiscard]] constexpr std::uint64_t end() const { return first + count; }
  [[nodiscard]] constexpr bool empty() const { return count == 0; }
  [[nodiscard]] constexpr bool contains(std::uint64_t sector) const {
    return sector >= first && sector < end();
  }
  [[nodiscard]] constexpr bool contains(const SectorRange& other) const {
    return other.first >= first && other.end() <= end();
  }
  [[nodiscard]] constexpr bool overlaps(const SectorRange& other) const {
    return std::max(first, other.first) < std::min(end(), other.end());
  }
};

struct Zone {
  std::uint64_t first_sector = 0;
  std::uint64_t tracks = 0;
  std::uint32_t sectors_per_track = 0;

  friend constexpr bool operator==(const Zone&, const Zone&) = default;
  [[nodiscard]] constexpr std::uint64_t end_sector() const {
    return first_sector + tracks * sectors_per_track;
  }
};

// An immutable value of fixed size. Every call is a scan of at most kZonesMax zones.
class Geometry {
 public:
  static constexpr std::size_t kZonesMax = 16;
  static constexpr std::uint64_t kBytesMax = std::uint64_t{1} << 60;

  struct Shape {
    std::uint32_t sector_bytes = 512;
    std::chrono::nanoseconds rotation{0};  // of one revolution; 0: the disk does not rotate
    std::span<const Zone> zones;           // ascending, not overlapping
  };

  // kInvalidArgument if the shape is not as said above, has no track, or ends beyond kBytesMax.
  static Result<Geometry> make(const Shape& shape);

  struct Uniform {
    std::uint32_t sector_bytes = 4096;
    std::uint64_t first_sector = 0;
    std::uint64_t tracks = 0;
    std::uint32_t sectors_per_track = 0;
  };
  // Of a file or solid-state disk: tracks of one length, nothing rotates. Errors as of make().
  static Result<Geometry> uniform(const Uniform& uniform);

  [[nodiscard]] std::uint32_t sector_bytes() const { return sector_bytes_; }
  [[nodiscard]] std::chrono::nanoseconds rotation() const { return rotation_; }
  [[nodiscard]] bool rotates() const { return rotation_.count() > 0; }
  [[nodiscard]] std::span<const Zone> zones() const { return {zones_.data(), zone_count_}; }

  [[nodiscard]] std::uint64_t track_count() const { return track_count_; }
  // Requires number < track_count().
  [[nodiscard]] SectorRange track(std::uint64_t number) const;
  // Whether the sector belongs to a track.
  [[nodiscard]] bool contains(std::uint64_t sector) const;
  // The number of the track that the sector belongs to. Requires contains(sector).
  [[nodiscard]] std::uint64_t track_of(std::uint64_t sector) const;

  // Of all tracks together.
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Behind the last track: how many sectors the disk must have.
  [[nodiscard]] std::uint64_t end_sector() const { return zones().back().end_sector(); }

  friend bool operator==(const Geometry&, const Geometry&) = default;

 private:
  Geometry() = default;

  std::uint32_t sector_bytes_ = 0;
  std::chrono::nanoseconds rotation_{0};
  std::size_t zone_count_ = 0;
  std::array<Zone, kZonesMax> zones_{};  // unused ones stay zero, so that == compares values
  std::uint64_t track_count_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace mariner::logging
