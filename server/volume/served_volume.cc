#include "server/volume/served_volume.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {

ServedVolume::Beginning ServedVolume::begin_behind(const VolumeHistory& history, VolumeId volume,
                                                   Epoch epoch, VersionTime floor) {
  Beginning beginning;
  beginning.start.volume = volume;
  beginning.start.epoch = epoch;
  beginning.start.last = history.last;
  beginning.start.floor = std::max(floor, history.last_time);
  beginning.start.frontier = std::min(history.frontier, history.last);
  if (history.last.value > 0) {
    beginning.start.last.value += kVoidMargin;
    beginning.voids = history.holes;
    beginning.voids.push_back({history.last.next(), beginning.start.last});
  }
  return beginning;
}

ServedVolume::ServedVolume(std::uint64_t size_bytes, const Beginning& beginning,
                           const replication::WriteCoordinator::Limits& limits, Parts parts)
    : logger_(parts.logger),
      replicator_(beginning.start, limits, parts.executor, parts.logger, parts.storage),
      live_(size_bytes, {replicator_, parts.current, parts.history, parts.storage != nullptr, false,
                         std::move(parts.open_snapshot)}) {
  for (const VolumeHistory::Hole& numbers : beginning.voids) {
    log_void({beginning.start.volume, beginning.start.epoch, numbers.first, numbers.last});
  }
  update_grant();
}

ServedVolume::~ServedVolume() { CHECK_MSG(idle(), "a served volume is destroyed in use"); }

void ServedVolume::log_void(const replication::VoidMessage& message) {
  ++voids_;
  logger_.log_void(message, [this](const Result<void>& result) {
    --voids_;
    if (!result) replicator_.close(result.error());
    update_grant();
  });
}

void ServedVolume::grant(std::uint64_t bytes) {
  granted_bytes_ = bytes;
  update_grant();
}

void ServedVolume::pace(std::uint64_t bytes) {
  paced_bytes_ = bytes;
  update_grant();
}

// A write says that all below it is settled: not before the voids are durable.
void ServedVolume::update_grant() {
  replicator_.grant(voids_ > 0 ? 0 : std::min(granted_bytes_, paced_bytes_));
}

}  // namespace mariner::volume
