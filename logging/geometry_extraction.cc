#include "logging/geometry_extraction.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "logging/track_finder.h"
#include "proto/check.h"

namespace mariner::logging {

namespace {

using Time = TimedDisk::Time;
using Extraction = GeometryExtraction;

std::string microseconds(Time time) {
  std::string text = std::to_string((time.count() + 50) / 100);
  if (text.size() < 2) text.insert(0, "0");
  return text.insert(text.size() - 1, ".") + " us";
}

// The time of a revolution as its maker meant it: in the long run a crystal keeps it there, while
// the speed of the few minutes of a measurement wanders by some parts in ten thousand.
Time nominal(Time measured) {
  for (const int per_minute : {3600, 4200, 4500, 5400, 5700, 5900, 7200, 10'000, 12'000, 15'000}) {
    const Time customary(60'000'000'000 / per_minute);
    if (std::abs((measured - customary).count()) * 2000 <= customary.count()) return customary;
  }
  return measured;
}

class Extractor {
 public:
  Extractor(TimedDisk& disk, const Extraction::Options& options)
      : sectors_(options.sectors),
        sector_bytes_(options.sector_bytes),
        meter_(disk, options.commands_max),
        finder_(meter_, options.sectors) {}

  Result<Extraction> run();

 private:
  using MaybeBorder = TrackFinder::MaybeBorder;

  Result<void> find_zones();
  Result<std::uint64_t> first_track();
  Result<std::uint32_t> next_track(std::uint64_t& at);
  Result<std::uint64_t> tracks_from(std::uint64_t first, std::uint32_t length);
  Result<std::optional<std::uint64_t>> irregular(std::uint64_t first, std::uint32_t length,
                                                 std::uint64_t tracks);
  bool add_zone(const Zone& zone);

  Extraction conclude(Extraction::Verdict verdict, std::string report) const;
  Extraction no_rotation(const PhaseMeter::Repetition& repetition) const;
  Extraction unclear(const std::string& why) const;
  Extraction found() const;

  const std::uint64_t sectors_;
  const std::uint32_t sector_bytes_;
  PhaseMeter meter_;
  TrackFinder finder_;
  bool table_full_ = false;
  std::vector<Zone> zones_;
  std::vector<double> skews_;
};

// ---- zones --------------------------------------------------------------------------------------

// The first of some tracks, spread evenly, that does not lie where it would in one zone.
Result<std::optional<std::uint64_t>> Extractor::irregular(std::uint64_t first, std::uint32_t length,
                                                          std::uint64_t tracks) {
  constexpr std::uint64_t kLooks = 8;
  for (std::uint64_t look = 1; look <= kLooks; ++look) {
    const std::uint64_t track = tracks / (kLooks + 1) * look;
    if (track == 0) continue;
    const Result<bool> fits = finder_.is_track(first + track * length, length);
    if (!fits) return fits.error();
    if (!*fits) return std::optional(track);
  }
  return std::optional<std::uint64_t>();
}

// How many tracks of this length follow each other from `first`, which begins one of them.
Result<std::uint64_t> Extractor::tracks_from(std::uint64_t first, std::uint32_t length) {
  std::uint64_t bad = (sectors_ - first) / length;  // the first that does not belong to them
  while (true) {
    std::uint64_t good = 0;
    while (bad - good > 1) {
      const std::uint64_t middle = good + (bad - good) / 2;
      const Result<bool> fits = finder_.is_track(first + middle * length, length);
      if (!fits) return fits.error();
      (*fits ? good : bad) = middle;
    }
    const Result<std::optional<std::uint64_t>> hole = irregular(first, length, bad);
    if (!hole) return hole.error();
    if (!*hole) return bad;
    bad = **hole;
  }
}

// A partial track at the disk's beginning would look like a short one: it must be as long as the
// next.
Result<std::uint64_t> Extractor::first_track() {
  const MaybeBorder first = finder_.border_after(0);
  if (!first) return first.error();
  if (!*first) return sectors_;
  const std::uint64_t border = (*first)->sector;
  const MaybeBorder second = finder_.border_after(border);
  if (!second) return second.error();
  if (!*second) return sectors_;
  return (*second)->sector - border == border ? 0 : border;
}

// False: the table is full.
bool Extractor::add_zone(const Zone& zone) {
  if (!zones_.empty() && zones_.back().end_sector() == zone.first_sector &&
      zones_.back().sectors_per_track == zone.sectors_per_track) {
    zones_.back().tracks += zone.tracks;
    return true;
  }
  table_full_ = zones_.size() == Geometry::kZonesMax;
  if (table_full_) return false;
  zones_.push_back(zone);
  return true;
}

// The length of the track that begins at `at`, which moves behind what belongs to no track. 0: the
// disk ends before.
Result<std::uint32_t> Extractor::next_track(std::uint64_t& at) {
  if (!zones_.empty() && at + zones_.back().sectors_per_track <= sectors_) {
    // A wrong measurement may have ended the zone too early.
    const Result<bool> goes_on = finder_.is_track(at, zones_.back().sectors_per_track);
    if (!goes_on) return goes_on.error();
    if (*goes_on) return zones_.back().sectors_per_track;
  }
  constexpr int kMissesMax = 3;
  for (int misses = 1; true; ++misses) {
    const MaybeBorder border = finder_.border_after(at);
    if (!border) return border.error();
    if (!*border) return 0;
    const bool whole = (*border)->origin == at;
    if (whole) {
      const auto length = static_cast<std::uint32_t>((*border)->sector - at);
      const Result<bool> verified = finder_.is_track(at, length);
      if (!verified) return verified.error();
      if (*verified) {
        skews_.push_back((*border)->skew);
        return length;
      }
    }
    if (misses < kMissesMax) continue;
    if (whole) {
      return Error{ErrorCode::kLimit, "the track at sector " + std::to_string(at) +
                                          " is not the same when looked at again"};
    }
    at = (*border)->sector;  // less than a track, then a jump, time and again
    misses = 0;
  }
}

Result<void> Extractor::find_zones() {
  Result<std::uint64_t> at = first_track();
  if (!at) return at.error();
  while (*at < sectors_) {
    const Result<std::uint32_t> length = next_track(*at);
    if (!length) return length.error();
    if (*length == 0) break;
    const Result<std::uint64_t> tracks = tracks_from(*at, *length);
    if (!tracks) return tracks.error();
    if (!add_zone({*at, *tracks, *length})) break;
    *at += *tracks * *length;
  }
  return {};
}

// ---- verdicts -----------------------------------------------------------------------------------

Extraction Extractor::conclude(Extraction::Verdict verdict, std::string report) const {
  return {.verdict = verdict, .commands = meter_.commands(), .report = std::move(report)};
}

Extraction Extractor::no_rotation(const PhaseMeter::Repetition& repetition) const {
  std::string text =
      "The disk does not rotate, as far as its answers tell. One sector was asked for " +
      std::to_string(PhaseMeter::kRepetitions) + " times: a revolution would show as " +
      microseconds(Extraction::kRotationMin) + " to " + microseconds(Extraction::kRotationMax) +
      " or whole multiples of it. The answers took " + microseconds(repetition.least) + " to " +
      microseconds(repetition.most) + ", " + microseconds(repetition.median) + " in the median";
  if (!repetition.steady) {
    text += ", with no period. ";
  } else if (repetition.median < Extraction::kRotationMin) {
    text += ": faster than any disk turns. ";
  } else if (repetition.median > Extraction::kRotationMax) {
    text += ": slower than any disk turns. ";
  } else {
    text += ", and as long for all other sectors: a constant time, not an angle. ";
  }
  return conclude(Extraction::Verdict::kDoesNotRotate,
                  text + "There are no tracks to follow: use the append placement.");
}

Extraction Extractor::unclear(const std::string& why) const {
  return conclude(Extraction::Verdict::kUnclear,
                  "The answers come in the beat of a rotation of " +
                      microseconds(meter_.rotation()) + ", but the tracks were not found: " + why +
                      ". No table is better than a wrong one: use the append placement.");
}

Extraction Extractor::found() const {
  const Time rotation = nominal(meter_.rotation());
  const Result<Geometry> geometry =
      Geometry::make({.sector_bytes = sector_bytes_, .rotation = rotation, .zones = zones_});
  if (!geometry) return unclear(geometry.error().message);
  std::vector<double> skews = skews_;
  std::ranges::sort(skews);
  const double skew = skews[skews.size() / 2];
  const Time track_skew(
      std::llround((skew < 0 ? skew + 1 : skew) * static_cast<double>(rotation.count())));
  std::string text = "The disk turns once in " + microseconds(rotation) +
                     " (measured: " + std::to_string(meter_.rotation().count()) +
                     " ns), each track begins " + microseconds(track_skew) +
                     " after the one before. " + std::to_string(geometry->track_count()) +
                     " tracks in " + std::to_string(zones_.size()) + " zones were found with " +
                     std::to_string(meter_.commands()) + " commands.";
  std::uint64_t in_tracks = geometry->bytes() / sector_bytes_;
  if (in_tracks < sectors_) {
    text += " " + std::to_string(sectors_ - in_tracks) + " of " + std::to_string(sectors_) +
            " sectors belong to none of them";
    text += table_full_ ? ": a table has no room for more zones." : ": they make no whole track.";
  }
  Extraction extraction = conclude(Extraction::Verdict::kRotates, std::move(text));
  extraction.geometry = *geometry;
  extraction.track_skew = track_skew;
  return extraction;
}

Result<Extraction> Extractor::run() {
  const Result<PhaseMeter::Repetition> repetition = meter_.repeat(0);
  if (!repetition) {
    if (repetition.error().code != ErrorCode::kLimit) return repetition.error();
    return conclude(Extraction::Verdict::kUnclear, repetition.error().message + ".");
  }
  if (!repetition->steady || repetition->median < Extraction::kRotationMin ||
      repetition->median > Extraction::kRotationMax) {
    return no_rotation(*repetition);
  }
  const Result<void> walked = find_zones();
  if (!walked && walked.error().code != ErrorCode::kLimit) return walked.error();
  if (finder_.even() && zones_.empty()) return no_rotation(*repetition);
  if (!walked) return unclear(walked.error().message);
  if (zones_.empty()) return unclear("the disk is shorter than two tracks");
  return found();
}

}  // namespace

Result<GeometryExtraction> extract_geometry(TimedDisk& disk,
                                            const GeometryExtraction::Options& options) {
  CHECK(options.sectors > 0 && (options.sector_bytes == 512 || options.sector_bytes == 4096));
  return Extractor(disk, options).run();
}

}  // namespace mariner::logging
