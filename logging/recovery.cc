#include "logging/recovery.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <future>
#include <optional>

#include "logging/track_scan.h"
#include "proto/check.h"
#include "proto/payload.h"

namespace mariner::logging {
namespace {

std::span<std::byte, kBlockBytes> as_block(Payload& payload) {
  return std::span<std::byte, kBlockBytes>(payload.data(), kBlockBytes);
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

// A youngest track may follow one that a failed write has left without a header.
constexpr std::uint64_t kLookAheadTracks = 2;

// The header of a track that has none, from its batches; nothing if no batch is evidence that it
// was taken. A header is written with its track's first batch: `may_be_torn` says that this may
// have been the log's last write, and then only a batch behind it is evidence.
Result<std::optional<TrackHeader>> lost_header(Disk& disk, const Superblock& superblock,
                                               std::uint64_t track, std::uint64_t allocation,
                                               bool may_be_torn) {
  using Header = std::optional<TrackHeader>;
  const std::uint64_t first = superblock.track_first_block(track) + 1;
  if (may_be_torn) {
    Payload start = Payload::allocate(2 * kBlockBytes);
    if (Result<void> r = disk.read((first - 1) * kBlockBytes, start.bytes()); !r) return r.error();
    if (is_zero(start.bytes())) return Header{};  // never written
  }
  TrackHeader header{.track = track, .allocation = allocation};
  const auto found = find_batch(disk, superblock, header, first, 0);
  if (!found) return found.error();
  if (!*found) return Header{};
  const BatchHeader& batch = **found;
  header.first_batch = batch.batch_number;
  if (batch.block != first) {
    --header.first_batch;  // what stood at `first` is lost: one batch at least
  } else if (may_be_torn) {
    const auto second = find_batch(disk, superblock, header, first + 1, batch.batch_number);
    if (!second) return second.error();
    if (!*second) return Header{};
  }
  return Header{header};
}

Result<std::optional<TrackHeader>> read_header(Disk& disk, const Superblock& superblock,
                                               std::uint64_t track) {
  Payload block = Payload::allocate(kBlockBytes);
  if (Result<void> r = disk.read(superblock.track_first_block(track) * kBlockBytes, block.bytes());
      !r) {
    return r.error();
  }
  return unpack_track_header(as_block(block), superblock.log, track);
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

Result<TrackList> read_list(Disk& disk, const Superblock& superblock) {
  Payload blocks = Payload::allocate(std::size_t{superblock.list_blocks} * kBlockBytes);
  if (Result<void> r = disk.read(kListFirstBlock * kBlockBytes, blocks.bytes()); !r) {
    return r.error();
  }
  std::vector<std::optional<ListPage>> slots;
  for (std::uint32_t slot = 0; slot < superblock.list_blocks; ++slot) {
    slots.push_back(
        unpack_list_page(std::span<const std::byte, kBlockBytes>(
                             blocks.data() + std::size_t{slot} * kBlockBytes, kBlockBytes),
                         superblock.log));
  }
  Result<TrackList> list = TrackList::from_pages(superblock, slots);
  if (list) return list;
  // The second copy of the list are the tracks themselves.
  std::vector<TrackHeader> headers;
  for (std::uint64_t track = 0; track < superblock.track_count; ++track) {
    auto header = read_header(disk, superblock, track);
    if (!header) return header.error();
    if (*header) headers.push_back(**header);
  }
  TrackList rebuilt = TrackList::from_headers(superblock, headers, slots);
  if (Result<void> r = write_list(disk, superblock.log, rebuilt.all_pages()); !r) return r.error();
  return rebuilt;
}

// Tracks that have been taken, in the order in which they were.
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

// The header of a track that may have been taken; from its batches if it is damaged.
Result<std::optional<TrackHeader>> any_header(Disk& disk, const Superblock& superblock,
                                              const Allocated& place) {
  auto header = read_header(disk, superblock, place.track);
  if (!header || (*header && (*header)->allocation == place.allocation)) return header;
  return lost_header(disk, superblock, place.track, place.allocation, false);
}

// Durable on return.
Result<void> erase(Disk& disk, std::uint64_t block, std::uint64_t count) {
  Payload bytes = Payload::allocate(count * kBlockBytes);
  if (Result<void> r = disk.read(block * kBlockBytes, bytes.bytes()); !r) return r;
  if (is_zero(bytes.bytes())) return {};
  bytes = Payload::zeroed(count * kBlockBytes);
  const ConstBytes part = bytes.bytes();
  return disk.write(block * kBlockBytes, {&part, 1}, Durability::kDurable);
}

// What has not been found must never be found later: a next batch of the same number, torn in its
// turn, could supply just what the remains of this one lack. So the start of both places where it
// may go is erased before anybody is told what the log holds. FORMAT.md section 5.
Result<void> erase_remains(Disk& disk, const Superblock& superblock, const TrackList& tracks,
                           const LogTail& tail) {
  if (tail.next_block != 0) {
    if (Result<void> r = erase(disk, tail.next_block, 1); !r) return r;
  }
  if (tail.allocation + 1 >= tracks.end()) return {};
  const std::optional<std::uint64_t> next_track = tracks.track(tail.allocation + 1);
  if (!next_track) return {};
  return erase(disk, superblock.track_first_block(*next_track), 2);
}

}  // namespace

Result<Superblock> format_log(Disk& disk, const LogId& log, std::uint8_t number,
                              std::uint64_t track_bytes, std::uint64_t created_ns) {
  if (track_bytes < kTrackBytesMin || track_bytes > kTrackBytesMax ||
      track_bytes % kBlockBytes != 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "a track must be between 8 MiB and 1 GiB and whole blocks; " +
                     std::to_string(track_bytes) + " bytes were asked for"};
  }
  const std::uint64_t size = std::min(disk.size_bytes(), kLogDiskBytesMax);
  Superblock superblock;
  superblock.log = log;
  superblock.disk = number;
  superblock.track_blocks = static_cast<std::uint32_t>(track_bytes / kBlockBytes);
  superblock.track_count = size / track_bytes;
  do {  // the list takes room from the tracks
    superblock.list_blocks = list_blocks_for(superblock.track_count);
  } while (superblock.track_count > 0 && superblock.end_block() * kBlockBytes > size &&
           superblock.track_count-- > 0);
  superblock.created_ns = created_ns;
  superblock.generation = 0;
  if (superblock.track_count < 4) {
    return Error{ErrorCode::kInvalidArgument, "a log disk needs room for at least 4 tracks of " +
                                                  std::to_string(track_bytes) + " bytes; it has " +
                                                  std::to_string(disk.size_bytes()) + " bytes"};
  }
  TrackList tracks(superblock);
  if (Result<void> r = write_list(disk, log, tracks.all_pages()); !r) return r.error();
  for (std::uint32_t copy = 0; copy < kSuperblockCopies; ++copy) {
    if (Result<void> r = update_superblock(disk, superblock); !r) return r.error();
  }
  return superblock;
}

Result<void> write_list(Disk& disk, const LogId& log, const std::vector<TrackList::Write>& writes) {
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
      const auto header = header_of(disk, superblock, tracks, a);
      if (!header) return header.error();
      taken = header->has_value();
    }
    if (taken) {
      found.end = middle + 1;
    } else {
      high = middle;
    }
  }
  return found;
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
  bool all_zero = true;
  std::optional<Error> unreadable;
  Payload block = Payload::allocate(kBlockBytes);
  for (std::uint32_t copy = 0; copy < kSuperblockCopies; ++copy) {
    if (Result<void> r = disk.read(copy * kSuperblockStride * kBlockBytes, block.bytes()); !r) {
      unreadable = r.error();
      continue;
    }
    all_zero = all_zero && is_zero(block.bytes());
    const auto found = unpack_superblock(as_block(block));
    if (found && (!best || found->generation > best->generation)) best = found;
  }
  if (!best) {
    if (unreadable) return *std::move(unreadable);
    if (all_zero) return Error{ErrorCode::kNotFound, "the disk holds no log"};
    return Error{ErrorCode::kCorrupt, "both copies of the log's superblock are damaged"};
  }
  if (best->end_block() * kBlockBytes > disk.size_bytes()) {
    return Error{ErrorCode::kCorrupt, "the log disk has " + std::to_string(disk.size_bytes()) +
                                          " bytes, its superblock says at least " +
                                          std::to_string(best->end_block() * kBlockBytes)};
  }
  return *best;
}

