// Makes damaged leaves of the node's index again from the log, while everything goes on.
//
// Leaves that were found damaged are emptied, the log's header areas are read once for all of them,
// track by track, and what belongs to them is restored. Who asks for what they hold waits
// (Bosc::when_mended). A crash meanwhile leaves the old, damaged leaf, which is found again.
// Owner's thread only.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "index/stored_index.h"
#include "logging/live_tracks.h"
#include "logging/log_array.h"
#include "server/node/log.h"
#include "server/volume/worker.h"

namespace mariner::node {

class IndexRepair {
 public:
  using Indexes = std::map<VolumeId, std::shared_ptr<index::StoredIndex>>;
  struct Parts {  // all outlive it
    index::Bosc& store;
    const Indexes& indexes;
    const logging::LogArray& log;
    volume::Worker& worker;
    Executor& executor;
    Log& logger;
  };
  // What of the log has been read for the leaves that are being made again.
  struct Progress {
    std::size_t leaves = 0;
    std::size_t tracks_read = 0;
    std::size_t tracks = 0;
  };

  // `given_up` is called when damage cannot be mended before the next start.
  IndexRepair(const Parts& parts, UniqueFunction<void()> given_up);
  ~IndexRepair();  // idle() must hold
  IndexRepair(const IndexRepair&) = delete;
  IndexRepair& operator=(const IndexRepair&) = delete;

  // The block was found damaged. May be told again and again.
  void damaged(index::BlockAddress address);
  // The volume is being removed.
  void forget(VolumeId volume);
  // Begins nothing new; what is being made again stays unfinished.
  void stop();
  [[nodiscard]] bool idle() const { return !reading_; }

  // Nothing when nothing is being made again.
  [[nodiscard]] std::optional<Progress> progress() const;
  // Leaves that have been made again since the start.
  [[nodiscard]] std::uint64_t repaired() const { return repaired_; }

 private:
  // What is restored together: it takes memory that is not given back before all is read.
  static constexpr std::size_t kLeavesAtOnce = 256;
  static constexpr std::chrono::milliseconds kCommitPatience{10};
  // A disk of the log that is away for a moment takes nothing out of the index.
  static constexpr unsigned kReadTries = 5;
  static constexpr std::chrono::milliseconds kReadAgain{1000};

  struct Repairing {
    std::shared_ptr<index::StoredIndex> index;
    index::LeafRepair leaf;
  };
  struct Place {
    std::size_t disk = 0;
    std::size_t track = 0;
  };
  using Records = std::vector<std::pair<logging::Record, logging::LogLocation>>;

  void begin_soon(std::chrono::nanoseconds in);
  void begin();
  [[nodiscard]] bool begin_leaf(index::BlockAddress address);
  void read_next();
  void read(Place place);
  [[nodiscard]] bool is_needed(Place place) const;
  void track_read(Place place, const Records& records, const Result<void>& result);
  void end();

  const Parts parts_;
  UniqueFunction<void()> given_up_;
  std::set<index::BlockAddress> waiting_;
  std::set<index::BlockAddress> refused_;  // were damaged and no leaf that can be made again
  std::vector<Repairing> repairing_;
  std::shared_ptr<const std::vector<logging::LiveTracks>> disks_;
  std::shared_ptr<index::RepairFilter> filter_;  // the worker's while reading_
  std::vector<Place> places_;
  std::size_t next_ = 0;  // of places_
  bool begins_soon_ = false;
  unsigned tries_ = 0;  // that failed, in a row
  bool reading_ = false;
  bool reads_again_ = false;  // soon
  bool stopped_ = false;
  std::uint64_t repaired_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::node
