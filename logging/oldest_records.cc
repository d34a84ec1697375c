#include "logging/oldest_records.h"

#include <algorithm>

#include "logging/recovery.h"
#include "proto/check.h"

namespace mariner::logging {
namespace {

// Reads one disk's tracks, from the oldest on, as far as they are asked for.
class Reader {
 public:
  explicit Reader(const LiveTracks& live) : live_(live) {}

  [[nodiscard]] const LiveTracks& live() const { return live_; }
  [[nodiscard]] bool has_complete_track() const { return live_.oldest < live_.current; }

  // One above the last record of the oldest track, or `from` if it has none above that.
  Result<std::uint64_t> end_of_oldest(std::uint64_t from) {
    std::uint64_t end = from;
    if (live_.tracks.empty() || live_.tracks.front().allocation != live_.oldest) return end;
    if (Result<void> r = read_next(); !r) return r.error();
    for (const auto& [record, location] : records_) end = std::max(end, record.ordinal + 1);
    return end;
  }

  // Reads on until everything below `end` has been read.
  Result<void> read_below(std::uint64_t end) {
    while (next_ < live_.tracks.size() && frontier_ < end) {
      if (Result<void> r = read_next(); !r) return r;
    }
    return {};
  }

  void give(std::uint64_t from, std::uint64_t end, OldestRecords& out) {
    for (auto& entry : records_) {
      const Record& record = entry.first;
      if (record.type == RecordType::kWithdrawal) continue;  // it concerns the log alone
      if (record.ordinal >= from && record.ordinal < end) out.records.push_back(std::move(entry));
    }
  }

 private:
  Result<void> read_next() {
    const Result<CompleteTrack> track = read_live_track(live_, next_++);
    if (!track) return track.error();
    frontier_ = std::max(frontier_, track->ordinal_frontier);
    records_.insert(records_.end(), track->records.begin(), track->records.end());
    return {};
  }

  const LiveTracks& live_;
  std::size_t next_ = 0;
  std::uint64_t frontier_ = 0;  // what has not been read lies at or above it
  std::vector<std::pair<Record, LogLocation>> records_;
};

}  // namespace

Result<std::optional<OldestRecords>> read_oldest_records(const std::vector<LiveTracks>& disks,
                                                         std::uint64_t from) {
  std::vector<Reader> readers(disks.begin(), disks.end());
  std::optional<OldestRecords> out;
  for (Reader& reader : readers) {
    if (!reader.has_complete_track()) continue;
    const Result<std::uint64_t> end = reader.end_of_oldest(from);
    if (!end) return end.error();
    if (out && out->end_ordinal <= *end) continue;
    out = OldestRecords{reader.live().superblock.disk, *end, {}};
  }
  if (!out) return out;
  for (Reader& reader : readers) {
    if (Result<void> r = reader.read_below(out->end_ordinal); !r) return r.error();
    reader.give(from, out->end_ordinal, *out);
  }
  std::ranges::stable_sort(
      out->records, [](const auto& a, const auto& b) { return is_before(a.first, b.first); });
  // The same record twice: a batch that failed, or hung, and was written elsewhere.
  const auto twice = std::ranges::unique(
      out->records, [](const auto& a, const auto& b) { return is_copy(a.first, b.first); });
  out->records.erase(twice.begin(), twice.end());
  return out;
}

}  // namespace mariner::logging
