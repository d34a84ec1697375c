// The table as bytes and back. PACK.md section 2.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "logging/pack_codec.h"
#include "logging/pack_table.h"
#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::logging {
namespace {

constexpr std::uint64_t kMagic = 0x4b4341504e52414d;  // "MARNPACK"
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kFrameBytes = 32;
constexpr std::size_t kCrcOffset = 12;
constexpr int kLevel = 3;
// Of the numbers that follow the counts: at least so many bytes each.
constexpr std::size_t kRegionBytesMin = 7;
constexpr std::size_t kTrackBytesMin = 2;
constexpr std::size_t kPieceBytesMin = 3;

// Where the stored bytes of a piece may go on: behind those of one of the last pieces. Behind the
// four chains that were used last, the newest first.
class Cursors {
 public:
  struct Place {
    std::uint32_t region = 0;
    std::uint32_t offset = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  static constexpr std::uint64_t kCount = 4;  // as the number of a cursor: none of them

  [[nodiscard]] std::uint64_t number_of(Place place) const {
    return static_cast<std::uint64_t>(std::ranges::find(places_, place) - places_.begin());
  }
  [[nodiscard]] Place at(std::uint64_t number) const { return places_.at(number); }
  // A piece that the cursor led to (or none did) has its stored bytes up to `end`.
  void advance(std::uint64_t number, Place end) {
    const auto last = places_.begin() + static_cast<std::ptrdiff_t>(std::min(number, kCount - 1));
    std::rotate(places_.begin(), last, last + 1);
    places_.front() = end;
  }

 private:
  std::array<Place, kCount> places_{};
};

class NumberWriter {
 public:
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes.push_back(static_cast<std::byte>(value | 0x80));
    bytes.push_back(static_cast<std::byte>(value));
  }
  // A difference of either sign.
  void difference(std::uint64_t value, std::uint64_t from) {
    const std::uint64_t d = value - from;
    number((d << 1) ^ (d >> 63 == 0 ? 0 : UINT64_MAX));
  }
  void word(std::uint32_t value) {
    bytes.resize(bytes.size() + sizeof value);
    store_le(bytes.data() + bytes.size() - sizeof value, value);
  }

  std::vector<std::byte> bytes;
};

// Past the end, and behind a number that is too large, everything reads as zero and ok() is false.
class NumberReader {
 public:
  explicit NumberReader(std::span<const std::byte> bytes) : left_(bytes) {}

  std::uint64_t number(std::uint64_t max = UINT64_MAX) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !left_.empty(); shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(left_.front());
      left_ = left_.subspan(1);
      if (shift == 63 && byte > 1) break;
      value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value <= max ? value : fail();
    }
    return fail();
  }
  std::uint32_t number32(std::uint32_t max = UINT32_MAX) {
    return static_cast<std::uint32_t>(number(max));
  }
  std::uint64_t difference(std::uint64_t from, std::uint64_t max) {
    const std::uint64_t n = number();
    const std::uint64_t value = from + ((n >> 1) ^ ((n & 1) == 0 ? 0 : UINT64_MAX));
    return value <= max ? value : fail();
  }
  std::uint32_t word() {
    if (left_.size() < 4) return static_cast<std::uint32_t>(fail());
    const auto value = load_le<std::uint32_t>(left_.data());
    left_ = left_.subspan(4);
    return value;
  }
  // How many things follow, of at least so many bytes each.
  std::size_t count(std::uint64_t max, std::size_t bytes_each) {
    const std::uint64_t value = number(max);
    return value <= left_.size() / bytes_each ? value : fail();
  }

  void refuse() { fail(); }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return left_.empty(); }

 private:
  std::uint64_t fail() {
    ok_ = false;
    left_ = {};
    return 0;
  }

  std::span<const std::byte> left_;
  bool ok_ = true;
};

