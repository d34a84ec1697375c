// The geometry table of a drive that keeps it to itself, from the times of single commands.
//
// First one sector is asked for again and again: if the answers do not come in the beat of a
// rotation, there is none to follow, and the verdict says so. Otherwise tracks are looked for
// (track_finder.h). A zone goes on for as long as its tracks lie where they would if it did: its
// end is found by bisection, and tracks in between are looked at afterwards.
//
// The table of the paper's drive, simulated, comes out exactly when completions are noticed late by
// up to 0.12 ms, or by up to 0.04 ms and one in twelve by up to a revolution. Where all are late
// by up to 0.3 ms, two runs of three are unclear, and some tables leave tracks out.
//
// What it cannot find out: tracks on a drive without a visible skew, and anything behind a layer
// that answers from memory or moves sectors (caches, virtual disks, RAID, shingled drives). It
// gives no table then. A defect that the drive leaves out in the middle of a zone cuts the zone in
// two. A short run of other tracks is not seen if the zone goes on behind it in whole tracks from
// its beginning.
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
