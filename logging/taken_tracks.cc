#include "logging/taken_tracks.h"

#include <algorithm>
#include <utility>

#include "logging/damaged_read.h"
#include "logging/superblock_store.h"
#include "logging/track_scan.h"
#include "proto/bytes.h"
#include "proto/payload.h"

namespace mariner::logging {
namespace {

// The header of a track that has none, from its batches; nothing if no batch is evidence that it
// was taken. A header is written with its track's first batch: `may_be_torn` says that this may
// have been the log's last write, and then only a batch behind it is evidence.
Result<std::optional<TrackHeader>> lost_header(Disk& disk, const Superblock& superblock,
                                               std::uint64_t track, std::uint64_t allocation,
                                               bool may_be_torn) {
  using Header = std::optional<TrackHeader>;
  if (superblock.rotates()) return Header{};  // it has been looked through already
  const std::uint64_t first = superblock.track_first_sector(track) + 1;
  if (may_be_torn) {
    Payload start = Payload::allocate(2 * std::size_t{superblock.sector_bytes});
    if (Result<void> r =
            read_with_damage(disk, (first - 1) * superblock.sector_bytes, start.bytes());
        !r) {
      return r.error();
    }
    if (all_zero(start.bytes())) return Header{};  // never written
  }
  TrackHeader header{.track = track, .allocation = allocation};
  const auto found = find_batch(disk, superblock, header, first, 0);
  if (!found) return found.error();
  if (!*found) return Header{};
  const BatchHeader& batch = **found;
  header.first_batch = batch.track_first_batch;
  if (batch.sector == first && may_be_torn) {
    const auto second = find_batch(disk, superblock, header, first + 1, batch.batch_number);
    if (!second) return second.error();
    if (!*second) return Header{};
  }
  return Header{header};
}

// Of a rotating disk: what the batches of its youngest use say.
Result<std::optional<TrackHeader>> scattered_header(Disk& disk, const Superblock& superblock,
                                                    std::uint64_t track) {
  const SectorRange sectors = superblock.track(track);
  std::optional<TrackHeader> header;
  for (std::uint64_t at = sectors.first; at < sectors.end();) {
    const auto found = find_batch(disk, superblock, {.track = track}, at, 0);
    if (!found) return found.error();
    if (!*found) break;
    const BatchHeader& batch = **found;
    if (!header || batch.allocation > header->allocation) {
      header = TrackHeader{track, batch.allocation, batch.track_first_batch};
    }
    // Of a batch of an earlier use only the header area is known to stand: a newer one may have
    // been put over its payload.
    at = batch.sector + batch.header_sectors;
  }
  return header;
}

Result<std::optional<TrackHeader>> read_header(Disk& disk, const Superblock& superblock,
                                               std::uint64_t track) {
  if (superblock.rotates()) return scattered_header(disk, superblock, track);
  Payload sector = Payload::allocate(superblock.sector_bytes);
  if (Result<void> r = read_with_damage(
          disk, superblock.track_first_sector(track) * superblock.sector_bytes, sector.bytes());
      !r) {
    return r.error();
  }
  return unpack_track_header(sector.bytes(), superblock.log, track);
}

// The header of the track of `allocation` if it is there and of that allocation.
Result<std::optional<TrackHeader>> header_of(Disk& disk, const Superblock& superblock,
                                             const TrackList& tracks, std::uint64_t allocation) {
  const std::optional<std::uint64_t> track = tracks.track(allocation);
  if (!track) return std::optional<TrackHeader>{};
  auto header = read_header(disk, superblock, *track);
  if (header && *header && (*header)->allocation != allocation) header->reset();
  return header;
}

// Whether it has been taken, as far as its header says, or the pack that it is in: only complete
// tracks are packed. A pack that is damaged gives no headers, and may hold more tracks in a row
// than the search looks ahead.
Result<bool> seems_taken(Disk& disk, const Superblock& superblock, const TrackList& tracks,
                         std::uint64_t allocation) {
  const std::optional<std::uint64_t> track = tracks.track(allocation);
  if (!track) return false;
  if (superblock.rotates()) {
    const auto header = header_of(disk, superblock, tracks, allocation);
    if (!header) return header.error();
    return header->has_value();
  }
  Payload sector = Payload::allocate(superblock.sector_bytes);
  if (Result<void> r = disk.read(superblock.track_first_sector(*track) * superblock.sector_bytes,
                                 sector.bytes());
      !r) {
    if (r.error().code == ErrorCode::kCorrupt) return true;
    return r.error();
  }
  const auto header = unpack_track_header(sector.bytes(), superblock.log, *track);
  return header && header->allocation == allocation;
}

}  // namespace

Result<TrackList> read_track_list(Disk& disk, const Superblock& superblock) {
  Payload blocks = Payload::allocate(std::size_t{superblock.list_blocks} * kBlockBytes);
  if (Result<void> r = disk.read(kListFirstBlock * kBlockBytes, blocks.bytes()); !r) {
    return r.error();
  }
  std::vector<std::optional<ListPage>> slots;
  bool damaged = false;
  bool was_rewritten = false;  // and that came to no end
  for (std::uint32_t slot = 0; slot < superblock.list_blocks; ++slot) {
    const std::span<const std::byte, kBlockBytes> block(
        blocks.data() + std::size_t{slot} * kBlockBytes, kBlockBytes);
    slots.push_back(unpack_list_page(block, superblock.log));
    damaged = damaged || (!slots.back() && !all_zero(block));
    was_rewritten = was_rewritten || is_rewrite_notice(block, superblock.log);
  }
  Result<TrackList> list = TrackList::from_pages(superblock, slots);
  if (list && !damaged) return list;
  // The second copy of the list are the tracks themselves.
  std::vector<TrackHeader> headers;
  for (std::uint64_t track = 0; track < superblock.track_count; ++track) {
    auto header = read_header(disk, superblock, track);
    if (!header) return header.error();
    if (*header) headers.push_back(**header);
  }
  // What is not whole may be the remains of a write that was cut off: then no track was taken by
  // what it said. Or the newest page, in whose place an older one must not pass for it.
  if (list && !was_rewritten && std::ranges::all_of(headers, [&](const TrackHeader& header) {
        return header.allocation < list->end();
      })) {
    return list;
  }
  TrackList rebuilt = TrackList::from_headers(superblock, headers, slots);
  if (Result<void> r = replace_list(disk, superblock.log, rebuilt.all_pages()); !r) {
    return r.error();
  }
  return rebuilt;
}

Result<TakenEnd> find_taken_end(Disk& disk, const Superblock& superblock, const TrackList& tracks) {
  TakenEnd found{tracks.oldest(), 0};
  std::uint64_t high = tracks.end();
  while (found.end < high) {
    const std::uint64_t middle = found.end + (high - found.end) / 2;
    bool taken = false;
    // A failed write may have left a track unused, or damage has hit its header: look behind it. At
    // `high` and behind it, as far as that goes, none was found already.
    for (std::uint64_t a = middle; a <= middle + kLookAheadTracks && a < high && !taken; ++a) {
      ++found.track_reads;
      const Result<bool> seems = seems_taken(disk, superblock, tracks, a);
      if (!seems) return seems.error();
      taken = *seems;
    }
    if (taken) {
      found.end = middle + 1;
    } else {
      high = middle;
    }
  }
  return found;
}

Result<std::vector<TrackHeader>> taken_tracks(Disk& disk, const Superblock& superblock,
                                              const TrackList& tracks) {
  const Result<TakenEnd> probable = find_taken_end(disk, superblock, tracks);
  if (!probable) return probable.error();
  std::vector<TrackHeader> taken;
  std::vector<std::uint64_t> without;
  std::uint64_t end = tracks.oldest();  // of the allocations known to be taken
  const auto ahead_of = [&](std::uint64_t allocation) {
    return std::min(allocation + kLookAheadTracks, tracks.end());
  };
  for (std::uint64_t a = tracks.oldest(); a < ahead_of(probable->end); ++a) {
    const auto header = header_of(disk, superblock, tracks, a);
    if (!header) return header.error();
    if (*header) {
      taken.push_back(**header);
      end = a + 1;
    } else {
      without.push_back(a);
    }
  }
  for (std::uint64_t a = end; a < ahead_of(end); ++a) {
    if (without.empty() || without.back() < a) without.push_back(a);
  }
  for (std::size_t i = 0; i < without.size(); ++i) {
    const std::uint64_t a = without[i];
    if (a >= ahead_of(end)) break;
    const std::optional<std::uint64_t> track = tracks.track(a);
    if (!track) continue;
    const auto header = lost_header(disk, superblock, *track, a, a >= end);
    if (!header) return header.error();
    if (!*header) continue;
    taken.push_back(**header);
    for (std::uint64_t next = std::max(end, without.back() + 1); next < ahead_of(a + 1); ++next) {
      without.push_back(next);
    }
    end = std::max(end, a + 1);
  }
  std::sort(taken.begin(), taken.end(),
            [](const TrackHeader& a, const TrackHeader& b) { return a.allocation < b.allocation; });
  return taken;
}

Result<std::optional<TrackHeader>> header_of_taken(Disk& disk, const Superblock& superblock,
                                                   const Allocated& place) {
  auto header = read_header(disk, superblock, place.track);
  if (!header || (*header && (*header)->allocation == place.allocation)) return header;
  return lost_header(disk, superblock, place.track, place.allocation, false);
}

std::vector<Allocated> allocated_from(const TrackList& tracks, std::uint64_t allocation,
                                      std::size_t count) {
  std::vector<Allocated> out;
  for (; allocation < tracks.end() && out.size() < count; ++allocation) {
    if (const auto track = tracks.track(allocation)) out.push_back({allocation, *track});
  }
  return out;
}

}  // namespace mariner::logging
