#include "server/cluster/logger_part.h"

#include <algorithm>

#include "logging/record.h"
#include "replication/wire.h"

namespace mariner::cluster {
namespace {

// What another node sends is no larger than what the log takes.
static_assert(replication::kWirePayloadBytesMax <=
              std::size_t{logging::kRecordPayloadBlocksMax} * kBlockBytes);

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

LoggerPart::LoggerPart(volume::LoggedVolume::Options options,
                       const replication::LoggerRole::Start& start, Parts parts,
                       KeepBeginning keep_beginning)
    : executor_(parts.executor),
      keep_beginning_(std::move(keep_beginning)),
      logged_(std::move(options), parts.log, base_),
      host_(start, parts.executor, participant_, parts.promises) {}

// The images hold what the volume was, as if the log had given up all that came before.
void LoggerPart::begin_anew(SequenceNumber at, VersionTime time, volume::Done done) {
  if (!keep_beginning_) {
    executor_.post([done = std::move(done)]() mutable {
      done(Error{ErrorCode::kInvalidArgument, "a journal has no history to begin"});
    });
    return;
  }
  volume::VolumeRelease release;
  release.volume = logged_.log().volume();
  release.horizon = {.moment = {at, time}, .last = at, .frontier = at, .given_up = at};
  release.based_everywhere = true;
  keep_beginning_(std::move(release),
                  [this, at, time, done = std::move(done)](Result<void> kept) mutable {
                    if (kept) {
                      logged_.base_map().add_all();
                      logged_.index().set_horizon({at, time});
                      logged_.index().set_stored_horizon(at);
                      logged_.index().set_kept({});
                      logged_.index().forget_through(at, 0);
                    }
                    done(std::move(kept));
                  });
}

// Also the targets of rollbacks that an image does not have yet: its node asks what they changed.
std::optional<SequenceNumber> LoggerPart::oldest_pinned() const {
  std::optional<SequenceNumber> oldest = logged_.oldest_pinned();
  for (const SequenceNumber target : logged_.index().rollback_targets(durable())) {
    // (What kept ones show is no hindrance.)
    if (target < logged_.index().oldest().sequence) continue;
    if (!oldest || target < *oldest) oldest = target;
  }
  return oldest;
}

void LoggerPart::punch(std::vector<BlockRange> /*ranges*/, volume::Done done) { done({}); }

}  // namespace mariner::cluster
