#include "logging/superblock_store.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "logging/slot_store.h"
#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/payload.h"

namespace mariner::logging {
namespace {

std::span<std::byte, kBlockBytes> as_block(Payload& payload) {
  return std::span<std::byte, kBlockBytes>(payload.data(), kBlockBytes);
}

Error misshapen(std::string what) { return {ErrorCode::kInvalidArgument, std::move(what)}; }

// The tracks of a disk that does not rotate, or its slots: as many as fit behind the reserved area.
void fill_with_tracks(Superblock& superblock, std::uint64_t size, bool slots) {
  std::uint64_t places = size / superblock.track_bytes();
  do {  // the list takes room from the tracks
    superblock.track_count = places;
    if (slots) {
      superblock.slot_count = places;
      superblock.track_count =
          std::min(places * kTracksPerSlot, kLogDiskBytesMax / superblock.track_bytes());
    }
    superblock.list_blocks = list_blocks_for(superblock.track_count);
    superblock.first_sector =
        superblock.reserved_blocks() * superblock.batch_format().sectors_per_block();
  } while (places > 0 && superblock.disk_bytes() > size && places-- > 0);
}

}  // namespace

Result<Superblock> format_log_disk(Disk& disk, const LogShape& shape) {
  if (shape.sector_bytes != 512 && shape.sector_bytes != kBlockBytes) {
    return misshapen("a sector must be of 512 or 4096 bytes; " +
                     std::to_string(shape.sector_bytes) + " were asked for");
  }
  if (shape.slots && (shape.rotation.count() > 0 || shape.sector_bytes != kBlockBytes)) {
    return misshapen("tracks stand in slots only on a disk that does not rotate, with sectors of " +
                     std::to_string(kBlockBytes) + " bytes");
  }
  if (shape.rotation > kRotationMax) {
    return misshapen("a revolution must take at most " + std::to_string(kRotationMax.count()) +
                     " ns; " + std::to_string(shape.rotation.count()) + " were asked for");
  }
  const bool rotates = shape.rotation.count() > 0;
  const std::uint64_t track_bytes_min = rotates ? kRotatingTrackBytesMin : kTrackBytesMin;
  if (shape.track_bytes < track_bytes_min || shape.track_bytes > kTrackBytesMax ||
      shape.track_bytes % (rotates ? shape.sector_bytes : kBlockBytes) != 0) {
    return misshapen(rotates ? "a track of a rotating disk must be between 64 KiB and 1 GiB and "
                               "whole sectors; " +
                                   std::to_string(shape.track_bytes) + " bytes were asked for"
                             : "a track must be between 8 MiB and 1 GiB and whole blocks; " +
                                   std::to_string(shape.track_bytes) + " bytes were asked for");
  }
  const std::uint64_t size = std::min(disk.size_bytes(), kLogDiskBytesMax);
  Superblock superblock;
  superblock.log = shape.log;
  superblock.disk = shape.disk;
  superblock.sector_bytes = shape.sector_bytes;
  superblock.track_sectors = static_cast<std::uint32_t>(shape.track_bytes / shape.sector_bytes);
  superblock.rotation = shape.rotation;
  superblock.created_ns = shape.created_ns;
  if (rotates) {
    if (shape.first_sector > size / shape.sector_bytes || shape.tracks > size / shape.track_bytes) {
      return misshapen(std::to_string(shape.tracks) + " tracks from sector " +
                       std::to_string(shape.first_sector) + " on do not fit into the disk's " +
                       std::to_string(size) + " bytes");
    }
    superblock.track_count = shape.tracks;
    superblock.list_blocks = list_blocks_for(shape.tracks);
    superblock.first_sector = shape.first_sector;
    const std::uint64_t reserved = reserved_blocks_for(superblock.list_blocks) * kBlockBytes;
    if (shape.first_sector * shape.sector_bytes < reserved ||
        superblock.end_sector() * shape.sector_bytes > size) {
      return misshapen("the tracks must lie between byte " + std::to_string(reserved) +
                       " of the disk and its end at " + std::to_string(size) +
                       "; they would be at " +
                       std::to_string(shape.first_sector * shape.sector_bytes) + " to " +
                       std::to_string(superblock.end_sector() * shape.sector_bytes));
    }
  } else {
    fill_with_tracks(superblock, size, shape.slots);
  }
  if (superblock.place_count() < 4) {
    return misshapen("a log disk needs room for at least 4 tracks of " +
                     std::to_string(shape.track_bytes) + " bytes; it has " +
                     std::to_string(disk.size_bytes()) + " bytes");
  }
  if (superblock.has_slots()) {
    if (Result<void> r = write_slot_map(disk, superblock, SlotMap(superblock), 1); !r) {
      return r.error();
    }
  }
  TrackList tracks(superblock);
  if (Result<void> r = replace_list(disk, shape.log, tracks.all_pages()); !r) return r.error();
  for (std::uint32_t copy = 0; copy < kSuperblockCopies; ++copy) {
    if (Result<void> r = update_superblock(disk, superblock); !r) return r.error();
  }
  return superblock;
}

Result<void> write_list(Disk& disk, const LogId& log, std::span<const TrackList::Write> writes) {
  Payload block = Payload::allocate(kBlockBytes);
  for (const TrackList::Write& write : writes) {
    if (write.page.tracks.empty()) {
      std::memset(block.data(), 0, kBlockBytes);
    } else {
      pack_list_page(write.page, log, as_block(block));
    }
    const ConstBytes part = block.bytes();
    // The last write makes all durable that went before it.
    const bool last = &write == &writes.back();
    if (Result<void> r = disk.write(write.block * kBlockBytes, {&part, 1},
                                    last ? Durability::kDurable : Durability::kVolatile);
        !r) {
      return r;
    }
  }
  return disk.flush();
}

// What is written over may be the only sign that the newest page was lost, while an older one still
// stands that would pass for it. So the notice comes before everything, and goes after it.
Result<void> replace_list(Disk& disk, const LogId& log, std::span<const TrackList::Write> writes) {
  CHECK(!writes.empty() && writes.back().page.tracks.empty());
  Payload block = Payload::allocate(kBlockBytes);
  pack_rewrite_notice(log, as_block(block));
  const ConstBytes part = block.bytes();
  if (Result<void> r =
          disk.write(writes.back().block * kBlockBytes, {&part, 1}, Durability::kDurable);
      !r) {
    return r;
  }
  if (Result<void> r = write_list(disk, log, writes.first(writes.size() - 1)); !r) return r;
  return write_list(disk, log, writes.last(1));
}

Result<void> update_superblock(Disk& disk, Superblock& superblock) {
  Superblock next = superblock;
  ++next.generation;
  Payload block = Payload::allocate(kBlockBytes);
  pack_superblock(next, as_block(block));
  const ConstBytes part = block.bytes();
  const std::uint64_t copy = next.generation % kSuperblockCopies;
  // After a failure the same copy is written again: the other may be the only whole one.
  if (Result<void> r =
          disk.write(copy * kSuperblockStride * kBlockBytes, {&part, 1}, Durability::kDurable);
      !r) {
    return r;
  }
  superblock = next;
  return {};
}

Result<Superblock> read_superblock(Disk& disk) {
  std::optional<Superblock> best;
  bool all_zeros = true;
  std::optional<Error> unreadable;
  Payload block = Payload::allocate(kBlockBytes);
  for (std::uint32_t copy = 0; copy < kSuperblockCopies; ++copy) {
    if (Result<void> r = disk.read(copy * kSuperblockStride * kBlockBytes, block.bytes()); !r) {
      unreadable = r.error();
      continue;
    }
    all_zeros = all_zeros && all_zero(block.bytes());
    const auto found = unpack_superblock(as_block(block));
    if (found && (!best || found->generation > best->generation)) best = found;
  }
  if (!best) {
    if (unreadable) return *std::move(unreadable);
    if (all_zeros) return Error{ErrorCode::kNotFound, "the disk holds no log"};
    return Error{
        ErrorCode::kCorrupt,
        "expected a log, found something else: it is none, or both copies of its superblock "
        "are damaged"};
  }
  if (best->disk_bytes() > disk.size_bytes()) {
    return Error{ErrorCode::kCorrupt, "the log disk has " + std::to_string(disk.size_bytes()) +
                                          " bytes, its superblock says at least " +
                                          std::to_string(best->disk_bytes())};
  }
  return *best;
}

}  // namespace mariner::logging
