// A log of its own for measuring, put together as the daemon does: event loop, ring, disk, array.
//
// Everything that a benchmark knows of the log's formats, recovery and writer stands here. The file
// is written once when it is created and kept for later runs: each run formats it anew, so that it
// begins with an empty log whose space is initialised.
//
// Owner's thread only (the event loop's), like the writer.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "index/stored_index.h"
#include "logging/durability_probe.h"
#include "logging/file_disk.h"
#include "logging/io_ring.h"
#include "logging/log_array.h"
#include "logging/log_location.h"
#include "logging/log_writer.h"
#include "proto/error.h"
#include "proto/payload.h"
#include "proto/unique_function.h"
#include "server/node/event_loop.h"
#include "server/node/patience.h"
#include "tests/bench/append_log.h"

namespace mariner::bench {

class BenchLog {
 public:
  struct Options {
    std::string folder;
    std::uint64_t log_bytes = 0;
    std::uint64_t track_bytes = 0;
    // What may be outstanding at most; the log counts as full while it has room for this.
    std::uint64_t outstanding_bytes = 0;
    // As [log] durability: measured unless given.
    std::optional<logging::DurableWay> durable_way{};
    // With everything that a log does besides: the tracks are initialised while it is written to,
    // and complete ones are verified at so many bytes per second. Nothing: neither.
    std::optional<std::uint64_t> scrub_rate{};
    // Instead of all that: an AppendLog, whose places mean nothing and which never is full.
    bool appends_to_file = false;
  };
  // The batch whose records' completions run at the moment.
  struct BatchTimes {
    std::chrono::nanoseconds dispatched{0};
    std::chrono::nanoseconds durable{0};
    std::uint32_t records = 0;
    std::uint32_t bytes = 0;  // as written
  };
  // The writer's own, so that passing it on costs nothing that would be measured.
  using Outcome = Result<logging::LoggedAt>;
  using Done = logging::LogWriter::Appended;

  // `loop` outlives the log. Blocking: may write the whole file.
  static Result<std::unique_ptr<BenchLog>> create(const Options& options, node::EventLoop& loop);
  ~BenchLog();  // nothing may be in flight
  BenchLog(const BenchLog&) = delete;
  BenchLog& operator=(const BenchLog&) = delete;

  // Appends one write of whole blocks somewhere in a volume. `done` runs when it is durable.
  void append(const PayloadSlice& payload, Done done);

  // From now on each durable record is told, in the order of their numbers, in a later turn than
  // its completion: to what indexes them.
  using Indexer = UniqueFunction<void(std::span<const index::StoredIndex::Logged>)>;
  // Sequence numbers go on behind `last`.
  void set_indexer(Indexer indexer, SequenceNumber last) {
    indexer_ = std::move(indexer);
    sequence_ = last;
    first_appended_ = last.value + 1;
  }
  [[nodiscard]] logging::IoRing& ring() { return *ring_; }

  // Runs before the completions of each batch.
  void set_observer(UniqueFunction<void(const BatchTimes&)> observer) {
    observer_ = std::move(observer);
  }
  [[nodiscard]] const BatchTimes& batch() const { return batch_; }
  // No more should be appended: it would fail for want of space.
  [[nodiscard]] bool full() const;
  // By all batches so far, headers included.
  [[nodiscard]] std::uint64_t written_bytes() const { return written_bytes_; }
  // How often tracks have been freed for new use.
  [[nodiscard]] std::uint64_t releases() const { return releases_; }
  [[nodiscard]] const logging::DurableChoice& durable_choice() const { return durable_choice_; }
  [[nodiscard]] std::uint64_t limit_bytes() const {
    return array_ ? array_->writer().limit_bytes() : UINT64_MAX;
  }
  // Tracks that the initialiser has written, and bytes that the scrubber has verified.
  [[nodiscard]] std::uint64_t initialised_tracks() const;
  [[nodiscard]] std::uint64_t scrubbed_bytes() const;

 private:
  BenchLog(const Options& options, node::EventLoop& loop) : options_(options), loop_(loop) {}

  Result<void> open();
  void recycle();
  Result<void> open_to_append();
  void write(const logging::Record& record, const PayloadSlice& payload, Done done);
  void finished(std::uint64_t number, const Outcome& outcome);
  void index_finished();

  const Options options_;
  node::EventLoop& loop_;
  std::unique_ptr<logging::IoRing> ring_;
  logging::DurableChoice durable_choice_;
  std::unique_ptr<logging::LogArray> array_;
  logging::LogArray::Member* member_ = nullptr;  // its only disk
  std::unique_ptr<AppendLog> append_log_;        // in their place
  std::uint64_t releases_ = 0;
  UniqueFunction<void(const BatchTimes&)> observer_;
  BatchTimes batch_;
  node::Patience patience_{true};
  std::uint64_t written_bytes_ = 0;
  SequenceNumber sequence_;
  VersionTime time_;
  std::uint64_t random_ = 1;
  // As VolumeLog does it: what is appended, in order, until it can be indexed.
  struct Appended {
    Done done;
    bool finished = false;
  };
  Indexer indexer_;
  std::deque<Appended> appended_;
  std::vector<index::StoredIndex::Logged> logged_;  // the same records, in one piece
  std::uint64_t first_appended_ = 1;                // sequence number of the first of them
  bool indexes_soon_ = false;
};

}  // namespace mariner::bench
