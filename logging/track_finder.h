// Where tracks end, from the angles of their sectors (phase_meter.h).
//
// Along a track the angle grows evenly, and at its end it jumps by the skew. How fast it grows is
// measured over half a track, so that what jumps shows; the place of the jump is found by
// bisection, exactly.
//
// All errors are those of the meter; kLimit, too, when the angles are not those of tracks.
#pragma once

#include <cstdint>
#include <optional>

#include "logging/phase_meter.h"

namespace mariner::logging {

class TrackFinder {
 public:
  // Tracks have between so many sectors. A disk on which no angle grows within the longest track
  // does not rotate.
  static constexpr std::uint32_t kTrackSectorsMin = 32;
  static constexpr std::uint32_t kTrackSectorsMax = 16'384;
  // The least skew that is seen, in revolutions: at 7,200 a minute, 0.4 ms.
  static constexpr double kSkewMin = 0.05;

  // A disk of `sectors`, whose meter has found a rotation. The meter must outlive the finder.
  TrackFinder(PhaseMeter& meter, std::uint64_t sectors) : meter_(meter), sectors_(sectors) {}

  struct Border {
    // Where the search began, or behind a border that lay too near: no track ends between here and
    // the border.
    std::uint64_t origin = 0;
    std::uint64_t sector = 0;  // the first of the next track
    double skew = 0;           // in revolutions, [-0.5, 0.5)
  };
  using MaybeBorder = Result<std::optional<Border>>;

  // The end of the track that `origin` lies in, or of the next one if that is nearer than half a
  // track; if `origin` begins a track, its own end. Nothing: the disk ends before.
  MaybeBorder border_after(std::uint64_t origin);

  // Whether a track begins at `first`, another `length` sectors on, and none in between. The disk
  // begins and ends with a track.
  Result<bool> is_track(std::uint64_t first, std::uint32_t length);

  // Whether an error was that all sectors come by at the same angle: a constant latency.
  [[nodiscard]] bool even() const { return even_; }

 private:
  Result<std::optional<double>> angle_per_sector(std::uint64_t& origin, std::uint64_t& reach);
  MaybeBorder bisect_border(std::uint64_t origin, std::uint64_t reach, double per_sector);
  Result<bool> begins_track(std::uint64_t sector, std::uint32_t length);
  // By how much the angle between two sectors differs from what it should be.
  Result<double> bend(std::uint64_t from, std::uint64_t to, double expected);

  PhaseMeter& meter_;
  const std::uint64_t sectors_;
  bool even_ = false;
};

}  // namespace mariner::logging
