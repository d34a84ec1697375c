#include "logging/pack_verification.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "logging/pack_window.h"
#include "proto/bytes.h"
#include "proto/payload.h"

namespace mariner::logging {
namespace {

constexpr std::size_t kPieceBytes = 256u << 10;

Error differs(std::size_t track, std::uint64_t offset) {
  return {ErrorCode::kCorrupt, "track " + std::to_string(track) +
                                   " of a pack does not read back as it was at byte " +
                                   std::to_string(offset)};
}

Result<void> verify_piece(std::size_t track, std::uint64_t at, std::span<const std::byte> expected,
                          std::span<const std::byte> found) {
  if (std::memcmp(expected.data(), found.data(), expected.size()) == 0) return {};
  const auto difference = std::ranges::mismatch(expected, found).in1;
  return differs(track, at + static_cast<std::uint64_t>(difference - expected.begin()));
}

}  // namespace

Result<void> verify_pack(std::span<const PackTrack> tracks, PackSource& source,
                         const PackReader& reader, const PackPause& pause) {
  if (const Result<void> checked = check_pack_tracks(tracks); !checked) return checked.error();
  if (reader.table().tracks().size() != tracks.size()) {
    return Error{ErrorCode::kCorrupt, "a pack has " +
                                          std::to_string(reader.table().tracks().size()) +
                                          " tracks instead of " + std::to_string(tracks.size())};
  }
  PackPace pace(pause);
  PackWindow window(tracks, source, pace);
  Payload found = Payload::allocate(kPieceBytes);
  const Payload zeros = Payload::zeroed(kPieceBytes);
  for (std::size_t track = 0; track < tracks.size(); ++track) {
    if (reader.table().tracks()[track].bytes != tracks[track].bytes) {
      return Error{ErrorCode::kCorrupt,
                   "track " + std::to_string(track) + " of a pack does not have its length"};
    }
    std::uint64_t at = 0;
    while (at < tracks[track].bytes) {
      const bool is_used = at < tracks[track].used;
      const std::uint64_t end = is_used ? tracks[track].used : tracks[track].bytes;
      const std::size_t bytes = std::min<std::uint64_t>(kPieceBytes, end - at);
      const std::span<std::byte> to = found.bytes().first(bytes);
      if (const Result<void> read = reader.read(track, at, to); !read) return read.error();
      std::span<const std::byte> expected = zeros.bytes().first(bytes);
      if (is_used) {
        const auto plain = window.at(track, at, bytes);
        if (!plain) return plain.error();
        expected = *plain;
      }
      const Result<void> verified = verify_piece(track, at, expected, to);
      if (!verified) return verified.error();
      at += bytes;
    }
  }
  return {};
}

Result<void> verify_equal(std::span<const PackTrack> tracks, PackSource& source,
                          const PackReader& reader, std::span<const TakenAsEqual> taken_as_equal,
                          const PackPause& pause) {
  PackPace pace(pause);
  PackWindow window(tracks, source, pace);
  Payload found = Payload::allocate(kPieceBytes);
  for (const TakenAsEqual& taken : taken_as_equal) {
    std::uint64_t at = taken.at;
    while (at < std::uint64_t{taken.at} + taken.bytes) {
      const std::size_t bytes =
          std::min<std::uint64_t>(kPieceBytes, std::uint64_t{taken.at} + taken.bytes - at);
      const std::span<std::byte> to = found.bytes().first(bytes);
      if (const Result<void> read = reader.read(taken.track, at, to); !read) return read.error();
      const auto plain = window.at(taken.track, at, bytes);
      if (!plain) return plain.error();
      const Result<void> verified = verify_piece(taken.track, at, *plain, to);
      if (!verified) return verified.error();
      at += bytes;
    }
  }
  return {};
}

}  // namespace mariner::logging