void write_regions(std::span<const PackRegion> regions, NumberWriter& to) {
  to.number(regions.size());
  std::uint64_t end = 0;
  for (const PackRegion& region : regions) {
    to.difference(region.at, end);
    to.number(region.plain_bytes);
    to.number(region.plain_bytes - region.stored_bytes);
    to.word(region.crc32c);
    end = region.at + region.stored_bytes;
  }
}

std::vector<PackRegion> read_regions(NumberReader& from) {
  std::vector<PackRegion> regions(from.count(kPackRegionsMax, kRegionBytesMin));
  std::uint64_t end = 0;
  for (PackRegion& region : regions) {
    region.at = from.difference(end, kPackBytesMax);
    region.plain_bytes = from.number32(kPackRegionBytesMax);
    region.stored_bytes = region.plain_bytes - from.number32(region.plain_bytes);
    region.crc32c = from.word();
    end = region.at + region.stored_bytes;
  }
  return regions;
}

// The state that coding the pieces of all tracks has.
struct PieceState {
  Cursors cursors;
  std::uint32_t base_region = 0;  // of the last delta
};

void write_piece(const PackPiece& piece, std::uint64_t track_end, PieceState& state,
                 NumberWriter& to) {
  to.number(piece.at - track_end);
  const std::uint64_t cursor = state.cursors.number_of({piece.region, piece.offset});
  const bool is_delta = piece.kind == PackPiece::Kind::kDelta;
  to.number(cursor << 1 | (is_delta ? 1 : 0));
  if (cursor == Cursors::kCount) {
    to.number(piece.region);
    to.number(piece.offset);
  }
  to.number(piece.stored_bytes());
  state.cursors.advance(cursor, {piece.region, piece.offset + piece.stored_bytes()});
  if (!is_delta) return;
  to.difference(piece.base_region, state.base_region);
  to.number(piece.base_offset);
  state.base_region = piece.base_region;
}

PackPiece read_piece(std::uint64_t track_end, PieceState& state, NumberReader& from) {
  PackPiece piece;
  piece.at = static_cast<std::uint32_t>(track_end + from.number(kPackTrackBytesMax));
  const std::uint64_t tag = from.number(Cursors::kCount << 1 | 1);
  const std::uint64_t cursor = tag >> 1;
  if (cursor == Cursors::kCount) {
    piece.region = from.number32(kPackRegionsMax);
    piece.offset = from.number32(kPackRegionBytesMax);
  } else {
    piece.region = state.cursors.at(cursor).region;
    piece.offset = state.cursors.at(cursor).offset;
  }
  const bool is_delta = (tag & 1) != 0;
  const std::uint32_t stored = from.number32(is_delta ? UINT16_MAX : kPackRegionBytesMax);
  state.cursors.advance(cursor, {piece.region, piece.offset + stored});
  piece.bytes = is_delta ? kBlockBytes : stored;
  if (!is_delta) return piece;
  piece.kind = PackPiece::Kind::kDelta;
  piece.delta_bytes = static_cast<std::uint16_t>(stored);
  piece.base_region =
      static_cast<std::uint32_t>(from.difference(state.base_region, kPackRegionsMax));
  piece.base_offset = from.number32(kPackRegionBytesMax);
  state.base_region = piece.base_region;
  return piece;
}

void write_tracks(std::span<const PackTable::Track> tracks, NumberWriter& to) {
  to.number(tracks.size());
  PieceState state;
  for (const PackTable::Track& track : tracks) {
    to.number(track.bytes);
    to.number(track.pieces.size());
    std::uint64_t end = 0;
    for (const PackPiece& piece : track.pieces) {
      write_piece(piece, end, state, to);
      end = piece.end();
    }
  }
}