Result<Recovered> recover_log(Disk& disk, const Superblock& superblock, unsigned threads,
                              const RecordVisitor& visit) {
  Result<TrackList> list = read_list(disk, superblock);
  if (!list) return list.error();
  Result<std::vector<TrackHeader>> taken = taken_tracks(disk, superblock, *list);
  if (!taken) return taken.error();
  Recovered out{.tail = {}, .tracks = *std::move(list), .damage = {}};
  out.tail.allocation = out.tracks.oldest() - 1;
  const std::vector<TrackHeader>& tracks = *taken;
  const std::size_t ahead = std::max(1u, threads) * 2u;
  std::deque<std::future<Result<TrackScan>>> scans;
  std::size_t started = 0;
  // What was in front of the oldest track is free, and its batches are nobody's loss.
  std::uint64_t expected_batch = 1;
  if (out.tracks.oldest() > 1 && !tracks.empty()) expected_batch = tracks.front().first_batch;
  for (std::size_t i = 0; i < tracks.size(); ++i) {
    while (started < tracks.size() && scans.size() < ahead) {
      TrackScanRequest request{tracks[started], started + 1 == tracks.size(), 0};
      if (started + 1 < tracks.size()) request.end_batch = tracks[started + 1].first_batch;
      scans.push_back(std::async(
          threads > 0 ? std::launch::async : std::launch::deferred,
          [&disk, &superblock, request] { return scan_track(disk, superblock, request); }));
      ++started;
    }
    Result<TrackScan> scan = scans.front().get();
    scans.pop_front();
    if (!scan) {
      for (auto& other : scans) other.wait();
      return scan.error();
    }
    if (tracks[i].first_batch > expected_batch) {
      out.damage.push_back({tracks[i].track, expected_batch, tracks[i].first_batch - 1,
                            "a whole track is missing or its header is damaged"});
    }
    for (const ScannedRecord& scanned : scan->records) {
      visit(scanned.record, scanned.location);
      out.tail.last_records[scanned.record.volume] = {scanned.location.batch_block,
                                                      scanned.location.slot};
    }
    out.records += scan->records.size();
    out.batches += scan->batches;
    out.tail_records_cut += scan->records_cut;
    for (LogDamage& damage : scan->damage) out.damage.push_back(std::move(damage));
    expected_batch = scan->next_batch;
    out.tail.allocation = tracks[i].allocation;
    out.tail.next_block = scan->next_block;
    out.tail.next_batch = scan->next_batch;
    if (scan->last_batch_block != 0) out.tail.previous_batch_block = scan->last_batch_block;
  }
  if (Result<void> r = erase_remains(disk, superblock, out.tracks, out.tail); !r) return r.error();
  return out;
}

