#include "server/cluster/storage_part.h"

#include <utility>

namespace mariner::cluster {

StoragePart::StoragePart(std::unique_ptr<logging::Disk> image,
                         const replication::StorageRole::Start& start,
                         const volume::Storage::Options& options, Parts parts, Events events)
    : events_(std::move(events)),
      stored_(std::move(image), {parts.history, base_, parts.worker, parts.executor}, options,
              {start.durable, start.durable, {}, {}}, storage_events()),
      host_(start, parts.executor, stored_.storage(), parts.promises) {
  host_.granted(storage().granted_bytes());
}

volume::Storage::Events StoragePart::storage_events() {
  volume::Storage::Events events;
  events.durable = [this](SequenceNumber sequence) {
    host_.durable(sequence);
    if (events_.durable) events_.durable(sequence);
  };
  events.granted = [this](std::uint64_t bytes) { host_.granted(bytes); };
  events.apply_failed = [this](const Error& error) {
    if (events_.apply_failed) events_.apply_failed(error);
  };
  return events;
}

}  // namespace mariner::cluster
