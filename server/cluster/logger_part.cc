#include "server/cluster/logger_part.h"

#include <algorithm>

namespace mariner::cluster {
namespace {

// More numbers than a coordinator ever has in flight: what is missing further below the end is
// missing because the log is damaged.
constexpr std::uint64_t kMissingMax = 65'536;

}  // namespace

replication::LoggerRole::Start begin_logging(VolumeId volume, const volume::VolumeHistory& found,
                                             index::IndexMoment indexed, SequenceNumber end,
                                             Epoch promised, VersionTime floor) {
  replication::LoggerRole::Start start;
  start.volume = volume;
  start.promised = promised;
  // What the index has was durable once, even if the log has lost it since.
  start.last = std::max(found.last, indexed.sequence);
  start.last_time = std::max(found.last_time, indexed.time);
  start.floor = floor;
  start.end = end;
  start.frontier = std::min(found.frontier, start.last);
  // (What is missing below what was settled is lost: that nobody can make good.)
  for (const volume::VolumeHistory::Hole& hole : found.holes) {
    const SequenceNumber first = std::max(hole.first, found.settled.next());
    if (first > hole.last || start.last.value - first.value >= kMissingMax) continue;
    start.holes.push_back({first, hole.last});
  }
  return start;
}

void BaseElsewhere::read(BlockRange range, std::span<std::byte> /*to*/, volume::Done done) {
  done(Error{ErrorCode::kUnavailable,
             "block " + std::to_string(range.first.value) +
                 " stands in the images alone, which are on the storage nodes"});
}

// Also the targets of rollbacks that an image does not have yet: its node asks what they changed.
std::optional<SequenceNumber> LoggerPart::oldest_pinned() const {
  std::optional<SequenceNumber> oldest = logged_.oldest_pinned();
  for (const SequenceNumber target : logged_.index().rollback_targets(durable())) {
    if (!oldest || target < *oldest) oldest = target;
  }
  return oldest;
}

void LoggerPart::punch(std::vector<BlockRange> /*ranges*/, volume::Done done) { done({}); }

}  // namespace mariner::cluster