std::vector<PackTable::Track> read_tracks(NumberReader& from) {
  std::vector<PackTable::Track> tracks(from.count(kPackTracksMax, kTrackBytesMin));
  PieceState state;
  std::uint64_t pieces_left = kPackPiecesMax;
  for (PackTable::Track& track : tracks) {
    track.bytes = from.number(kPackTrackBytesMax);
    track.pieces.resize(from.count(pieces_left, kPieceBytesMin));
    pieces_left -= track.pieces.size();
    std::uint64_t end = 0;
    for (PackPiece& piece : track.pieces) {
      piece = read_piece(end, state, from);
      end = piece.end();
      if (end > track.bytes) from.refuse();  // before the next place could wrap
      if (!from.ok()) return {};
    }
  }
  return tracks;
}

Error corrupt(const std::string& what) {
  return {ErrorCode::kCorrupt, "the table of a pack is damaged: " + what};
}

// Nothing when the frame is not that of a whole table; otherwise the body's plain bytes.
std::optional<std::vector<std::byte>> unframed(std::span<const std::byte> bytes) {
  if (bytes.size() < kFrameBytes || load_le<std::uint64_t>(bytes.data()) != kMagic ||
      load_le<std::uint32_t>(bytes.data() + 8) != kVersion) {
    return std::nullopt;
  }
  const auto plain_bytes = load_le<std::uint32_t>(bytes.data() + 16);
  const auto stored_bytes = load_le<std::uint32_t>(bytes.data() + 20);
  const std::span<const std::byte> stored = bytes.subspan(kFrameBytes);
  if (plain_bytes > kPackTableBytesMax || stored_bytes != stored.size() ||
      stored_bytes > plain_bytes) {
    return std::nullopt;
  }
  std::array<std::byte, kFrameBytes> frame;
  std::ranges::copy(bytes.first(kFrameBytes), frame.begin());
  store_le(frame.data() + kCrcOffset, std::uint32_t{0});
  if (crc32c(stored, crc32c(frame)) != load_le<std::uint32_t>(bytes.data() + kCrcOffset)) {
    return std::nullopt;
  }
  if (stored_bytes == plain_bytes) return std::vector(stored.begin(), stored.end());
  std::vector<std::byte> body(plain_bytes);
  if (!PackDecompressor().decompress(stored, body)) return std::nullopt;
  return body;
}

}  // namespace

std::vector<std::byte> to_bytes(const PackTable& table) {
  NumberWriter body;
  write_regions(table.regions(), body);
  write_tracks(table.tracks(), body);
  const std::size_t plain_bytes = body.bytes.size();
  CHECK(plain_bytes <= kPackTableBytesMax);
  std::vector<std::byte> bytes(kFrameBytes + plain_bytes);
  const std::span<std::byte> to = std::span(bytes).subspan(kFrameBytes);
  std::size_t stored = PackCompressor(kLevel).compress(body.bytes, to.first(to.size() - 1));
  if (stored == 0) {
    std::ranges::copy(body.bytes, to.begin());
    stored = plain_bytes;
  }
  bytes.resize(kFrameBytes + stored);
  store_le(bytes.data(), kMagic);
  store_le(bytes.data() + 8, kVersion);
  store_le(bytes.data() + 16, static_cast<std::uint32_t>(plain_bytes));
  store_le(bytes.data() + 20, static_cast<std::uint32_t>(stored));
  store_le(bytes.data() + kCrcOffset, crc32c(bytes));
  return bytes;
}

Result<PackTable> PackTable::from_bytes(std::span<const std::byte> bytes) {
  const std::optional<std::vector<std::byte>> body = unframed(bytes);
  if (!body) return corrupt("its length, identity or checksum is wrong");
  NumberReader from(*body);
  std::vector<PackRegion> regions = read_regions(from);
  std::vector<Track> tracks = read_tracks(from);
  if (!from.ok() || !from.at_end()) return corrupt("its numbers do not fit together");
  const std::string fault = fault_of(tracks, regions);
  if (!fault.empty()) return corrupt(fault);
  return PackTable(std::move(tracks), std::move(regions));
}

}  // namespace mariner::logging
