#include "logging/packed_tracks.h"

#include <string>

#include "logging/pack_window.h"
#include "logging/track_verifier.h"
#include "proto/check.h"
#include "proto/payload.h"

namespace mariner::logging {
namespace {

Error damaged(std::uint64_t track, const std::string& what) {
  return {ErrorCode::kCorrupt, "track " + std::to_string(track) + " does not read back: " + what};
}

}  // namespace

Result<void> verify_packed_track(const Superblock& superblock, const PackedTrack& packed,
                                 std::size_t in_pack, const PackReader& reader,
                                 const PackPause& pause) {
  CHECK(in_pack < reader.table().tracks().size());
  const PackTable::Track& of_table = reader.table().tracks()[in_pack];
  const std::uint64_t used = packed.end_batch == 0 ? 0 : packed.used;
  if (of_table.bytes != superblock.track_bytes() ||
      (!of_table.pieces.empty() && of_table.pieces.back().end() > used)) {
    return damaged(packed.track, "it is longer than it was");
  }
  if (packed.end_batch == 0) return {};
  PackPace pace(pause);
  Payload buffer = Payload::allocate(std::size_t{TrackVerifier::kPieceBlocks} * kBlockBytes);
  TrackVerifier verifier(
      superblock,
      {.track = packed.track, .allocation = packed.allocation, .end_batch = packed.end_batch});
  const std::uint64_t first = superblock.track_first_sector(packed.track);
  for (TrackVerifier::Piece piece = verifier.next(); piece.count > 0; piece = verifier.next()) {
    const std::span<std::byte> to = buffer.bytes().first(std::size_t{piece.count} * kBlockBytes);
    if (Result<void> paced = pace.did(to.size()); !paced) return paced;
    if (Result<void> read = reader.read(in_pack, (piece.block - first) * kBlockBytes, to); !read) {
      return read;
    }
    verifier.take(to);
  }
  if (verifier.damage().empty()) return {};
  return damaged(packed.track, "block " +
                                   std::to_string(verifier.damage().front().first_block - first) +
                                   " is not what was written");
}

}  // namespace mariner::logging
