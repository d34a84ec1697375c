#include "server/volume/track_digest.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "logging/oldest_records.h"

namespace mariner::volume {
namespace {

// Longer runs of zeros are not made by merging: they are judged in pieces as long.
constexpr std::uint64_t kZeroedBlocksMax = 65536;

bool is_write(logging::RecordType type) {
  return type == logging::RecordType::kWrite || type == logging::RecordType::kZero ||
         type == logging::RecordType::kRollback;
}

// A tenth of a millisecond's work. Whoever waits for this processor is let on it in between: where
// a thread that makes no system call keeps it until the next tick, hosts would wait for 4 ms.
constexpr std::size_t kSortedAtOnce = 4096;

// Much of it is sorted already, when it comes from several tracks.
void sort_in_pieces(std::vector<BlockRange>& ranges) {
  const auto at = [&](std::size_t i) {
    return ranges.begin() + static_cast<std::ptrdiff_t>(std::min(i, ranges.size()));
  };
  for (std::size_t i = 0; i < ranges.size(); i += kSortedAtOnce) {
    std::sort(at(i), at(i + kSortedAtOnce));
    std::this_thread::yield();
  }
  for (std::size_t sorted = kSortedAtOnce; sorted < ranges.size(); sorted *= 2) {
    for (std::size_t i = 0; i + sorted < ranges.size(); i += 2 * sorted) {
      std::inplace_merge(at(i), at(i + sorted), at(i + 2 * sorted));
      std::this_thread::yield();
    }
  }
}

void sort_and_merge(std::vector<BlockRange>& ranges, std::uint64_t blocks_max) {
  sort_in_pieces(ranges);
  std::size_t kept = 0;
  for (BlockRange range : ranges) {
    if (kept > 0 && range.first <= ranges[kept - 1].end()) {
      BlockRange& last = ranges[kept - 1];
      const BlockRange both = BlockRange::between(last.first, std::max(last.end(), range.end()));
      if (both.count.value <= blocks_max || both == last) {
        last = both;
        continue;
      }
      range = BlockRange::between(last.end(), range.end());
    }
    if (!range.empty()) ranges[kept++] = range;
  }
  ranges.resize(kept);
}

}  // namespace

void VolumeDigest::add(const logging::Record& record) {
  using logging::RecordType;
  last = std::max({last, record.sequence, record.target_sequence});
  highest = std::max(highest, record.sequence);
  if (is_write(record.type)) given_up = std::max(given_up, record.sequence);
  payload_bytes += std::uint64_t{record.payload_blocks} * kBlockBytes;
  switch (record.type) {
    case RecordType::kWrite:
    case RecordType::kBeforeImage: written.push_back(record.extent); break;
    case RecordType::kRelocated:
      (record.payload_blocks > 0 ? written : zeroed).push_back(record.extent);
      break;
    case RecordType::kZero: zeroed.push_back(record.extent); break;
    case RecordType::kRollback: has_rollback = true; break;
    default: break;
  }
}

void VolumeDigest::add(const VolumeDigest& later) {
  last = std::max(last, later.last);
  highest = std::max(highest, later.highest);
  given_up = std::max(given_up, later.given_up);
  has_rollback = has_rollback || later.has_rollback;
  payload_bytes += later.payload_bytes;
  written.insert(written.end(), later.written.begin(), later.written.end());
  zeroed.insert(zeroed.end(), later.zeroed.begin(), later.zeroed.end());
}

void VolumeDigest::complete() {
  sort_and_merge(written, UINT64_MAX);
  sort_and_merge(zeroed, kZeroedBlocksMax);
}

Result<std::vector<TrackDigest>> digest_oldest_tracks(const std::vector<logging::LiveTracks>& disks,
                                                      std::uint64_t from, std::size_t tracks_max) {
  std::vector<TrackDigest> out;
  logging::OldestRecordsReader reader(disks, from);
  while (out.size() < tracks_max) {
    const Result<std::optional<logging::OldestRecords>> oldest = reader.next();
    if (!oldest) return oldest.error();
    if (!*oldest) break;
    TrackDigest& digest =
        out.emplace_back(TrackDigest{(*oldest)->disk, (*oldest)->end_ordinal, {}});
    for (const auto& [record, location] : (*oldest)->records) {
      digest.volumes[record.volume].add(record);
    }
    for (auto& [id, volume] : digest.volumes) volume.complete();
  }
  return out;
}

}  // namespace mariner::volume
