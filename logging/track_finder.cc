#include "logging/track_finder.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace mariner::logging {

namespace {

// By how much an angle may be off where it should grow evenly. What is more is a jump.
constexpr double kBendMax = 0.04;
static_assert(1.0 / TrackFinder::kTrackSectorsMin < kBendMax && kBendMax < TrackFinder::kSkewMin &&
              2 * PhaseMeter::kAgreement < kBendMax);

}  // namespace

Result<double> TrackFinder::bend(std::uint64_t from, std::uint64_t to, double expected) {
  const Result<double> phase = meter_.phase(from, to);
  if (!phase) return phase.error();
  return around(*phase - expected);
}

// The angle that a sector takes, measured over at least `reach` sectors from `origin`: about half a
// track in which no track ends. If one ends there, the origin moves behind it. Nothing: the disk
// ends before.
Result<std::optional<double>> TrackFinder::angle_per_sector(std::uint64_t& origin,
                                                            std::uint64_t& reach) {
  constexpr int kMovesMax = 4;
  for (int move = 0; move < kMovesMax; ++move) {
    double angle = 0;  // of the first `reach` sectors
    reach = 0;
    // Twice as far each time, where the angle should be twice as large; at last to half a track.
    for (bool half = false; !half;) {
      half = angle >= 0.25;
      const std::uint64_t next =
          half ? static_cast<std::uint64_t>(static_cast<double>(reach) * 0.5 / angle)
               : std::max<std::uint64_t>(1, 2 * reach);
      if (next <= reach) break;  // it is half a track already
      if (next > kTrackSectorsMax) {
        even_ = true;
        return Error{ErrorCode::kLimit, "all sectors come by at the same angle"};
      }
      if (origin + next >= sectors_) return std::optional<double>();
      const double expected =
          reach == 0 ? 0 : angle * static_cast<double>(next) / static_cast<double>(reach);
      const Result<double> off = bend(origin, origin + next, expected);
      if (!off) return off.error();
      if (std::abs(*off) > kBendMax) {
        origin += next;
        angle = 0;
        break;
      }
      angle = expected + *off;
      reach = next;
    }
    if (angle >= 0.25) return std::optional(angle / static_cast<double>(reach));
  }
  return Error{ErrorCode::kLimit, "the angles from sector " + std::to_string(origin) +
                                      " on do not grow evenly anywhere"};
}

// No track ends within `reach`; one does within a track's length.
TrackFinder::MaybeBorder TrackFinder::bisect_border(std::uint64_t origin, std::uint64_t reach,
                                                    double per_sector) {
  std::uint64_t behind = static_cast<std::uint64_t>(std::ceil(1.15 / per_sector));
  const bool disk_ends = origin + behind >= sectors_;
  if (disk_ends) behind = sectors_ - 1 - origin;
  if (behind <= reach) return std::optional<Border>();
  const auto off_at = [&](std::uint64_t distance) {
    return bend(origin, origin + distance, static_cast<double>(distance) * per_sector);
  };
  Result<double> jump = off_at(behind);
  if (!jump) return jump.error();
  if (std::abs(*jump) < kSkewMin) {
    if (disk_ends) return std::optional<Border>();
    return Error{ErrorCode::kLimit,
                 "the angles do not jump within a track's length behind sector " +
                     std::to_string(origin) + ": the drive shows no skew"};
  }
  while (behind - reach > 1) {
    const std::uint64_t middle = reach + (behind - reach) / 2;
    const Result<double> off = off_at(middle);
    if (!off) return off.error();
    if (std::abs(*off) >= kSkewMin) {
      behind = middle;
      jump = off;
    } else {
      reach = middle;
    }
  }
  return std::optional(Border{origin, origin + behind, *jump});
}

TrackFinder::MaybeBorder TrackFinder::border_after(std::uint64_t origin) {
  std::uint64_t reach = 0;
  const Result<std::optional<double>> per_sector = angle_per_sector(origin, reach);
  if (!per_sector) return per_sector.error();
  if (!*per_sector) return std::optional<Border>();
  return bisect_border(origin, reach, **per_sector);
}

Result<bool> TrackFinder::begins_track(std::uint64_t sector, std::uint32_t length) {
  const Result<double> off = bend(sector - 1, sector, 1.0 / length);
  if (!off) return off.error();
  return std::abs(*off) >= kSkewMin;
}

Result<bool> TrackFinder::is_track(std::uint64_t first, std::uint32_t length) {
  const std::uint64_t end = first + length;
  if (first > 0) {
    const Result<bool> begins = begins_track(first, length);
    if (!begins || !*begins) return begins;
  }
  for (const std::uint32_t within : {length / 2, length - 1}) {
    const Result<double> off = bend(first, first + within, static_cast<double>(within) / length);
    if (!off) return off.error();
    if (std::abs(*off) > kBendMax) return false;
  }
  return end == sectors_ ? Result<bool>(true) : begins_track(end, length);
}

}  // namespace mariner::logging
