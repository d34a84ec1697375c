#include "logging/recovery.h"

#include <algorithm>
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

// As long as no track is freed, they are taken in the order of their places. FORMAT.md section 2.
std::uint64_t allocation_of(std::uint64_t track) { return track + 1; }

// A youngest track may follow one that a failed write has left without a header.
constexpr std::uint64_t kLookAheadTracks = 2;

// The header of a track that has none, from its batches; nothing if no batch is evidence that it
// was taken. A header is written with its track's first batch: `may_be_torn` says that this may
// have been the log's last write, and then only a batch behind it is evidence.
Result<std::optional<TrackHeader>> lost_header(Disk& disk, const Superblock& superblock,
                                               std::uint64_t track, bool may_be_torn) {
  using Header = std::optional<TrackHeader>;
  const std::uint64_t first = superblock.track_first_block(track) + 1;
  if (may_be_torn) {
    Payload start = Payload::allocate(2 * kBlockBytes);
    if (Result<void> r = disk.read((first - 1) * kBlockBytes, start.bytes()); !r) return r.error();
    if (is_zero(start.bytes())) return Header{};  // never written
  }
  TrackHeader header{.track = track, .allocation = allocation_of(track)};
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

// Tracks that have been taken, in the order in which they were.
Result<std::vector<TrackHeader>> taken_tracks(Disk& disk, const Superblock& superblock) {
  std::vector<TrackHeader> taken;
  std::vector<bool> has_header(superblock.track_count, false);
  std::uint64_t end = 0;  // of the tracks known to be taken
  Payload block = Payload::allocate(kBlockBytes);
  for (std::uint64_t track = 0; track < superblock.track_count; ++track) {
    if (Result<void> r =
            disk.read(superblock.track_first_block(track) * kBlockBytes, block.bytes());
        !r) {
      return r.error();
    }
    const auto header = unpack_track_header(as_block(block), superblock.log, track);
    if (!header || header->allocation != allocation_of(track)) continue;
    taken.push_back(*header);
    has_header[track] = true;
    end = track + 1;
  }
  for (std::uint64_t track = 0; track < std::min(end + kLookAheadTracks, superblock.track_count);
       ++track) {
    if (has_header[track]) continue;
    const auto header = lost_header(disk, superblock, track, track >= end);
    if (!header) return header.error();
    if (!*header) continue;
    taken.push_back(**header);
    end = std::max(end, track + 1);
  }
  std::sort(taken.begin(), taken.end(),
            [](const TrackHeader& a, const TrackHeader& b) { return a.allocation < b.allocation; });
  return taken;
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
Result<void> erase_remains(Disk& disk, const Superblock& superblock, const LogTail& tail) {
  if (tail.next_block != 0) {
    if (Result<void> r = erase(disk, tail.next_block, 1); !r) return r;
  }
  const std::uint64_t next_track = tail.allocation;
  if (next_track == superblock.track_count) return {};
  return erase(disk, superblock.track_first_block(next_track), 2);
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
  const std::uint64_t usable =
      disk.size_bytes() > kReservedBytes ? disk.size_bytes() - kReservedBytes : 0;
  Superblock superblock;
  superblock.log = log;
  superblock.disk = number;
  superblock.track_blocks = static_cast<std::uint32_t>(track_bytes / kBlockBytes);
  superblock.track_count = std::min(usable, kLogDiskBytesMax) / track_bytes;
  superblock.created_ns = created_ns;
  superblock.generation = 0;
  if (superblock.track_count < 4) {
    return Error{ErrorCode::kInvalidArgument, "a log disk needs room for at least 4 tracks of " +
                                                  std::to_string(track_bytes) + " bytes; it has " +
                                                  std::to_string(disk.size_bytes()) + " bytes"};
  }
  for (std::uint32_t copy = 0; copy < kSuperblockCopies; ++copy) {
    if (Result<void> r = update_superblock(disk, superblock); !r) return r.error();
  }
  return superblock;
}

Result<void> update_superblock(Disk& disk, Superblock& superblock) {
  Superblock next = superblock;
  ++next.generation;
  Payload block = Payload::allocate(kBlockBytes);
  pack_superblock(next, as_block(block));
  const ConstBytes part = block.bytes();
  const std::uint64_t copy = next.generation % kSuperblockCopies;
  // After a failure the same copy is written again: the other may be the only whole one.
  if (Result<void> r = disk.write(copy * kBlockBytes, {&part, 1}, Durability::kDurable); !r) {
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
    if (Result<void> r = disk.read(std::uint64_t{copy} * kBlockBytes, block.bytes()); !r) {
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
  Result<std::vector<TrackHeader>> taken = taken_tracks(disk, superblock);
  if (!taken) return taken.error();
  Recovered out;
  const std::vector<TrackHeader>& tracks = *taken;
  const std::size_t ahead = std::max(1u, threads) * 2u;
  std::deque<std::future<Result<TrackScan>>> scans;
  std::size_t started = 0;
  std::uint64_t expected_batch = 1;
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
  if (Result<void> r = erase_remains(disk, superblock, out.tail); !r) return r.error();
  return out;
}

}  // namespace mariner::logging
