// A volume, or a writable view: everything that belongs to one line of history, put together in
// one process.
//
//   ServedVolume (target): LiveVolume -> LocalReplicator
//     -> LoggedVolume (logger): VolumeLog, indexes, LocalHistory, views
//     -> StoredVolume (storage): pending writes, image; none for a writable view
//
// The three know each other by interfaces alone: LoggerParticipant, StorageParticipant and
// CurrentReader for what is new, History and Base for the past.
//
// Owner's thread only. Layers handed out keep the volume alive (aliasing shared pointers); the
// volume is destroyed after close() and idle().
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "index/stored_index.h"
#include "logging/disk.h"
#include "proto/executor.h"
#include "server/volume/bounded_layer.h"
#include "server/volume/history_view.h"
#include "server/volume/logged_volume.h"
#include "server/volume/paced.h"
#include "server/volume/reclaimable.h"
#include "server/volume/served_volume.h"
#include "server/volume/snapshot.h"
#include "server/volume/stored_volume.h"
#include "server/volume/volume_history.h"
#include "server/volume/worker.h"

namespace mariner::volume {

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
  // What storage and target see of the history in its place, for faults and delays between them;
  // none: it itself.
  UniqueFunction<std::unique_ptr<History>(History&)> between{};
};

class Volume final : public Reclaimable, public Paced, public std::enable_shared_from_this<Volume> {
 public:
  static constexpr std::uint64_t kVoidMargin = ServedVolume::kVoidMargin;

  struct Events {
    UniqueFunction<void(SequenceNumber)> durable;
    UniqueFunction<void(const Error&)> apply_failed;
    UniqueFunction<void(const Storage::RestoreProgress&)> restored{};
    UniqueFunction<void(Headway::Change, Done)> headway{};
  };

  // Takes over what recovery found. If the log knows of writes, the numbers that a crash may have
  // used are voided first, on record.
  Volume(VolumeOptions options, VolumeHistory history, LogParts log, Worker* worker,
         Executor& executor, Events events);
  ~Volume() override;
  Volume(const Volume&) = delete;
  Volume& operator=(const Volume&) = delete;

  // The layer that initiators write to.
  std::shared_ptr<Layer> live_layer() {
    if (bounded_ != nullptr) return {shared_from_this(), bounded_.get()};
    return {shared_from_this(), &served_->live()};
  }
  // Bounds what initiators may fill of a writable view. Once, before its layer is handed out.
  void bound(std::uint64_t bytes_max, BoundedLayer::NearlyFull nearly_full);
  // Nothing: there is no bound, or that is not known yet.
  [[nodiscard]] std::optional<std::uint64_t> filled_bytes() const {
    return bounded_ != nullptr ? bounded_->used_bytes() : std::nullopt;
  }
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
  [[nodiscard]] index::StoredIndex& index() { return logged_.index(); }
  [[nodiscard]] const index::StoredIndex& index() const { return logged_.index(); }
  [[nodiscard]] HistoryReader& history() { return logged_.reader(); }
  [[nodiscard]] VolumeLog& log() { return logged_.log(); }
  [[nodiscard]] BaseMap& base_map() { return logged_.base_map(); }
  [[nodiscard]] replication::LocalReplicator& replicator() { return served_->replicator(); }
  [[nodiscard]] const replication::LocalReplicator& replicator() const {
    return served_->replicator();
  }
  [[nodiscard]] LiveVolume& live() { return served_->live(); }
  // Null: there is no image.
  [[nodiscard]] const Storage* storage() const { return stored_ ? &stored_->storage() : nullptr; }
  [[nodiscard]] Storage* storage() { return stored_ ? &stored_->storage() : nullptr; }

  // A layer of a settled moment that stays readable while it is held. kOutsideWindow when the
  // history begins after it; kUnavailable once the volume is closed. It does not keep the volume.
  Result<std::shared_ptr<Layer>> open_snapshot(SequenceNumber at);
  // Keeps a settled moment as such a layer does; the same errors.
  Result<std::shared_ptr<const SnapshotPin>> pin(SequenceNumber at);
  // Reclaimable
  [[nodiscard]] LoggedVolume& logged() override { return logged_; }
  [[nodiscard]] SequenceNumber settled() const override {
    return replicator().coordinator().settled();
  }
  [[nodiscard]] bool has_image() const override { return stored_ != nullptr; }
  [[nodiscard]] SequenceNumber durable() const override {
    return stored_ != nullptr ? storage()->durable() : SequenceNumber{};
  }
  [[nodiscard]] std::optional<SequenceNumber> oldest_pinned() const override {
    return logged_.oldest_pinned();
  }
  void hurry() override {
    if (stored_ != nullptr) storage()->hurry();
  }
  void punch(std::vector<BlockRange> ranges, UniqueFunction<void(Result<void>)> done) override {
    storage()->punch(std::move(ranges), std::move(done));
  }

  // Paced
  [[nodiscard]] std::uint64_t stamped_bytes() const override {
    return replicator().coordinator().stamped_bytes();
  }
  [[nodiscard]] bool writes_wait() const override {
    return replicator().coordinator().waiting() > 0;
  }
  void pace(std::uint64_t bytes) override { served_->pace(bytes); }

  // A rollback is under way: not on record yet.
  [[nodiscard]] bool rolling_back() const { return logged_.history().holds_any(); }

  // Refuses new writes, lets what is stamped complete, stops applying.
  void close(const Error& error);
  [[nodiscard]] bool idle() const;

 private:
  Storage::Events storage_events(const logging::LogWriter& writer);
  [[nodiscard]] Result<void> check_kept(SequenceNumber at) const;

  const VolumeId id_;
  std::uint64_t size_bytes_;
  Events events_;
  Executor& executor_;
  const std::shared_ptr<Volume> parent_;
  const std::unique_ptr<Base> base_;
  LoggedVolume logged_;
  const std::unique_ptr<History> between_;
  std::unique_ptr<StoredVolume> stored_;            // null: a writable view, which has instead ...
  std::unique_ptr<HistoryReader> reader_;           // ... the history to read from
  std::unique_ptr<CurrentReader> history_current_;  // ... as of now
  std::unique_ptr<ServedVolume> served_;
  std::unique_ptr<BoundedLayer> bounded_;  // null: there is no bound
  bool closed_ = false;
};

}  // namespace mariner::volume
