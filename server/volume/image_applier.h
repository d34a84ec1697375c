// Applies a frozen table of pending writes to the image, in address order, in the background.
//
// The index is consulted on the owner's thread, for a chunk at a time; reading the log, writing and
// flushing the image happen on the worker. Before a block that only the image holds (its base:
// base_map.h) is overwritten, its old contents are durable in the log and indexed as a before-image
// (design.md invariant 5); where such a block merely becomes zero, the image keeps it and readers
// ask the index.
//
// The image is flushed after each portion, so that what waits can leave the table step by step and
// no flush is long. A portion that fails leaves the table as it is, to be applied again.
//
// One run at a time. Owner's thread only.
#pragma once

#include <memory>
#include <vector>

#include "server/volume/base_map.h"
#include "server/volume/history_reader.h"
#include "server/volume/image_writer.h"
#include "server/volume/pending_table.h"
#include "server/volume/volume_log.h"
#include "server/volume/worker.h"

namespace mariner::volume {

class ImageApplier {
 public:
  struct Parts {  // all outlive the applier
    logging::Disk& image;
    const logging::LogDisks& log_disks;
    index::StoredIndex& index;
    const HistoryReader& history;
    VolumeLog& log;
    Worker& worker;
    const BaseMap& base;
  };

  explicit ImageApplier(Parts parts) : parts_(parts) {}
  ~ImageApplier();  // not running

  struct Job {
    // Must not change meanwhile, but that what was flushed may leave it.
    std::shared_ptr<const PendingTable> table;
    // All of the table below `end` is durable in the image. May be called once or many times; the
    // last time, before `done`, with an end above everything.
    UniqueFunction<void(Lbn end)> flushed;
    // With success when every run is durable in the image. After an error, start again with what is
    // left in the table.
    Done done;
  };
  // Applies all of a table.
  void start(Job job);
  // About so many blocks go to the image between two flushes, from the next portion on.
  void set_portion(BlockCount portion);

  // Ends the run at the next step with kAborted.
  void stop() { stopping_ = true; }
  [[nodiscard]] bool running() const { return table_ != nullptr; }

 private:
  static constexpr std::uint64_t kChunkBlocks = 2048;  // 8 MiB
  static constexpr std::size_t kChunkRuns = 1024;

  class ChunkBuilder;

  // What goes to the image in one piece.
  struct Chunk {
    Lbn next;          // where the table goes on behind it
    bool more = true;  // there is something
    std::uint64_t blocks = 0;
    std::vector<ImageChange> changes;
    std::vector<BlockRange> to_capture;
  };

  void next_chunk();
  [[nodiscard]] Chunk build_chunk(const index::VersionLookup& lookup) const;
  void take_chunk(Chunk chunk);
  void capture_next();
  void write_chunk();
  void flush(Lbn end);
  void finish(Result<void> result);

  const Parts parts_;
  std::shared_ptr<const PendingTable> table_;  // null: not running
  UniqueFunction<void(Lbn)> flushed_;
  Done done_;
  bool stopping_ = false;
  BlockCount portion_{kChunkBlocks};
  std::uint64_t portion_left_ = 0;  // blocks until the next flush
  bool unflushed_ = false;          // something was written since the last one
  Lbn next_;
  std::vector<ImageChange> changes_;
  std::vector<BlockRange> to_capture_;
};

}  // namespace mariner::volume
