// Superblock and tracks of a log disk. FORMAT.md sections 1 and 2.
//
// A log disk is a file or block device: a reserved area with two copies of the superblock and the
// allocation list (track_list.h), then tracks of equal length, or slots in which they stand
// (slot_map.h). On a disk that does not rotate the
// first sector of a track is its header; batches follow it without gaps up to the track's end or to
// where the next batch did not fit. On one that rotates a batch goes where the head is about to be,
// and a track has no header of its own.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "logging/batch.h"
#include "logging/geometry.h"
#include "proto/units.h"

namespace mariner::logging {

// The reserved area of a log of up to 115,500 tracks; a larger one takes more.
inline constexpr std::uint64_t kReservedBytes = 1u << 20;
inline constexpr std::uint64_t kReservedBlocks = kReservedBytes / kBlockBytes;
inline constexpr std::uint32_t kSuperblockCopies = 2;
// Apart, so that one bad spot of a disk does not take both.
inline constexpr std::uint64_t kSuperblockStride = 8;
inline constexpr std::uint64_t kListFirstBlock = 16;
// The last blocks in front of the first track: no structure stands there, and they may be written
// with anything at any time. A log whose list leaves less has none.
inline constexpr std::uint64_t kScratchBlocks = 64;
inline constexpr std::uint32_t kTrackBytesMin = 8u << 20;
inline constexpr std::uint32_t kRotatingTrackBytesMin = 64u << 10;
inline constexpr std::uint32_t kTrackBytesMax = 1u << 30;
inline constexpr std::chrono::nanoseconds kRotationMax = std::chrono::seconds(1);
inline constexpr std::uint64_t kLogDiskBytesMax = std::uint64_t{1} << 52;  // of all tracks

// Blocks of the allocation list of so many tracks.
[[nodiscard]] constexpr std::uint32_t list_blocks_for(std::uint64_t track_count) {
  return static_cast<std::uint32_t>((track_count + 499) / 500 + 8);
}
// On a disk with slots there are so many times more tracks than slots, as far as they fit into
// kLogDiskBytesMax: so much can be kept once it is packed.
inline constexpr std::uint64_t kTracksPerSlot = 8;
// Blocks of one copy of the slot map.
[[nodiscard]] constexpr std::uint32_t map_blocks_for(std::uint64_t slot_count) {
  return static_cast<std::uint32_t>((slot_count * 192 + kBlockBytes - 1) / kBlockBytes + 1);
}
// Blocks in front of the first track; `list_blocks`: of all that stands behind the superblocks.
[[nodiscard]] constexpr std::uint64_t reserved_blocks_for(std::uint64_t list_blocks) {
  return (kListFirstBlock + list_blocks + kReservedBlocks - 1) / kReservedBlocks * kReservedBlocks;
}

struct Superblock {
  LogId log{};                               // identity of the log that the disk belongs to
  std::uint8_t disk = 0;                     // number of this disk in the log's array
  std::uint32_t sector_bytes = kBlockBytes;  // 512 or 4096: the unit of all places in the log
  std::uint32_t track_sectors = 0;
  std::uint64_t track_count = 0;
  std::uint64_t first_sector = 0;        // of track 0
  std::chrono::nanoseconds rotation{0};  // of one revolution; 0: the disk does not rotate
  std::uint64_t created_ns = 0;
  std::uint64_t generation = 0;          // the copy with the higher one is the newer
  std::uint64_t initialised_tracks = 0;  // tracks [0, n) have been written once since creation
  std::uint32_t list_blocks = 0;         // of the allocation list
  // Places of the length of a track that the disk has; 0: each track has a place of its own.
  std::uint64_t slot_count = 0;

  friend bool operator==(const Superblock&, const Superblock&) = default;

  [[nodiscard]] std::uint64_t track_first_sector(std::uint64_t track) const {
    return first_sector + track * track_sectors;
  }
  [[nodiscard]] SectorRange track(std::uint64_t number) const {
    return {track_first_sector(number), track_sectors};
  }
  [[nodiscard]] std::uint64_t end_sector() const { return track_first_sector(track_count); }
  [[nodiscard]] bool has_slots() const { return slot_count > 0; }
  // How many tracks can be filled at once, and how long the disk must be.
  [[nodiscard]] std::uint64_t place_count() const { return has_slots() ? slot_count : track_count; }
  [[nodiscard]] std::uint64_t disk_bytes() const {
    return track_first_sector(place_count()) * sector_bytes;
  }
  // Of copy 0 and 1 of the slot map. Requires has_slots().
  [[nodiscard]] std::uint64_t map_first_block(std::uint32_t copy) const {
    return kListFirstBlock + list_blocks + std::uint64_t{copy} * map_blocks_for(slot_count);
  }
  // Of the structures behind the superblocks.
  [[nodiscard]] std::uint32_t structure_blocks() const {
    return list_blocks + (has_slots() ? 2 * map_blocks_for(slot_count) : 0);
  }
  // In front of the first track. (With slots there is always a scratch.)
  [[nodiscard]] std::uint64_t reserved_blocks() const {
    return reserved_blocks_for(structure_blocks() + (has_slots() ? kScratchBlocks : 0));
  }
  [[nodiscard]] std::uint64_t track_bytes() const {
    return std::uint64_t{track_sectors} * sector_bytes;
  }
  [[nodiscard]] bool rotates() const { return rotation.count() > 0; }
  [[nodiscard]] BatchFormat batch_format() const { return {log, sector_bytes}; }
  [[nodiscard]] std::optional<ByteRange> scratch() const {
    const std::uint64_t end = first_sector * sector_bytes;
    const std::uint64_t list_end = (kListFirstBlock + structure_blocks()) * kBlockBytes;
    if (list_end + kScratchBlocks * kBlockBytes > end) return std::nullopt;
    return ByteRange{end - kScratchBlocks * kBlockBytes, kScratchBlocks * kBlockBytes};
  }
};

void pack_superblock(const Superblock& superblock, std::span<std::byte, kBlockBytes> to);
// Nothing if magic, version, CRC or bounds are wrong.
std::optional<Superblock> unpack_superblock(std::span<const std::byte, kBlockBytes> from);

struct TrackHeader {
  std::uint64_t track = 0;        // its own number
  std::uint64_t allocation = 0;   // counts up by one with each track taken, from 1
  std::uint64_t first_batch = 0;  // number of the first batch in it
  friend bool operator==(const TrackHeader&, const TrackHeader&) = default;
};

// Fills one sector.
void pack_track_header(const TrackHeader& header, const LogId& log, std::span<std::byte> to);
// Nothing if it is not the header of `track` of this log. `from` is one sector.
std::optional<TrackHeader> unpack_track_header(std::span<const std::byte> from, const LogId& log,
                                               std::uint64_t track);

}  // namespace mariner::logging
