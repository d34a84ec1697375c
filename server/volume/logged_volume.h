// What a logger has of a volume, or of a writable view: its log, its indexes, and what reads them.
//
//   VolumeLog: writes become records, and records index entries
//   LocalHistory: the past, for storage and target
//   HistoryReader: the past with the base, for views
//
// Owner's thread only. Destroyed after close() and idle().
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "index/stored_index.h"
#include "logging/log_reader.h"
#include "logging/log_writer.h"
#include "server/volume/base_map.h"
#include "server/volume/history_reader.h"
#include "server/volume/local_history.h"
#include "server/volume/snapshot.h"
#include "server/volume/volume_log.h"

namespace mariner::volume {

// The log as a volume uses it. All outlive every volume.
struct LogParts {
  const logging::LogDisks& disks;
  logging::LogWriter& writer;
  logging::LogReader& reader;
};

class LoggedVolume {
 public:
  struct Options {
    VolumeId id;
    Epoch epoch;
    std::shared_ptr<index::StoredIndex> index;  // with all that the history has
    std::uint64_t payload_bytes = 0;            // of what it has
    bool based_everywhere = false;  // an imported volume, or a writable view: see base_map.h
    std::vector<BaseMap::Page> base_pages;  // what has become base in the image since
    Images images = Images::kNone;
    UnappliedBytes unapplied{};  // of what it has, what no image holds
  };

  // `base` outlives it: where the volume's base is read.
  LoggedVolume(Options options, LogParts log, Base& base);
  ~LoggedVolume();  // idle() must hold
  LoggedVolume(const LoggedVolume&) = delete;
  LoggedVolume& operator=(const LoggedVolume&) = delete;

  [[nodiscard]] index::StoredIndex& index() { return *index_; }
  [[nodiscard]] const index::StoredIndex& index() const { return *index_; }
  [[nodiscard]] VolumeLog& log() { return log_; }
  [[nodiscard]] LocalHistory& history() { return history_; }
  [[nodiscard]] const LocalHistory& history() const { return history_; }
  [[nodiscard]] HistoryReader& reader() { return reader_; }
  [[nodiscard]] BaseMap& base_map() { return base_map_; }
  [[nodiscard]] const std::shared_ptr<SnapshotPins>& snapshots() { return snapshots_; }

  // The oldest moment from the horizon on that a rollback under way or a snapshot still needs;
  // nothing: none does.
  [[nodiscard]] std::optional<SequenceNumber> oldest_pinned() const;
  // Whether one needs this moment.
  [[nodiscard]] bool is_pinned(SequenceNumber moment) const {
    return history_.holds(moment) || snapshots_->any_at(moment);
  }
  // The log gives up all records of the volume up to a write and an ordinal, with so much payload
  // (ReleaseJudge says that it may).
  void forget_through(SequenceNumber sequence, std::uint64_t ordinal, std::uint64_t payload_bytes);

  // Writes that wait for room fail with this; snapshots are dropped.
  void close(const Error& error);
  [[nodiscard]] bool idle() const {
    return reader_.in_flight() == 0 && history_.in_flight() == 0 && log_.in_flight() == 0;
  }

 private:
  BaseMap base_map_;
  const std::shared_ptr<index::StoredIndex> index_;
  VolumeLog log_;
  LocalHistory history_;
  HistoryReader reader_;
  const std::shared_ptr<SnapshotPins> snapshots_ = std::make_shared<SnapshotPins>();
};

}  // namespace mariner::volume
