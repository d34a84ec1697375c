#include "logging/oldest_records.h"

#include <algorithm>

#include "logging/recovery.h"
#include "proto/check.h"

namespace mariner::logging {

// Reads one disk's tracks, from the oldest on, as far as they are asked for.
class OldestRecordsReader::OfDisk {
 public:
  explicit OfDisk(const LiveTracks& live) : live_(live), oldest_(live.oldest) {}

  [[nodiscard]] std::uint8_t disk() const { return live_.superblock.disk; }
  [[nodiscard]] bool has_complete_track() const { return oldest_ < live_.current; }

  // One above the last record of the oldest track, or `from` if it has none above that.
  Result<std::uint64_t> end_of_oldest(std::uint64_t from) {
    // A hole has none.
    if (first_ == live_.tracks.size() || live_.tracks[first_].allocation != oldest_) return from;
    if (Result<void> r = read_through(first_); !r) return r.error();
    return std::max(from, ends_[first_]);
  }

  // Reads on until everything below `end` has been read.
  Result<void> read_below(std::uint64_t end) {
    while (ends_.size() < live_.tracks.size() && frontier_ < end) {
      if (Result<void> r = read_through(ends_.size()); !r) return r;
    }
    return {};
  }

  // Gives what lies in [from, end), and forgets what lies below `end`.
  void give(std::uint64_t from, std::uint64_t end, OldestRecords& out) {
    for (auto& entry : records_) {
      const Record& record = entry.first;
      if (record.type == RecordType::kWithdrawal) continue;  // it concerns the log alone
      if (record.ordinal >= from && record.ordinal < end) out.records.push_back(std::move(entry));
    }
    std::erase_if(records_, [&](const auto& entry) { return entry.first.ordinal < end; });
  }

  // The next track is the oldest from now on.
  void leave_oldest() {
    if (first_ < live_.tracks.size() && live_.tracks[first_].allocation == oldest_) ++first_;
    ++oldest_;
  }

 private:
  Result<void> read_through(std::size_t number) {
    while (ends_.size() <= number) {
      const Result<CompleteTrack> track = read_live_track(live_, ends_.size());
      if (!track) return track.error();
      frontier_ = std::max(frontier_, track->ordinal_frontier);
      std::uint64_t end = 0;
      for (const auto& [record, location] : track->records) {
        end = std::max(end, record.ordinal + 1);
      }
      ends_.push_back(end);
      records_.insert(records_.end(), track->records.begin(), track->records.end());
    }
    return {};
  }

  const LiveTracks& live_;
  std::uint64_t oldest_;             // allocation
  std::size_t first_ = 0;            // of live_.tracks, that is not older
  std::vector<std::uint64_t> ends_;  // of the tracks that have been read
  std::uint64_t frontier_ = 0;       // what has not been read lies at or above it
  std::vector<std::pair<Record, LogLocation>> records_;
};

OldestRecordsReader::OldestRecordsReader(const std::vector<LiveTracks>& disks, std::uint64_t from)
    : disks_(disks.begin(), disks.end()), from_(from) {}

OldestRecordsReader::~OldestRecordsReader() = default;

Result<std::optional<OldestRecords>> OldestRecordsReader::next() {
  std::optional<OldestRecords> out;
  OfDisk* chosen = nullptr;
  for (OfDisk& disk : disks_) {
    if (!disk.has_complete_track()) continue;
    const Result<std::uint64_t> end = disk.end_of_oldest(from_);
    if (!end) return end.error();
    if (out && out->end_ordinal <= *end) continue;
    out = OldestRecords{disk.disk(), *end, {}};
    chosen = &disk;
  }
  if (!out) return out;
  for (OfDisk& disk : disks_) {
    if (Result<void> r = disk.read_below(out->end_ordinal); !r) return r.error();
    disk.give(from_, out->end_ordinal, *out);
  }
  chosen->leave_oldest();
  from_ = out->end_ordinal;
  std::ranges::stable_sort(
      out->records, [](const auto& a, const auto& b) { return is_before(a.first, b.first); });
  // The same record twice: a batch that failed, or hung, and was written elsewhere.
  const auto twice = std::ranges::unique(
      out->records, [](const auto& a, const auto& b) { return is_copy(a.first, b.first); });
  out->records.erase(twice.begin(), twice.end());
  return out;
}

Result<std::optional<OldestRecords>> read_oldest_records(const std::vector<LiveTracks>& disks,
                                                         std::uint64_t from) {
  return OldestRecordsReader(disks, from).next();
}

}  // namespace mariner::logging
