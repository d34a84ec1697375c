// A volume, or a writable view: everything that belongs to one line of history, put together.
//
//   LiveVolume -> LocalReplicator -> VolumeLog (log, index)
//                                 -> Storage (pending writes, image); none for a writable view
//   HistoryReader: reads any moment, for views and for the storage itself
//
// Owner's thread only. Layers handed out keep the volume alive (aliasing shared pointers); the
// volume is destroyed after close() and idle().
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "index/stored_index.h"
#include "logging/log_reader.h"
#include "logging/log_writer.h"
#include "proto/executor.h"
#include "replication/local_replicator.h"
#include "server/volume/base_map.h"
#include "server/volume/history_view.h"
#include "server/volume/image_base.h"
#include "server/volume/live_volume.h"
#include "server/volume/snapshot.h"
#include "server/volume/storage.h"
#include "server/volume/volume_history.h"
#include "server/volume/volume_log.h"
#include "server/volume/worker.h"

namespace mariner::volume {

// The log as a volume uses it. All outlive every volume.
struct LogParts {
  const logging::LogDisks& disks;
  logging::LogWriter& writer;
  logging::LogReader& reader;
};

struct VolumeOptions {
  VolumeId id;
  std::shared_ptr<index::StoredIndex> index;  // with all that the history has
  std::uint64_t size_bytes = 0;
  Epoch epoch;
  VersionTime floor;  // no version time at or below it
  // A volume's image; null for a writable view.
  std::unique_ptr<logging::Disk> image;
  bool base_in_image = false;             // imported: the image held data before the first write
  std::vector<BaseMap::Page> base_pages;  // what has become base in the image since
  // The volume and moment that a writable view starts from.
  std::shared_ptr<class Volume> parent;
  SequenceNumber parent_at;
  Storage::Options storage;
  replication::WriteCoordinator::Limits limits;
};

class Volume : public std::enable_shared_from_this<Volume> {
 public:
  // Numbers that a crash may have left in use without a trace: void at each start.
  static constexpr std::uint64_t kVoidMargin = 4096;

  struct Events {
    UniqueFunction<void(SequenceNumber)> durable;
    UniqueFunction<void(const Error&)> apply_failed;
  };

  // Takes over what recovery found. If the log knows of writes, the numbers that a crash may have
  // used are voided first, on record.
  Volume(VolumeOptions options, VolumeHistory history, LogParts log, Worker* worker,
         Executor& executor, Events events);
  ~Volume();
  Volume(const Volume&) = delete;
  Volume& operator=(const Volume&) = delete;

  // The layer that initiators write to.
  std::shared_ptr<Layer> live_layer() { return {shared_from_this(), live_.get()}; }
  // The read-only layer of a settled moment, as long as the volume is now, or as it was once: what
  // it grew by since that moment reads as zeros.
  std::shared_ptr<Layer> view_layer(SequenceNumber at) { return view_layer(at, size_bytes_); }
  std::shared_ptr<Layer> view_layer(SequenceNumber at, std::uint64_t size_bytes);

  // The volume has `size_bytes` from now on, whole blocks, never fewer than before: its live layer,
  // and what is opened later. The image is that long, and whoever remembers the size has it
  // durably.
  void grow(std::uint64_t size_bytes);

  [[nodiscard]] VolumeId id() const { return id_; }
  [[nodiscard]] std::uint64_t size_bytes() const { return size_bytes_; }
  [[nodiscard]] index::StoredIndex& index() { return *index_; }
  [[nodiscard]] const index::StoredIndex& index() const { return *index_; }
  [[nodiscard]] HistoryReader& history() { return *history_; }
  [[nodiscard]] replication::LocalReplicator& replicator() { return *replicator_; }
  [[nodiscard]] const replication::LocalReplicator& replicator() const { return *replicator_; }
  [[nodiscard]] LiveVolume& live() { return *live_; }
  [[nodiscard]] const Storage* storage() const { return storage_.get(); }
  [[nodiscard]] Storage* storage() { return storage_.get(); }
  [[nodiscard]] BaseMap& base_map() { return base_map_; }

  // A layer of a settled moment that stays readable while it is held. kOutsideWindow when the
  // history begins after it; kUnavailable once the volume is closed. It does not keep the volume.
  Result<std::shared_ptr<Layer>> open_snapshot(SequenceNumber at);
  // Gives up what snapshots keep; false: there are none. Whoever reads one is told.
  bool drop_snapshots();
  // The oldest moment that a rollback under way or a snapshot still needs; nothing: none does.
  [[nodiscard]] std::optional<SequenceNumber> oldest_pinned() const;

  // No moment before it can be opened from now on, or be the target of a rollback.
  void set_horizon(index::IndexMoment horizon) { index_->set_horizon(horizon); }
  [[nodiscard]] VolumeLog& log() { return *log_; }
  // The log gives up all records of the volume up to a write and an ordinal, with so much payload
  // (ReleaseJudge says that it may).
  void forget_through(SequenceNumber sequence, std::uint64_t ordinal, std::uint64_t payload_bytes) {
    index_->forget_through(sequence, ordinal);
    log_->uncount_payload(payload_bytes);
  }

  // Makes `time` a moment: resolves it to the last write at or before it, once that is settled.
  // kUnavailable when the log failed and it cannot settle before a restart.
  void moment_at(VersionTime time, UniqueFunction<void(Result<index::IndexMoment>)> done);

  // Refuses new writes, lets what is stamped complete, stops applying.
  void close(const Error& error);
  [[nodiscard]] bool idle() const;

 private:
  // Voids numbers that the log knows nothing of, on record. No write is stamped until that is done.
  void log_void(VolumeHistory::Hole numbers);
  void update_grant();

  const VolumeId id_;
  std::uint64_t size_bytes_;
  const Epoch epoch_;
  BaseMap base_map_;
  Executor& executor_;
  Events events_;
  std::shared_ptr<Volume> parent_;
  std::unique_ptr<logging::Disk> image_;
  std::shared_ptr<index::StoredIndex> index_;
  std::unique_ptr<Base> base_;
  std::unique_ptr<HistoryReader> history_;
  std::unique_ptr<VolumeLog> log_;
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<CurrentReader> history_current_;
  std::unique_ptr<replication::LocalReplicator> replicator_;
  std::unique_ptr<LiveVolume> live_;
  const std::shared_ptr<SnapshotPins> snapshots_ = std::make_shared<SnapshotPins>();
  bool closed_ = false;
  std::size_t voids_ = 0;
};

}  // namespace mariner::volume
