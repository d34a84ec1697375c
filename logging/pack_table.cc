#include "logging/pack_table.h"

#include <algorithm>

#include "proto/check.h"

namespace mariner::logging {
namespace {

std::string fault_of_region(const PackRegion& region) {
  if (region.plain_bytes == 0 || region.plain_bytes > kPackRegionBytesMax) {
    return "has " + std::to_string(region.plain_bytes) + " plain bytes";
  }
  if (region.stored_bytes == 0 || region.stored_bytes > region.plain_bytes) {
    return "has " + std::to_string(region.stored_bytes) + " bytes for " +
           std::to_string(region.plain_bytes) + " plain ones";
  }
  if (region.at > kPackBytesMax - region.stored_bytes) {
    return "begins at byte " + std::to_string(region.at);
  }
  return {};
}

// Whether the bytes are all there.
bool is_within(std::span<const PackRegion> regions, std::uint32_t region, std::uint32_t offset,
               std::uint32_t bytes) {
  return region < regions.size() && offset <= regions[region].plain_bytes &&
         bytes <= regions[region].plain_bytes - offset;
}

std::string fault_of_piece(const PackPiece& piece, std::span<const PackRegion> regions) {
  if (piece.stored_bytes() == 0 ||
      !is_within(regions, piece.region, piece.offset, piece.stored_bytes())) {
    return "is not within a region";
  }
  if (piece.kind == PackPiece::Kind::kPlain) {
    const bool has_base = piece.base_region != 0 || piece.base_offset != 0 || piece.delta_bytes;
    return has_base ? "is plain and has a base" : "";
  }
  if (piece.bytes != kBlockBytes) return "is a delta and not one block";
  if (!is_within(regions, piece.base_region, piece.base_offset, kBlockBytes)) {
    return "has a base that is not within a region";
  }
  return {};
}

std::string fault_of_track(const PackTable::Track& track, std::span<const PackRegion> regions) {
  if (track.bytes > kPackTrackBytesMax) return "has " + std::to_string(track.bytes) + " bytes";
  std::uint64_t end = 0;
  for (const PackPiece& piece : track.pieces) {
    std::string fault = fault_of_piece(piece, regions);
    if (piece.at < end || piece.end() > track.bytes) fault = "is out of its place";
    if (!fault.empty()) return "piece at byte " + std::to_string(piece.at) + " " + fault;
    end = piece.end();
  }
  return {};
}

}  // namespace

std::string PackTable::fault_of(std::span<const Track> tracks,
                                std::span<const PackRegion> regions) {
  if (tracks.size() > kPackTracksMax) return std::to_string(tracks.size()) + " tracks";
  if (regions.size() > kPackRegionsMax) return std::to_string(regions.size()) + " regions";
  for (std::size_t i = 0; i < regions.size(); ++i) {
    const std::string fault = fault_of_region(regions[i]);
    if (!fault.empty()) return "region " + std::to_string(i) + " " + fault;
  }
  std::uint64_t bytes = 0;
  std::uint64_t pieces = 0;
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    const std::string fault = fault_of_track(tracks[i], regions);
    if (!fault.empty()) return "track " + std::to_string(i) + ": " + fault;
    bytes += tracks[i].bytes;
    pieces += tracks[i].pieces.size();
  }
  if (bytes > kPackPlainBytesMax) return "tracks of " + std::to_string(bytes) + " bytes";
  if (pieces > kPackPiecesMax) return std::to_string(pieces) + " pieces";
  return {};
}

PackTable::PackTable(std::vector<Track> tracks, std::vector<PackRegion> regions)
    : tracks_(std::move(tracks)), regions_(std::move(regions)) {
  const std::string fault = fault_of(tracks_, regions_);
  CHECK_MSG(fault.empty(), fault.c_str());
}

std::span<const PackPiece> PackTable::pieces_from(std::size_t track, std::uint64_t offset) const {
  CHECK(track < tracks_.size());
  const std::span<const PackPiece> pieces = tracks_[track].pieces;
  const auto first = std::ranges::partition_point(
      pieces, [offset](const PackPiece& piece) { return piece.end() <= offset; });
  return {first, pieces.end()};
}

std::uint64_t PackTable::pack_bytes() const {
  std::uint64_t end = 0;
  for (const PackRegion& region : regions_) end = std::max(end, region.at + region.stored_bytes);
  return end;
}

std::uint64_t PackTable::memory_bytes() const {
  std::uint64_t bytes =
      tracks_.capacity() * sizeof(Track) + regions_.capacity() * sizeof(PackRegion);
  for (const Track& track : tracks_) bytes += track.pieces.capacity() * sizeof(PackPiece);
  return bytes;
}

}  // namespace mariner::logging
