#include "server/cluster/storage_part.h"

#include <utility>

#include "server/volume/image_base.h"

namespace mariner::cluster {

StoragePart::StoragePart(std::unique_ptr<logging::Disk> image,
                         const replication::StorageRole::Start& start,
                         const volume::Storage::Options& options, Parts parts, Events events)
    : events_(std::move(events)),
      disk_(*image),
      history_(parts.history, parts.other, BlockCount{image->size_bytes() / kBlockBytes},
               [this] { return building(); }),
      stored_(std::move(image), {history_, nullptr, parts.worker, parts.executor}, options,
              {start.durable, start.durable, {}, {}}, storage_events()),
      host_(start, parts.executor, stored_.storage(), parts.promises) {
  host_.granted(storage().granted_bytes());
}

void StoragePart::ServedImage::read(BlockRange range, std::span<std::byte> to, volume::Done done) {
  if (part.building()) {
    return done(Error{ErrorCode::kUnavailable, "this node's image is being built anew"});
  }
  if (range.end().byte_offset() > part.disk_.size_bytes()) {
    return done(Error{ErrorCode::kInvalidArgument, "blocks behind the end of the image"});
  }
  ++in_flight;
  volume::ImageBase(part.disk_)
      .read(range, to, [this, done = std::move(done)](Result<void> result) mutable {
        --in_flight;
        done(std::move(result));
      });
}

void StoragePart::keep(SequenceNumber durable) {
  if (!events_.durable) return host_.durable(durable);
  ++keeping_;
  events_.durable(durable, [this, durable](const Result<void>& kept) {
    --keeping_;
    if (kept) host_.durable(durable);
  });
}

volume::Storage::Events StoragePart::storage_events() {
  volume::Storage::Events events;
  events.durable = [this](SequenceNumber sequence) { keep(sequence); };
  events.granted = [this](std::uint64_t bytes) { host_.granted(bytes); };
  events.apply_failed = [this](const Error& error) {
    if (events_.apply_failed) events_.apply_failed(error);
  };
  return events;
}

}  // namespace mariner::cluster