std::vector<Allocated> allocated_from(const TrackList& tracks, std::uint64_t allocation,
                                      std::size_t count) {
  std::vector<Allocated> out;
  for (; allocation < tracks.end() && out.size() < count; ++allocation) {
    if (const auto track = tracks.track(allocation)) out.push_back({allocation, *track});
  }
  return out;
}

Result<CompleteTrack> read_complete_track(Disk& disk, const Superblock& superblock,
                                          const std::vector<Allocated>& tracks) {
  CHECK(!tracks.empty());
  CompleteTrack out;
  const auto header = any_header(disk, superblock, tracks.front());
  if (!header) return header.error();
  if (!*header) return out;
  TrackScanRequest request{.track = **header};
  for (std::size_t i = 1; i < tracks.size() && request.end_batch == 0; ++i) {
    const auto next = any_header(disk, superblock, tracks[i]);
    if (!next) return next.error();
    if (*next) request.end_batch = (*next)->first_batch;
  }
  if (request.end_batch == 0) {
    return Error{ErrorCode::kCorrupt, "track " + std::to_string(tracks.front().track) +
                                          ": where it ends cannot be told, because the tracks "
                                          "behind it are damaged"};
  }
  Result<TrackScan> scan = scan_track(disk, superblock, request);
  if (!scan) return scan.error();
  out.records.reserve(scan->records.size());
  for (const ScannedRecord& scanned : scan->records) {
    out.records.emplace_back(scanned.record, scanned.location);
  }
  out.damage = std::move(scan->damage);
  return out;
}

}  // namespace mariner::logging
