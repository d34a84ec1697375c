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

// Tracks that have been taken, in the order in which they were.
Result<std::vector<TrackHeader>> taken_tracks(Disk& disk, const Superblock& superblock) {
  std::vector<TrackHeader> taken;
  Payload block = Payload::allocate(kBlockBytes);
  for (std::uint64_t track = 0; track < superblock.track_count; ++track) {
    if (Result<void> r =
            disk.read(superblock.track_first_block(track) * kBlockBytes, block.bytes());
        !r) {
      return r.error();
    }
    const auto header = unpack_track_header(as_block(block), superblock.log, track);
    if (header) taken.push_back(*header);
  }
  std::sort(taken.begin(), taken.end(),
            [](const TrackHeader& a, const TrackHeader& b) { return a.allocation < b.allocation; });
  return taken;
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
  superblock.track_count = usable / track_bytes;
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
  ++superblock.generation;
  Payload block = Payload::allocate(kBlockBytes);
  pack_superblock(superblock, as_block(block));
  const ConstBytes part = block.bytes();
  return disk.write((superblock.generation % kSuperblockCopies) * kBlockBytes, {&part, 1},
                    Durability::kDurable);
}

Result<Superblock> read_superblock(Disk& disk) {
  std::optional<Superblock> best;
  bool all_zero = true;
  Payload block = Payload::allocate(kBlockBytes);
  for (std::uint32_t copy = 0; copy < kSuperblockCopies; ++copy) {
    if (Result<void> r = disk.read(std::uint64_t{copy} * kBlockBytes, block.bytes()); !r) {
      return r.error();
    }
    const auto bytes = block.bytes();
    all_zero = all_zero && std::all_of(bytes.begin(), bytes.end(),
                                       [](std::byte b) { return b == std::byte{0}; });
    const auto found = unpack_superblock(as_block(block));
    if (found && (!best || found->generation > best->generation)) best = found;
  }
  if (!best) {
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
  std::uint64_t expected_batch = tracks.empty() ? 1 : tracks.front().first_batch;
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
  return out;
}

}  // namespace mariner::logging
