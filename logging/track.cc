#include "logging/track.h"

#include <cstring>

#include "logging/block_frame.h"
#include "proto/bytes.h"

namespace mariner::logging {
namespace {

constexpr BlockKind kSuperblock{0x474f4c4e4952414d, 3};  // "MARINLOG"
constexpr BlockKind kSlottedSuperblock{kSuperblock.magic, 4};
constexpr BlockKind kTrackHeader{0x4b4152544e52414d, 1};  // "MARNTRAK"

}  // namespace

void pack_superblock(const Superblock& s, std::span<std::byte, kBlockBytes> to) {
  std::memset(to.data(), 0, to.size());
  std::byte* p = to.data();
  std::memcpy(p + 16, s.log.data(), s.log.size());
  store_le(p + 32, std::uint32_t{s.disk});
  store_le(p + 36, s.track_sectors);
  store_le(p + 40, s.track_count);
  store_le(p + 48, s.created_ns);
  store_le(p + 56, s.generation);
  store_le(p + 64, s.initialised_tracks);
  store_le(p + 72, s.list_blocks);
  store_le(p + 76, s.sector_bytes);
  store_le(p + 80, s.first_sector);
  store_le(p + 88, static_cast<std::uint64_t>(s.rotation.count()));
  store_le(p + 96, s.slot_count);
  seal_block(to, s.has_slots() ? kSlottedSuperblock : kSuperblock);
}

std::optional<Superblock> unpack_superblock(std::span<const std::byte, kBlockBytes> from) {
  const bool slotted = is_sealed(from, kSlottedSuperblock);
  if (!slotted && !is_sealed(from, kSuperblock)) return std::nullopt;
  const std::byte* p = from.data();
  Superblock s;
  std::memcpy(s.log.data(), p + 16, s.log.size());
  const auto disk = load_le<std::uint32_t>(p + 32);
  s.track_sectors = load_le<std::uint32_t>(p + 36);
  s.track_count = load_le<std::uint64_t>(p + 40);
  s.created_ns = load_le<std::uint64_t>(p + 48);
  s.generation = load_le<std::uint64_t>(p + 56);
  s.initialised_tracks = load_le<std::uint64_t>(p + 64);
  s.list_blocks = load_le<std::uint32_t>(p + 72);
  s.sector_bytes = load_le<std::uint32_t>(p + 76);
  s.first_sector = load_le<std::uint64_t>(p + 80);
  const auto rotation_ns = load_le<std::uint64_t>(p + 88);
  if (slotted) {
    s.slot_count = load_le<std::uint64_t>(p + 96);
    if (s.slot_count == 0 || s.slot_count > s.track_count || rotation_ns != 0 ||
        s.sector_bytes != kBlockBytes) {
      return std::nullopt;
    }
  }
  if (disk > UINT8_MAX || (s.sector_bytes != 512 && s.sector_bytes != kBlockBytes) ||
      rotation_ns > static_cast<std::uint64_t>(kRotationMax.count())) {
    return std::nullopt;
  }
  const std::uint32_t track_bytes_min = rotation_ns == 0 ? kTrackBytesMin : kRotatingTrackBytesMin;
  if (s.track_sectors < track_bytes_min / s.sector_bytes ||
      s.track_sectors > kTrackBytesMax / s.sector_bytes || s.track_count == 0 ||
      s.track_count > kLogDiskBytesMax / s.sector_bytes / s.track_sectors ||
      s.list_blocks != list_blocks_for(s.track_count) ||
      s.first_sector < s.reserved_blocks() * (kBlockBytes / s.sector_bytes) ||
      s.first_sector > kLogDiskBytesMax / s.sector_bytes) {
    return std::nullopt;
  }
  s.rotation = std::chrono::nanoseconds(rotation_ns);
  s.disk = static_cast<std::uint8_t>(disk);
  return s;
}

void pack_track_header(const TrackHeader& h, const LogId& log, std::span<std::byte> to) {
  std::memset(to.data(), 0, to.size());
  std::byte* p = to.data();
  std::memcpy(p + 16, log.data(), log.size());
  store_le(p + 32, h.track);
  store_le(p + 40, h.allocation);
  store_le(p + 48, h.first_batch);
  seal_block(to, kTrackHeader);
}

std::optional<TrackHeader> unpack_track_header(std::span<const std::byte> from, const LogId& log,
                                               std::uint64_t track) {
  if (!is_sealed(from, kTrackHeader)) return std::nullopt;
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
