#include "logging/recovery.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/check.h"

namespace mariner::logging {
namespace {

// Brings the records of several disks into the order of the log.
class Merge {
 public:
  Merge(std::vector<DiskScan>& scans, const RecordVisitor& visit, Recovered& out)
      : scans_(scans), visit_(visit), out_(out) {}

  Result<void> run() {
    for (;;) {
      // What is still to come lies at or above the lowest frontier.
      DiskScan& lowest = *std::ranges::min_element(scans_, {}, &DiskScan::ordinal_frontier);
      visit_below(lowest.ordinal_frontier());
      if (lowest.ordinal_frontier() == UINT64_MAX) return {};
      Result<std::optional<TrackScan>> track = lowest.next();
      if (!track) return track.error();
      CHECK(track->has_value());
      take(**track);
    }
  }

 private:
  void take(TrackScan& track) {
    waiting_.insert(waiting_.end(), track.records.begin(), track.records.end());
    sorted_ = false;
    for (const ScannedRecord& scanned : track.records) out_.withdrawn.take(scanned.record);
    out_.next_ordinal = std::max(out_.next_ordinal, track.ordinal_frontier);
    out_.batches += track.batches;
    out_.tail_records_cut += track.records_cut;
    for (LogDamage& damage : track.damage) out_.damage.push_back(std::move(damage));
  }

  void visit_below(std::uint64_t frontier) {
    const auto is_earlier = [](const ScannedRecord& a, const ScannedRecord& b) {
      return is_before(a.record, b.record);
    };
    // Of one disk alone they are in order as they come, but for what has failed in between.
    if (!sorted_ && !std::ranges::is_sorted(waiting_, is_earlier)) {
      std::ranges::stable_sort(waiting_, is_earlier);
    }
    sorted_ = true;
    auto at = waiting_.begin();
    for (; at != waiting_.end() && at->record.ordinal < frontier; ++at) {
      // The same record twice: a batch that failed, or hung, and was written elsewhere.
      if (at != waiting_.begin() && is_copy(at->record, std::prev(at)->record)) continue;
      visit_one(*at);
    }
    waiting_.erase(waiting_.begin(), at);
  }

  // (The frontier does not go beyond a failed record before its withdrawal is durable: that has
  // been read.)
  void visit_one(const ScannedRecord& scanned) {
    const Record& record = scanned.record;
    out_.next_ordinal = std::max(out_.next_ordinal, record.ordinal + 1);
    if (record.type == RecordType::kWithdrawal || out_.withdrawn.contains(record.ordinal)) return;
    visit_(record, scanned.location);
    ++out_.records;
  }

  std::vector<DiskScan>& scans_;
  const RecordVisitor& visit_;
  Recovered& out_;
  std::vector<ScannedRecord> waiting_;
  bool sorted_ = true;
};

Result<CompleteTrack> scanned(Disk& disk, const Superblock& superblock,
                              const TrackScanRequest& request) {
  Result<TrackScan> scan = scan_track(disk, superblock, request);
  if (!scan) return scan.error();
  CompleteTrack out;
  out.records.reserve(scan->records.size());
  for (const ScannedRecord& record : scan->records) {
    out.records.emplace_back(record.record, record.location);
  }
  out.damage = std::move(scan->damage);
  out.ordinal_frontier = scan->ordinal_frontier;
  out.end_batch = scan->next_batch;
  return out;
}

}  // namespace

Result<Recovered> recover_log(std::span<const LogDiskRef> disks, unsigned threads,
                              const RecordVisitor& visit) {
  CHECK(!disks.empty());
  const unsigned each =
      threads == 0 ? 0 : std::max(1u, threads / static_cast<unsigned>(disks.size()));
  std::vector<DiskScan> scans;
  scans.reserve(disks.size());
  for (const LogDiskRef& disk : disks) {
    Result<DiskScan> scan = DiskScan::open(disk.disk, disk.superblock, each);
    if (!scan) return scan.error();
    scans.push_back(*std::move(scan));
  }
  Recovered out;
  if (Result<void> r = Merge(scans, visit, out).run(); !r) return r.error();
  for (DiskScan& scan : scans) {
    if (Result<void> r = scan.erase_remains(); !r) return r.error();
    out.disks.push_back({scan.tail(), scan.tracks()});
  }
  return out;
}

Result<CompleteTrack> read_complete_track(Disk& disk, const Superblock& superblock,
                                          const std::vector<Allocated>& tracks,
                                          std::uint64_t end_batch, std::uint64_t read_bytes_max) {
  CHECK(!tracks.empty());
  const auto header = header_of_taken(disk, superblock, tracks.front());
  if (!header) return header.error();
  if (!*header) return CompleteTrack{};
  TrackScanRequest request{.track = **header, .read_bytes_max = read_bytes_max};
  for (std::size_t i = 1; i < tracks.size() && request.end_batch == 0; ++i) {
    const auto next = header_of_taken(disk, superblock, tracks[i]);
    if (!next) return next.error();
    if (*next) request.end_batch = (*next)->first_batch;
  }
  if (request.end_batch == 0) request.end_batch = end_batch;
  if (request.end_batch == 0) {
    return Error{ErrorCode::kCorrupt, "track " + std::to_string(tracks.front().track) +
                                          ": where it ends cannot be told, because the tracks "
                                          "behind it are damaged"};
  }
  return scanned(disk, superblock, request);
}

Result<CompleteTrack> read_growing_track(Disk& disk, const Superblock& superblock,
                                         const Allocated& track, std::uint64_t read_bytes_max) {
  const auto header = header_of_taken(disk, superblock, track);
  if (!header) return header.error();
  if (!*header) return CompleteTrack{};
  return scanned(disk, superblock,
                 {.track = **header, .is_last = true, .read_bytes_max = read_bytes_max});
}

}  // namespace mariner::logging
