#include "logging/pack_reader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "logging/pack_codec.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::logging {
namespace {

// What a thread needs to read, of one read at a time.
struct Tools {
  PackDecompressor decompressor;
  std::vector<std::byte> stored;
};

Tools& tools() {
  thread_local Tools tools;
  return tools;
}

Error corrupt(std::uint64_t pack_id, const std::string& what) {
  return {ErrorCode::kCorrupt, "pack " + std::to_string(pack_id) + ": " + what};
}

}  // namespace

PackReader::PackReader(std::uint64_t pack_id, std::shared_ptr<const PackTable> table,
                       PackBytes& bytes, RegionCache& cache)
    : pack_id_(pack_id), table_(std::move(table)), bytes_(bytes), cache_(cache) {
  CHECK(table_ != nullptr);
}

Result<void> PackReader::read(std::size_t track, std::uint64_t offset,
                              std::span<std::byte> to) const {
  if (track >= table_->tracks().size() || offset > table_->tracks()[track].bytes ||
      to.size() > table_->tracks()[track].bytes - offset) {
    return Error{ErrorCode::kInvalidArgument, "pack " + std::to_string(pack_id_) + ": " +
                                                  std::to_string(to.size()) + " bytes from " +
                                                  std::to_string(offset) + " of track " +
                                                  std::to_string(track) + " are not within it"};
  }
  if (to.empty()) return {};
  const std::uint64_t end = offset + to.size();
  std::uint64_t at = offset;
  for (const PackPiece& piece : table_->pieces_from(track, offset)) {
    if (piece.at >= end) break;
    const std::uint64_t from = std::max<std::uint64_t>(piece.at, at);
    const std::uint64_t until = std::min(piece.end(), end);
    std::memset(to.data() + (at - offset), 0, from - at);
    const Result<void> read = read_piece(piece, static_cast<std::uint32_t>(from - piece.at),
                                         to.subspan(from - offset, until - from));
    if (!read) return read;
    at = until;
  }
  std::memset(to.data() + (at - offset), 0, end - at);
  return {};
}

// Of the piece, the bytes from `from` on.
Result<void> PackReader::read_piece(const PackPiece& piece, std::uint32_t from,
                                    std::span<std::byte> to) const {
  const Result<RegionBytes> own = region(piece.region);
  if (!own) return own.error();
  if (piece.kind == PackPiece::Kind::kPlain) {
    std::memcpy(to.data(), own->bytes().data() + piece.offset + from, to.size());
    return {};
  }
  const Result<RegionBytes> base_region = region(piece.base_region);
  if (!base_region) return base_region.error();
  const auto base = base_region->bytes().subspan(piece.base_offset, kBlockBytes);
  const auto delta = own->bytes().subspan(piece.offset, piece.delta_bytes);
  std::array<std::byte, kBlockBytes> block;
  const std::span<std::byte> made = to.size() == kBlockBytes ? to : block;
  if (!tools().decompressor.apply(base, delta, made)) {
    return corrupt(pack_id_, "the delta at byte " + std::to_string(piece.offset) + " of region " +
                                 std::to_string(piece.region) + " makes no block");
  }
  if (made.data() != to.data()) std::memcpy(to.data(), block.data() + from, to.size());
  return {};
}

Result<RegionBytes> PackReader::region(std::uint32_t number) const {
  if (const RegionBytes cached = cache_.find(pack_id_, number)) return cached;
  const PackRegion& at = table_->regions()[number];
  RegionBytes region = RegionBytes::allocate(at.plain_bytes);
  const bool is_compressed = at.stored_bytes != at.plain_bytes;
  std::vector<std::byte>& buffer = tools().stored;
  if (is_compressed && buffer.size() < at.stored_bytes) buffer.resize(at.stored_bytes);
  const std::span<std::byte> stored =
      is_compressed ? std::span(buffer).first(at.stored_bytes) : region.unshared();
  if (const Result<void> read = bytes_.read(at.at, stored); !read) return read.error();
  if (crc32c(stored) != at.crc32c) {
    return corrupt(pack_id_, "region " + std::to_string(number) + " at byte " +
                                 std::to_string(at.at) + " does not have its checksum");
  }
  if (is_compressed && !tools().decompressor.decompress(stored, region.unshared())) {
    return corrupt(pack_id_, "region " + std::to_string(number) + " at byte " +
                                 std::to_string(at.at) + " does not decompress");
  }
  cache_.insert(pack_id_, number, region);
  return region;
}

}  // namespace mariner::logging
