// The geometry table of a drive that keeps it to itself, from the times of single commands.
//
// First one sector is asked for again and again: if the answers do not come in the beat of a
// rotation, there is none to follow, and the verdict says so. Otherwise the angles of sectors are
// compared (phase_meter.h). Along a track the angle grows evenly; at a track's end it jumps by the
// skew that gives the drive time to get to the next one. The place of a jump is found by
// bisection, exactly; two jumps enclose a track, and so give its length. A zone goes on for as long
// as its tracks lie where they would if it did: its end is found by bisection, too, and tracks in
// between are looked at afterwards.
//
// It is exact as long as completions are noticed to within one part in seventy of a revolution (0.12
// ms at 7,200 a minute), except for one in ten, which may be late by anything.
//
// What it cannot find out: tracks on a drive without a visible skew, and anything behind a layer
// that answers from memory or moves sectors (caches, virtual disks, RAID, shingled drives). It
// gives no table then. A defect that the drive leaves out in the middle of a zone cuts the zone in
// two.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "logging/geometry.h"
#include "logging/phase_meter.h"

namespace mariner::logging {

struct GeometryExtraction {
  enum class Verdict {
    kRotates,        // and this is its geometry
    kDoesNotRotate,  // it has none: append
    kUnclear,        // something turns, but its tracks were not found: append
  };
  struct Options {
    std::uint64_t sectors = 0;       // of the disk, not 0
    std::uint32_t sector_bytes = 0;  // 512 or 4096: of an access, and of the table
    std::uint64_t commands_max = kCommandsMax;
  };
  // How many commands are given at most: eleven minutes at 100 a second. The paper's drive takes an
  // eighth of it.
  static constexpr std::uint64_t kCommandsMax = 65'536;
  // What a rotation may take: 2,400 to 24,000 revolutions a minute.
  static constexpr TimedDisk::Time kRotationMin = std::chrono::microseconds(2'500);
  static constexpr TimedDisk::Time kRotationMax = std::chrono::microseconds(25'000);
  // Tracks have between so many sectors. A disk on which no angle grows within the longest track
  // does not rotate.
  static constexpr std::uint32_t kTrackSectorsMin = 32;
  static constexpr std::uint32_t kTrackSectorsMax = 16'384;
  // The least skew that is seen, in revolutions: at 7,200 a minute, 0.4 ms.
  static constexpr double kSkewMin = 0.05;

  Verdict verdict = Verdict::kUnclear;
  // With kRotates. It may end before the disk does: behind kZonesMax zones, and where what is left
  // holds no whole track. Its rotation is a customary speed where the measured one is within one
  // part in two thousand of it.
  std::optional<Geometry> geometry;
  TimedDisk::Time track_skew{0};  // with kRotates: the median over the zones
  std::uint64_t commands = 0;     // that were given
  std::string report;             // sentences for people: what was looked at, found, and what to do
};

// Blocks for as long as the accesses do. Errors of an access are returned as they are, except that
// kLimit, which is the meter's own, becomes the verdict kUnclear.
Result<GeometryExtraction> extract_geometry(TimedDisk& disk,
                                            const GeometryExtraction::Options& options);

}  // namespace mariner::logging
