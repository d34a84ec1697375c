// The table of a pack: where each byte of the pack's tracks stands. PACK.md section 2.
//
// A pack holds the contents of several complete tracks, compactly: *regions*, each compressed as a
// whole, and for each track the *pieces* that lie in them. What no piece covers reads as zeros. A
// piece is plain (its bytes stand in a region) or a delta: one block, made from its delta and from
// a block that stands plain in a region, its base. So a read opens one region for each plain piece
// and two for each delta, never more.
//
// A table is immutable once it is made, and may be read by any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"

namespace mariner::logging {

inline constexpr std::uint32_t kPackRegionBytesMax = 1u << 20;               // plain
inline constexpr std::uint64_t kPackTrackBytesMax = std::uint64_t{1} << 30;  // of one track
inline constexpr std::uint64_t kPackPlainBytesMax = std::uint64_t{4} << 30;  // of all tracks
inline constexpr std::uint64_t kPackBytesMax = std::uint64_t{8} << 30;       // of all regions
inline constexpr std::uint32_t kPackTracksMax = 1u << 16;
inline constexpr std::uint32_t kPackRegionsMax = 1u << 20;
inline constexpr std::uint32_t kPackPiecesMax = 1u << 22;       // of all tracks
inline constexpr std::uint32_t kPackTableBytesMax = 64u << 20;  // of the table, not compressed

struct PackRegion {
  std::uint64_t at = 0;            // byte offset in the pack
  std::uint32_t stored_bytes = 0;  // there; as many as plain_bytes when it is not compressed
  std::uint32_t plain_bytes = 0;   // 1 to kPackRegionBytesMax
  std::uint32_t crc32c = 0;        // of the stored bytes

  friend bool operator==(const PackRegion&, const PackRegion&) = default;
};

struct PackPiece {
  enum class Kind : std::uint8_t { kPlain, kDelta };

  std::uint32_t at = 0;      // byte offset in the track
  std::uint32_t bytes = 0;   // at least 1; of a delta kBlockBytes
  std::uint32_t region = 0;  // number of the region
  std::uint32_t offset = 0;  // in its plain bytes: of the bytes, or of the delta
  // Of a delta; otherwise zero.
  std::uint32_t base_region = 0;
  std::uint32_t base_offset = 0;  // in its plain bytes, of a whole block
  std::uint16_t delta_bytes = 0;  // in `region`, at least 1
  Kind kind = Kind::kPlain;

  [[nodiscard]] std::uint64_t end() const { return std::uint64_t{at} + bytes; }
  [[nodiscard]] std::uint32_t stored_bytes() const {
    return kind == Kind::kPlain ? bytes : delta_bytes;
  }
  friend bool operator==(const PackPiece&, const PackPiece&) = default;
};

class PackTable {
 public:
  struct Track {
    std::uint64_t bytes = 0;        // its length
    std::vector<PackPiece> pieces;  // ascending and apart

    friend bool operator==(const Track&, const Track&) = default;
  };

  PackTable() = default;
  // What of them breaks a bound or a rule of PACK.md section 2; empty when nothing does.
  [[nodiscard]] static std::string fault_of(std::span<const Track> tracks,
                                            std::span<const PackRegion> regions);
  // Of such as have no fault.
  PackTable(std::vector<Track> tracks, std::vector<PackRegion> regions);

  // Takes bytes of a disk. kCorrupt when they are not exactly those of a whole table. Allocates at
  // most kPackTableBytesMax and what the bounds above allow.
  [[nodiscard]] static Result<PackTable> from_bytes(std::span<const std::byte> bytes);

  [[nodiscard]] std::span<const Track> tracks() const { return tracks_; }
  [[nodiscard]] std::span<const PackRegion> regions() const { return regions_; }

  // The pieces of the track that end behind `offset`, in order.
  [[nodiscard]] std::span<const PackPiece> pieces_from(std::size_t track,
                                                       std::uint64_t offset) const;
  // Bytes of all regions: the length of the pack without its table.
  [[nodiscard]] std::uint64_t pack_bytes() const;
  // What it takes in memory.
  [[nodiscard]] std::uint64_t memory_bytes() const;

  friend bool operator==(const PackTable&, const PackTable&) = default;

 private:
  std::vector<Track> tracks_;
  std::vector<PackRegion> regions_;
};

// Compressed, with magic, version and CRC.
[[nodiscard]] std::vector<std::byte> to_bytes(const PackTable& table);

}  // namespace mariner::logging
