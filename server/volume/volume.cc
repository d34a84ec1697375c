#include "server/volume/volume.h"

#include <algorithm>
#include <string>
#include <utility>

#include "proto/check.h"
#include "proto/sequence_text.h"
#include "server/volume/image_base.h"

namespace mariner::volume {
namespace {

// A view with the volume that it reads, so that the view's layer keeps both alive.
struct HeldView {
  std::shared_ptr<Volume> volume;
  HistoryView view;
};

std::unique_ptr<Base> base_of(const VolumeOptions& options) {
  if (options.parent != nullptr) {
    return std::make_unique<ViewBase>(options.parent->history(), options.parent_at);
  }
  CHECK(options.image != nullptr);
  return std::make_unique<ImageBase>(*options.image);
}

LoggedVolume::Options logged_options(VolumeOptions& options, const VolumeHistory& history) {
  CHECK(options.index != nullptr);
  return {.id = options.id,
          .epoch = options.epoch,
          .index = std::move(options.index),
          .payload_bytes = history.payload_bytes,
          .based_everywhere = options.base_in_image || options.parent != nullptr,
          .base_pages = std::move(options.base_pages),
          .images = options.image != nullptr ? Images::kHere : Images::kNone,
          .unapplied = history.unapplied_bytes};
}

}  // namespace

Volume::Volume(VolumeOptions options, VolumeHistory history, LogParts log, Worker* worker,
               Executor& executor, Events events)
    : id_(options.id),
      size_bytes_(options.size_bytes),
      events_(std::move(events)),
      executor_(executor),
      parent_(options.parent),
      base_(base_of(options)),
      logged_(logged_options(options, history), log, *base_),
      between_(options.between ? options.between(logged_.history()) : nullptr) {
  // What the index has was durable once, even if the log has lost it since.
  const index::IndexMoment indexed = index().newest();
  history.last = std::max(history.last, indexed.sequence);
  history.last_time = std::max(history.last_time, indexed.time);
  const ServedVolume::Beginning beginning =
      ServedVolume::begin_behind(history, id_, options.epoch, options.floor);
  History& past = between_ != nullptr ? *between_ : logged_.history();
  CurrentReader* current = nullptr;
  if (options.image != nullptr) {
    CHECK(worker != nullptr);
    stored_ = std::make_unique<StoredVolume>(
        std::move(options.image), StoredVolume::Parts{past, &base_map(), *worker, executor},
        options.storage,
        Storage::Found{beginning.start.frontier, beginning.start.last, std::move(history.unapplied),
                       history.unapplied_since, std::nullopt,
                       index().last_rollback() > beginning.start.frontier,
                       std::move(history.headway)},
        storage_events(log.writer));
    current = storage();
  } else {
    reader_ = std::make_unique<HistoryReader>(past, *base_);
    history_current_ = std::make_unique<HistoryCurrent>(
        *reader_, [this] { return replicator().coordinator().settled(); });
    current = history_current_.get();
  }
  served_ = std::make_unique<ServedVolume>(
      size_bytes_, beginning, options.limits,
      ServedVolume::Parts{logged_.log(), storage(), *current, past, executor,
                          [this](SequenceNumber at) { return open_snapshot(at); }});
  if (stored_ != nullptr) served_->grant(storage()->granted_bytes());
}

Volume::~Volume() { CHECK_MSG(idle(), "a volume is destroyed in use"); }

Storage::Events Volume::storage_events(const logging::LogWriter& writer) {
  Storage::Events events;
  events.durable = [this](SequenceNumber sequence) {
    served_->storage_durable(sequence);
    if (events_.durable) events_.durable(sequence);
  };
  events.granted = [this](std::uint64_t bytes) { served_->grant(bytes); };
  events.apply_failed = [this, &writer](const Error& error) {
    // Without the log no image can be written: who waits for it would wait for ever.
    if (writer.failed()) served_->close(error);
    if (events_.apply_failed) events_.apply_failed(error);
  };
  events.restored = [this](const Storage::RestoreProgress& done) {
    if (events_.restored) events_.restored(done);
  };
  if (events_.headway) {
    events.headway = [this](Headway::Change change, Done kept) {
      events_.headway(std::move(change), std::move(kept));
    };
  }
  return events;
}

std::shared_ptr<Layer> Volume::view_layer(SequenceNumber at, std::uint64_t size_bytes) {
  auto held = std::make_shared<HeldView>(HeldView{
      shared_from_this(), HistoryView(size_bytes, history(), at, [this](SequenceNumber moment) {
        return open_snapshot(moment);
      })});
  return {held, &held->view};
}

void Volume::bound(std::uint64_t bytes_max, BoundedLayer::NearlyFull nearly_full) {
  CHECK(stored_ == nullptr && bounded_ == nullptr);
  bounded_ = std::make_unique<BoundedLayer>(
      BoundedLayer::Parts{served_->live(), logged_.history(),
                          [this] { return replicator().coordinator().settled(); }, executor_},
      bytes_max, std::move(nearly_full));
  bounded_->begin();
}

void Volume::grow(std::uint64_t size_bytes) {
  CHECK(size_bytes >= size_bytes_ && size_bytes % kBlockBytes == 0);
  size_bytes_ = size_bytes;
  live().grow(size_bytes);
}

Result<void> Volume::check_kept(SequenceNumber at) const {
  if (closed_) return Error{ErrorCode::kUnavailable, "the volume is closed"};
  if (index().can_be_opened(at)) return {};
  return Error{ErrorCode::kOutsideWindow, sequence_text(at) + " is no longer in the history"};
}

Result<std::shared_ptr<const SnapshotPin>> Volume::pin(SequenceNumber at) {
  if (const Result<void> kept = check_kept(at); !kept) return kept.error();
  return std::make_shared<const SnapshotPin>(at, logged_.snapshots());
}

Result<std::shared_ptr<Layer>> Volume::open_snapshot(SequenceNumber at) {
  if (const Result<void> kept = check_kept(at); !kept) return kept.error();
  return std::shared_ptr<Layer>(
      std::make_shared<Snapshot>(size_bytes_, at, logged_.snapshots(),
                                 [weak = weak_from_this(), at]() -> std::shared_ptr<Layer> {
                                   const std::shared_ptr<Volume> volume = weak.lock();
                                   return volume == nullptr ? nullptr : volume->view_layer(at);
                                 }));
}

void Volume::close(const Error& error) {
  closed_ = true;
  if (bounded_ != nullptr) bounded_->close(error);
  served_->close(error);
  logged_.close(error);
  if (stored_ != nullptr) stored_->close();
}

bool Volume::idle() const {
  return (bounded_ == nullptr || bounded_->idle()) && served_->idle() && logged_.idle() &&
         (stored_ == nullptr || stored_->idle()) &&
         (reader_ == nullptr || reader_->in_flight() == 0);
}

}  // namespace mariner::volume
