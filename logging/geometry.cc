#include "logging/geometry.h"

#include <string>

#include "proto/check.h"

namespace mariner::logging {

namespace {

Error invalid(std::string text) {
  return {ErrorCode::kInvalidArgument, "geometry: " + std::move(text)};
}

std::string name_of(std::size_t zone) { return "zone " + std::to_string(zone); }

}  // namespace

Result<Geometry> Geometry::make(const Shape& shape) {
  if (shape.sector_bytes != 512 && shape.sector_bytes != 4096) {
    return invalid("a sector of " + std::to_string(shape.sector_bytes) +
                   " bytes; 512 or 4096 were expected");
  }
  if (shape.rotation.count() < 0) return invalid("the time of a revolution is negative");
  if (shape.zones.empty() || shape.zones.size() > kZonesMax) {
    return invalid(std::to_string(shape.zones.size()) + " zones; 1 to " +
                   std::to_string(kZonesMax) + " were expected");
  }
  Geometry geometry;
  geometry.sector_bytes_ = shape.sector_bytes;
  geometry.rotation_ = shape.rotation;
  const std::uint64_t sectors_max = kBytesMax / shape.sector_bytes;
  std::uint64_t end = 0;
  for (const Zone& zone : shape.zones) {
    const std::size_t number = geometry.zone_count_;
    if (zone.tracks == 0 || zone.sectors_per_track == 0) {
      return invalid(name_of(number) + " has no sectors");
    }
    if (zone.first_sector < end) {
      return invalid(name_of(number) + " begins at sector " + std::to_string(zone.first_sector) +
                     ", before the end of the one before it, " + std::to_string(end));
    }
    // By division: a product of foreign numbers may overflow.
    if (zone.first_sector > sectors_max ||
        zone.tracks > (sectors_max - zone.first_sector) / zone.sectors_per_track) {
      return invalid(name_of(number) + " ends beyond 1 EiB");
    }
    end = zone.end_sector();
    geometry.zones_[geometry.zone_count_++] = zone;
    geometry.track_count_ += zone.tracks;
    geometry.bytes_ += (end - zone.first_sector) * shape.sector_bytes;
  }
  return geometry;
}

Result<Geometry> Geometry::uniform(const Uniform& uniform) {
  const Zone zone{uniform.first_sector, uniform.tracks, uniform.sectors_per_track};
  return make({.sector_bytes = uniform.sector_bytes, .zones = {&zone, 1}});
}

SectorRange Geometry::track(std::uint64_t number) const {
  CHECK(number < track_count_);
  for (const Zone& zone : zones()) {
    if (number < zone.tracks) {
      return {zone.first_sector + number * zone.sectors_per_track, zone.sectors_per_track};
    }
    number -= zone.tracks;
  }
  CHECK_MSG(false, "the tracks of the zones do not add up to track_count()");
  return {};
}

bool Geometry::contains(std::uint64_t sector) const {
  return std::ranges::any_of(zones(), [sector](const Zone& zone) {
    return sector >= zone.first_sector && sector < zone.end_sector();
  });
}

std::uint64_t Geometry::track_of(std::uint64_t sector) const {
  std::uint64_t before = 0;
  for (const Zone& zone : zones()) {
    if (sector < zone.end_sector()) {
      CHECK(sector >= zone.first_sector);
      return before + (sector - zone.first_sector) / zone.sectors_per_track;
    }
    before += zone.tracks;
  }
  CHECK_MSG(false, "the sector lies behind the last track");
  return 0;
}

}  // namespace mariner::logging
