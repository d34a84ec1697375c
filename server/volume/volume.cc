#include "server/volume/volume.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {
namespace {

// A view with the volume that it reads, so that the view's layer keeps both alive.
struct HeldView {
  std::shared_ptr<Volume> volume;
  HistoryView view;
};

}  // namespace

Volume::Volume(VolumeOptions options, VolumeHistory history, LogParts log, Worker* worker,
               Executor& executor, Events events)
    : id_(options.id),
      size_bytes_(options.size_bytes),
      epoch_(options.epoch),
      base_map_(options.base_in_image),
      executor_(executor),
      events_(std::move(events)),
      parent_(std::move(options.parent)),
      image_(std::move(options.image)),
      index_(std::move(options.index)) {
  CHECK(image_ == nullptr || worker != nullptr);
  CHECK(index_ != nullptr);
  if (parent_ != nullptr) {
    base_ = std::make_unique<ViewBase>(parent_->history(), options.parent_at);
  } else if (image_ != nullptr) {
    for (const BaseMap::Page& page : options.base_pages) CHECK(base_map_.load(page));
    base_ = std::make_unique<ImageBase>(*image_, base_map_);
  } else {
    base_ = std::make_unique<ZeroBase>();
  }
  history_ = std::make_unique<HistoryReader>(id_, *index_, log.reader, *base_);
  log_ = std::make_unique<VolumeLog>(id_, options.epoch, log.writer, *index_);
  log_->count_payload(history.payload_bytes);

  // What the index has was durable once, even if the log has lost it since.
  const index::IndexMoment indexed = index_->newest();
  history.last = std::max(history.last, indexed.sequence);
  history.last_time = std::max(history.last_time, indexed.time);
  replication::WriteCoordinator::Start start;
  start.volume = id_;
  start.epoch = options.epoch;
  start.last = history.last;
  start.floor = std::max(options.floor, history.last_time);
  start.frontier = std::min(history.frontier, history.last);
  if (history.last.value > 0) {
    start.last.value += kVoidMargin;
    for (const VolumeHistory::Hole& hole : history.holes) log_void(hole);
    log_void({history.last.next(), start.last});
  }
  CurrentReader* current = nullptr;
  if (image_ != nullptr) {
    Storage::Events storage_events;
    storage_events.durable = [this](SequenceNumber sequence) {
      replicator_->storage_durable(sequence);
      if (events_.durable) events_.durable(sequence);
    };
    storage_events.granted = [this](std::uint64_t) { update_grant(); };
    storage_events.apply_failed = [this, &writer = log.writer](const Error& error) {
      // Without the log no image can be written: who waits for it would wait for ever.
      if (writer.failed()) replicator_->close(error);
      if (events_.apply_failed) events_.apply_failed(error);
    };
    storage_ = std::make_unique<Storage>(
        ImageApplier::Parts{*image_, log.disks, *index_, *history_, *log_, *worker, base_map_},
        *history_, executor_, options.storage,
        Storage::Found{start.frontier, start.last, std::move(history.unapplied),
                       history.unapplied_since},
        std::move(storage_events));
    current = storage_.get();
  } else {
    history_current_ = std::make_unique<HistoryCurrent>(
        *history_, [this] { return replicator_->coordinator().settled(); });
    current = history_current_.get();
  }
  replicator_ = std::make_unique<replication::LocalReplicator>(start, options.limits, executor_,
                                                               *log_, storage_.get());
  update_grant();
  live_ = std::make_unique<LiveVolume>(
      size_bytes_,
      LiveVolume::Parts{*replicator_, *current, *index_, parent_ == nullptr ? &base_map_ : nullptr,
                        [this](SequenceNumber at) { return open_snapshot(at); }});
}

void Volume::log_void(VolumeHistory::Hole numbers) {
  ++voids_;
  log_->log_void({id_, epoch_, numbers.first, numbers.last}, [this](const Result<void>& result) {
    --voids_;
    if (!result) replicator_->close(result.error());
    update_grant();
  });
}

// A write says that all below it is settled: not before the voids are durable.
void Volume::update_grant() {
  const std::uint64_t granted = storage_ != nullptr ? storage_->granted_bytes() : UINT64_MAX;
  replicator_->grant(voids_ > 0 ? 0 : granted);
}

Volume::~Volume() { CHECK_MSG(idle(), "a volume is destroyed in use"); }

std::shared_ptr<Layer> Volume::view_layer(SequenceNumber at, std::uint64_t size_bytes) {
  auto held = std::make_shared<HeldView>(HeldView{
      shared_from_this(),
      HistoryView(size_bytes, *history_, *index_, at, parent_ == nullptr ? &base_map_ : nullptr,
                  [this](SequenceNumber moment) { return open_snapshot(moment); })});
  return {held, &held->view};
}

void Volume::grow(std::uint64_t size_bytes) {
  CHECK(size_bytes >= size_bytes_ && size_bytes % kBlockBytes == 0);
  size_bytes_ = size_bytes;
  live_->grow(size_bytes);
}

Result<std::shared_ptr<Layer>> Volume::open_snapshot(SequenceNumber at) {
  if (closed_) return Error{ErrorCode::kUnavailable, "the volume is closed"};
  if (at < index_->oldest().sequence) {
    return Error{ErrorCode::kOutsideWindow,
                 "#" + std::to_string(at.value) + " is no longer in the history"};
  }
  return std::shared_ptr<Layer>(std::make_shared<Snapshot>(
      size_bytes_, at, snapshots_, [weak = weak_from_this(), at]() -> std::shared_ptr<Layer> {
        const std::shared_ptr<Volume> volume = weak.lock();
        return volume == nullptr ? nullptr : volume->view_layer(at);
      }));
}

bool Volume::drop_snapshots() { return snapshots_->drop_all(); }

std::optional<SequenceNumber> Volume::oldest_pinned() const {
  const auto target = live_->oldest_target();
  const auto snapshot = snapshots_->oldest();
  if (!target || !snapshot) return target ? target : snapshot;
  return std::min(*target, *snapshot);
}

void Volume::moment_at(VersionTime time, UniqueFunction<void(Result<index::IndexMoment>)> done) {
  const SequenceNumber stamped = replicator_->coordinator().last_stamped();
  replicator_->settle_moment(time, [this, self = shared_from_this(), time, stamped,
                                    done = std::move(done)](SequenceNumber settled) mutable {
    if (settled < stamped) {
      return done(
          Error{ErrorCode::kUnavailable,
                "the log failed with writes under way, and which of them it kept shows "
                "after a restart; a moment before them can be named by its number, up to #" +
                    std::to_string(settled.value)});
    }
    index_->moment_at(time, [self, done = std::move(done)](
                                const Result<index::IndexMoment>& at) mutable { done(at); });
  });
}

void Volume::close(const Error& error) {
  closed_ = true;
  snapshots_->drop_all();
  replicator_->close(error);
  log_->close(error);
  if (storage_ != nullptr) storage_->stop();
}

bool Volume::idle() const {
  return replicator_->drained() && live_->idle() && history_->in_flight() == 0 &&
         log_->in_flight() == 0 && voids_ == 0 && (storage_ == nullptr || storage_->idle());
}

}  // namespace mariner::volume
