#include "logging/track.h"

#include <cstring>

#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::logging {
namespace {

constexpr std::uint64_t kSuperMagic = 0x474f4c4e4952414d;  // "MARINLOG"
constexpr std::uint64_t kTrackMagic = 0x4b4152544e52414d;  // "MARNTRAK"
constexpr std::uint32_t kVersion = 1;

// Both structures: magic at 0, version at 8, CRC32C of the whole block (itself as zero) at 12.
constexpr std::size_t kCrcAt = 12;

std::uint32_t block_crc(std::span<const std::byte, kBlockBytes> block) {
  static constexpr std::byte kZero[4]{};
  std::uint32_t crc = crc32c(block.first(kCrcAt));
  crc = crc32c(kZero, crc);
  return crc32c(block.subspan(kCrcAt + 4), crc);
}

bool has_frame(std::span<const std::byte, kBlockBytes> block, std::uint64_t magic) {
  return load_le<std::uint64_t>(block.data()) == magic &&
         load_le<std::uint32_t>(block.data() + 8) == kVersion &&
         load_le<std::uint32_t>(block.data() + kCrcAt) == block_crc(block);
}

void frame(std::span<std::byte, kBlockBytes> block, std::uint64_t magic) {
  store_le(block.data(), magic);
  store_le(block.data() + 8, kVersion);
  store_le(block.data() + kCrcAt, std::uint32_t{0});
  store_le(block.data() + kCrcAt, block_crc(block));
}

}  // namespace

void pack_superblock(const Superblock& s, std::span<std::byte, kBlockBytes> to) {
  std::memset(to.data(), 0, to.size());
  std::byte* p = to.data();
  std::memcpy(p + 16, s.log.data(), s.log.size());
  store_le(p + 32, std::uint32_t{s.disk});
  store_le(p + 36, s.track_blocks);
  store_le(p + 40, s.track_count);
  store_le(p + 48, s.created_ns);
  store_le(p + 56, s.generation);
  store_le(p + 64, s.initialised_tracks);
  frame(to, kSuperMagic);
}

std::optional<Superblock> unpack_superblock(std::span<const std::byte, kBlockBytes> from) {
  if (!has_frame(from, kSuperMagic)) return std::nullopt;
  const std::byte* p = from.data();
  Superblock s;
  std::memcpy(s.log.data(), p + 16, s.log.size());
  const auto disk = load_le<std::uint32_t>(p + 32);
  s.track_blocks = load_le<std::uint32_t>(p + 36);
  s.track_count = load_le<std::uint64_t>(p + 40);
  s.created_ns = load_le<std::uint64_t>(p + 48);
  s.generation = load_le<std::uint64_t>(p + 56);
  s.initialised_tracks = load_le<std::uint64_t>(p + 64);
  if (disk > UINT8_MAX || s.track_blocks < kTrackBytesMin / kBlockBytes ||
      s.track_blocks > kTrackBytesMax / kBlockBytes || s.track_count == 0 ||
      s.track_count > kLogDiskBytesMax / kBlockBytes / s.track_blocks) {
    return std::nullopt;
  }
  s.disk = static_cast<std::uint8_t>(disk);
  return s;
}

void pack_track_header(const TrackHeader& h, const LogId& log,
                       std::span<std::byte, kBlockBytes> to) {
  std::memset(to.data(), 0, to.size());
  std::byte* p = to.data();
  std::memcpy(p + 16, log.data(), log.size());
  store_le(p + 32, h.track);
  store_le(p + 40, h.allocation);
  store_le(p + 48, h.first_batch);
  frame(to, kTrackMagic);
}

std::optional<TrackHeader> unpack_track_header(std::span<const std::byte, kBlockBytes> from,
                                               const LogId& log, std::uint64_t track) {
  if (!has_frame(from, kTrackMagic)) return std::nullopt;
  const std::byte* p = from.data();
  if (std::memcmp(p + 16, log.data(), log.size()) != 0) return std::nullopt;
  TrackHeader h;
  h.track = load_le<std::uint64_t>(p + 32);
  h.allocation = load_le<std::uint64_t>(p + 40);
  h.first_batch = load_le<std::uint64_t>(p + 48);
  if (h.track != track || h.allocation == 0) return std::nullopt;
  return h;
}

}  // namespace mariner::logging
