#include "server/cluster/storage_part.h"

#include <algorithm>
#include <utility>

#include "server/volume/image_base.h"

namespace mariner::cluster {

namespace {

// Lag that is known to be in memory in the end: a payload of which a part was replaced counts in
// full there.
std::uint64_t lag_in_memory(const volume::Storage::Options& options) {
  return std::min(options.lag_bytes_max, options.pending_memory_max / 4 * 3);
}

replication::StorageRole::Start with_kept(replication::StorageRole::Start start,
                                          SequenceNumber kept) {
  start.kept = kept;
  return start;
}

constexpr const char* kBuilding = "this node's image is being built anew";
constexpr const char* kBeingChecked = "what this node's image holds is being looked at";

}  // namespace

StoragePart::StoragePart(std::unique_ptr<logging::Disk> image,
                         const replication::StorageRole::Start& start,
                         const volume::Storage::Options& options, Parts parts, Events events,
                         std::optional<volume::Spill::Contents> spilled)
    : events_(std::move(events)),
      executor_(parts.executor),
      has_journal_(parts.journal != nullptr),
      disk_(*image),
      switched_(parts.history, parts.journal),
      history_(switched_, parts.other, BlockCount{image->size_bytes() / kBlockBytes},
               [this] { return held_base(); }),
      stored_(std::move(image), {history_, nullptr, parts.worker, parts.executor, parts.spill},
              options, {start.durable, start.durable, {}, {}, std::move(spilled)},
              storage_events()),
      lag_bytes_max_(options.lag_bytes_max),
      lag_in_memory_(lag_in_memory(options)),
      host_(with_kept(start, storage().hardened()), parts.executor, participant_, parts.promises),
      reads_(storage(), host_, parts.executor, BlockCount{disk_.size_bytes() / kBlockBytes}) {
  if (!parts.base_known && parts.other != nullptr && !building()) {
    check_ = std::make_unique<BaseCheck>(
        BaseCheck::Parts{parts.history, *parts.other, parts.executor},
        BlockCount{disk_.size_bytes() / kBlockBytes}, storage().durable());
  }
  if (has_journal_) storage().bound_lag(lag_in_memory_);
  storage().rest(true);  // until a coordinator says how far it is to come
  host_.granted(storage().granted_bytes());
}

HeldBase StoragePart::held_base() const {
  if (building()) return HeldBase::kNone;
  return base_known() ? HeldBase::kAll : HeldBase::kUnknown;
}

Result<void> StoragePart::check_served() const {
  if (building()) return Error{ErrorCode::kUnavailable, kBuilding};
  if (!base_known()) return Error{ErrorCode::kUnavailable, kBeingChecked};
  return {};
}

void StoragePart::ServedImage::read(BlockRange range, std::span<std::byte> to, volume::Done done) {
  if (Result<void> r = part.check_served(); !r) return done(std::move(r));
  if (range.end().byte_offset() > part.disk_.size_bytes()) {
    return done(Error{ErrorCode::kInvalidArgument, "blocks behind the end of the image"});
  }
  ++in_flight;
  volume::ImageBase(part.disk_)
      .read(range, to, [this, done = std::move(done)](Result<void> result) mutable {
        --in_flight;
        const Result<void> served = part.check_served();  // by now
        done(served ? std::move(result) : served);
      });
}

void StoragePart::keep(SequenceNumber durable) {
  const auto kept = [this, durable] {
    host_.durable(durable);
    storage().kept(durable);
  };
  if (!events_.durable) return kept();
  ++keeping_;
  events_.durable(durable, [this, durable, kept](const Result<void>& result) {
    --keeping_;
    // (Nobody is told of an image that was given up meanwhile.)
    if (result && durable <= storage().durable()) kept();
  });
}

void StoragePart::keep_start_over(volume::Done kept) {
  if (events_.starts_over) events_.starts_over();
  if (!events_.durable) return kept({});
  ++keeping_;
  events_.durable(SequenceNumber{}, [this, kept = std::move(kept)](Result<void> result) mutable {
    --keeping_;
    kept(std::move(result));
  });
}

// Once the log is away everything above that moment is in the journal, and what is pending may be
// known by its place there.
void StoragePart::harden(volume::Done done) {
  const auto answer = [&](Result<void> result) {
    executor_.post([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  };
  if (!has_journal_) {
    return answer(Error{ErrorCode::kUnavailable, "this node has no journal to keep writes in"});
  }
  const std::optional<SequenceNumber> since = switched_.away_since();
  if (since && storage().hardened() >= *since) return answer({});
  storage().harden(std::move(done));
}

// What is to be kept without the log has to be in memory when it goes; then it is in the journal.
void StoragePart::log_away(std::optional<SequenceNumber> since) {
  switched_.log_away(since);
  if (has_journal_) storage().bound_lag(since ? lag_bytes_max_ : lag_in_memory_);
}

volume::Storage::Events StoragePart::storage_events() {
  volume::Storage::Events events;
  events.durable = [this](SequenceNumber sequence) { keep(sequence); };
  events.granted = [this](std::uint64_t bytes) { host_.granted(bytes); };
  events.apply_failed = [this](const Error& error) {
    if (events_.apply_failed) events_.apply_failed(error);
  };
  events.image_failed = [this](const Error& error) { host_.image_failed(error); };
  events.fetched = [this](const replication::CatchUpProgress& progress) {
    host_.fetched(progress);
  };
  events.outlived = [this] { host_.outlived(); };
  events.starts_over = [this](volume::Done kept) { keep_start_over(std::move(kept)); };
  return events;
}

}  // namespace mariner::cluster
