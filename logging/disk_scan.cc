#include "logging/disk_scan.h"

#include <algorithm>
#include <utility>

#include "logging/damaged_read.h"
#include "proto/bytes.h"
#include "proto/payload.h"

namespace mariner::logging {

Result<DiskScan> DiskScan::open(Disk& disk, const Superblock& superblock, unsigned threads) {
  Result<TrackList> list = read_track_list(disk, superblock);
  if (!list) return list.error();
  Result<std::vector<TrackHeader>> taken = taken_tracks(disk, superblock, *list);
  if (!taken) return taken.error();
  DiskScan scan(disk, superblock, *std::move(list), threads);
  scan.taken_ = *std::move(taken);
  scan.tail_.allocation = scan.list_.oldest() - 1;
  // What was in front of the oldest track is free, and its batches are nobody's loss.
  if (scan.list_.oldest() > 1 && !scan.taken_.empty()) {
    scan.tail_.next_batch = scan.taken_.front().first_batch;
  }
  if (scan.taken_.empty()) scan.frontier_ = UINT64_MAX;
  return scan;
}

DiskScan::~DiskScan() {
  for (auto& scan : scans_) scan.wait();
}

void DiskScan::read_ahead() {
  const std::size_t ahead = std::max(1u, threads_) * 2u;
  while (started_ < taken_.size() && scans_.size() < ahead) {
    TrackScanRequest request{taken_[started_], started_ + 1 == taken_.size(), 0};
    if (started_ + 1 < taken_.size()) request.end_batch = taken_[started_ + 1].first_batch;
    scans_.push_back(std::async(threads_ > 0 ? std::launch::async : std::launch::deferred,
                                [disk = disk_, superblock = superblock_, request] {
                                  return scan_track(*disk, *superblock, request);
                                }));
    ++started_;
  }
}

Result<std::optional<TrackScan>> DiskScan::next() {
  if (given_ == taken_.size()) return std::optional<TrackScan>{};
  read_ahead();
  Result<TrackScan> scan = scans_.front().get();
  scans_.pop_front();
  if (!scan) return scan.error();
  const TrackHeader& track = taken_[given_++];
  if (track.first_batch > tail_.next_batch) {
    scan->damage.insert(scan->damage.begin(),
                        {superblock_->disk, track.track, tail_.next_batch, track.first_batch - 1,
                         "a whole track is missing or its header is damaged"});
  }
  tail_.allocation = track.allocation;
  tail_.track_first_batch = track.first_batch;
  tail_.next_sector = scan->next_sector;
  tail_.next_batch = scan->next_batch;
  remains_.insert(remains_.end(), scan->left_behind.begin(), scan->left_behind.end());
  if (superblock_->rotates() && scan->cut_sector != 0) {
    if (scan->batches > 0) {
      remains_.push_back(scan->cut_sector);
    } else {
      --tail_.allocation;  // nothing says any more that it was taken
    }
  }
  if (scan->last_batch_sector != 0) tail_.previous_batch_sector = scan->last_batch_sector;
  for (const ScannedRecord& scanned : scan->records) {
    tail_.last_records[scanned.record.volume] = {scanned.location.batch_sector,
                                                 scanned.location.slot};
  }
  frontier_ = given_ == taken_.size() ? UINT64_MAX : std::max(frontier_, scan->ordinal_frontier);
  return std::optional<TrackScan>(*std::move(scan));
}

// Durable on return.
Result<void> DiskScan::erase(SectorRange range) {
  constexpr std::uint32_t kPieceBytes = 1u << 20;
  const std::uint32_t sector_bytes = superblock_->sector_bytes;
  while (!range.empty()) {
    const std::uint32_t count = std::min(range.count, kPieceBytes / sector_bytes);
    Payload bytes = Payload::allocate(std::size_t{count} * sector_bytes);
    if (Result<void> r = read_with_damage(*disk_, range.first * sector_bytes, bytes.bytes()); !r) {
      return r;
    }
    if (!all_zero(bytes.bytes())) {
      bytes = Payload::zeroed(bytes.size());
      const ConstBytes part = bytes.bytes();
      if (Result<void> r =
              disk_->write(range.first * sector_bytes, {&part, 1}, Durability::kDurable);
          !r) {
        return r;
      }
    }
    range = {range.first + count, range.count - count};
  }
  return {};
}

// A next batch of the same number, torn in its turn, could supply just what the remains of this one
// lack. And a track that a failed write leaves as it was would give them back as its own, once
// another track has been taken behind it.
Result<void> DiskScan::erase_remains() {
  if (tail_.next_sector != 0) {
    if (Result<void> r = erase({tail_.next_sector, 1}); !r) return r;
  }
  // They must not pass for the batch of their number if that one is lost. First of all: the track
  // behind them is what tells them from whole batches.
  for (const std::uint64_t sector : remains_) {
    if (Result<void> r = erase({sector, 1}); !r) return r;
  }
  for (std::uint64_t ahead = 1; ahead <= kLookAheadTracks; ++ahead) {
    if (tail_.allocation + ahead >= list_.end()) break;
    const std::optional<std::uint64_t> next_track = list_.track(tail_.allocation + ahead);
    if (!next_track) continue;
    SectorRange track = superblock_->track(*next_track);
    // Where its batches begin: behind the header, or anywhere.
    if (!superblock_->rotates()) track.count = 2;
    if (Result<void> r = erase(track); !r) return r;
  }
  return {};
}

}  // namespace mariner::logging
