// The moments that stay behind the horizon: which they are, what is written again for them, and how
// much may be. See reclaimer.h.
#include <algorithm>
#include <iterator>
#include <utility>

#include "server/volume/history.h"
#include "server/volume/reclaimer.h"

namespace mariner::volume {

void Reclaimer::add_kept(VolumeState& state, const index::KeptMoment& kept) {
  const auto number = [](const index::KeptMoment& each) { return each.moment.sequence; };
  const auto at = std::ranges::lower_bound(state.kept, kept.moment.sequence, {}, number);
  if (at != state.kept.end() && at->moment.sequence == kept.moment.sequence) {
    at->through = std::max(at->through, kept.through);
  } else {
    state.kept.insert(at, kept);
  }
}

// Which moments before the horizon stay. The base is asked for as moment 0, which cannot be one.
void Reclaimer::find_kept(NextVolume next) {
  const auto& [id, volume] = *next;
  VolumeState& state = next->second;
  state.kept.clear();
  if (volume.volume->spare_through()) return find_horizons(std::next(next));
  LoggedVolume& logged = volume.volume->logged();
  const index::IndexMoment oldest = logged.index().oldest();
  const ReclaimerOwner::Wish wish = owner_.to_keep(id);
  state.kept = still_kept(logged, wish);
  for (const index::IndexMoment& moment : wish.moments) {
    if (moment.sequence.value == 0 || moment.sequence < oldest.sequence) continue;
    if (moment.sequence < state.horizon.sequence) add_kept(state, {moment, moment.time});
  }
  std::vector<VersionTime> times;
  for (const VersionTime time : wish.times) {
    if (time >= oldest.time && time < state.horizon.time) times.push_back(time);
  }
  find_kept_at(next, std::move(times));
}

// The index mostly answers at once: neither many moments nor many volumes may pile up on the stack.
void Reclaimer::find_kept_at(NextVolume next, std::vector<VersionTime> times) {
  if (times.empty()) {
    return parts_.executor.post(if_alive([this, next] { find_horizons(std::next(next)); }));
  }
  const VersionTime time = times.back();
  times.pop_back();
  next->second.volume->logged().index().moment_at(
      time,
      [this, next, time, times = std::move(times)](const Result<index::IndexMoment>& at) mutable {
        if (!at) return finish(at.error());
        VolumeState& state = next->second;
        const bool before = at->sequence < state.horizon.sequence;
        if (at->sequence.value != 0 && before) add_kept(state, {*at, time});
        parts_.executor.post(if_alive([this, next, times = std::move(times)]() mutable {
          find_kept_at(next, std::move(times));
        }));
      });
}

// What must be kept may have become more since that was found out.
bool Reclaimer::keeps_what_it_must(VolumeId id, const VolumeState& state) {
  if (state.volume->spare_through()) return true;
  LoggedVolume& logged = state.volume->logged();
  const auto is_kept = [&](SequenceNumber at) {
    return std::ranges::any_of(
        state.kept, [at](const index::KeptMoment& each) { return each.moment.sequence == at; });
  };
  const auto is_lost = [&](SequenceNumber at) {
    const bool goes = at < state.horizon.sequence && logged.index().can_be_opened(at);
    return goes && at.value != 0 && !is_kept(at);
  };
  const ReclaimerOwner::Wish wish = owner_.to_keep(id);
  for (const index::IndexMoment& moment : wish.moments) {
    if (is_lost(moment.sequence)) return false;
  }
  return std::ranges::none_of(logged.index().kept(), [&](const index::KeptMoment& each) {
    return is_lost(each.moment.sequence) && is_in_use(logged, each);
  });
}

// What is as a kept moment shows it because of a rollback that is being given up stands where that
// moment finds it, which may be anywhere.
void Reclaimer::add_brought_back(NextVolume next) {
  const auto has_some = [](const auto& volume) {
    return volume.second.digest.has_rollback && !volume.second.volume->spare_through();
  };
  next = std::find_if(next, volumes_.end(), has_some);
  if (next == volumes_.end()) {
    divide();
    next_ = 0;
    blocks_to_move_ = blocks_to_keep_ = 0;
    return judge_some();
  }
  VolumeState& state = next->second;
  index::StoredIndex& index = state.volume->logged().index();
  index.add_kept_extents(
      index.kept_targets(state.digest.given_up), std::move(state.digest.written),
      [this, next](Result<std::vector<BlockRange>> extents) {
        if (!extents) return finish(extents.error());
        next->second.digest.written = *std::move(extents);
        parts_.executor.post(if_alive([this, next] { add_brought_back(std::next(next)); }));
      });
}

// What may be logged again for the tracks' sake. One of a disk that is being emptied gives no room
// for it: then only what can be spared.
std::uint64_t Reclaimer::movable_bytes() const {
  const bool short_of_tracks = parts_.log.writer().short_of_tracks();
  return room([short_of_tracks](const logging::LogArray::Member& member) {
           return !member.log_disk->finished() || !short_of_tracks;
         }) /
         2;
}

// What the tracks take of the disks that count: less than their length where they are packed. It is
// gained when the last track of a pack goes.
std::uint64_t Reclaimer::room(
    const std::function<bool(const logging::LogArray::Member&)>& counts) const {
  std::uint64_t bytes = 0;
  for (const auto& [number, oldest, end] : read_) {
    const logging::LogArray::Member* member = parts_.log.find(number);
    if (member == nullptr || !counts(*member)) continue;
    std::uint64_t allocation = oldest;
    for (std::size_t i = 0; i < tracks_; ++i) {
      if (digests_[i].disk == number) bytes += member->bytes_of(allocation++);
    }
  }
  return bytes;
}

// The same of all that is written again when some of it is for kept moments: no more than is freed.
std::uint64_t Reclaimer::keepable_bytes() const {
  if (tracks_ > 1 && parts_.log.writer().short_of_tracks()) return movable_bytes();
  std::uint64_t keepable = 0;
  for (std::size_t i = 0; i < tracks_; ++i) {
    const logging::LogArray::Member* member = parts_.log.find(digests_[i].disk);
    if (member != nullptr) keepable += member->superblock.track_bytes();
  }
  return keepable;
}

void Reclaimer::keep_some(const std::shared_ptr<Preparation>& preparation) {
  while (!preparation->to_keep.empty() && preparation->blocks_under_way < kMovedBlocksAtOnce) {
    KeptShown& left = preparation->to_keep.back();
    KeptShown piece = left;
    if (!piece.zeros) {
      piece.range.count = std::min(left.range.count, BlockCount{History::kBeforeImageBlocksMax});
    }
    left.range = BlockRange::between(piece.range.end(), left.range.end());
    if (left.range.empty()) preparation->to_keep.pop_back();
    const std::uint64_t blocks = piece.zeros ? 1 : piece.range.count.value;
    ++preparation->waiting;
    preparation->blocks_under_way += blocks;
    keep(state_of_next(), piece, [this, preparation, blocks](const Result<void>& kept) {
      preparation->blocks_under_way -= blocks;
      if (kept && preparation->result) keep_some(preparation);
      prepared(preparation, kept);
    });
  }
}

void Reclaimer::keep(VolumeState& state, const KeptShown& shown,
                     UniqueFunction<void(Result<void>)> done) {
  LoggedVolume& volume = state.volume->logged();
  if (shown.zeros) return volume.log().log_kept(shown, {}, std::move(done));
  Payload bytes = Payload::allocate(shown.range.count.bytes());
  volume.reader().read(
      shown.range, shown.through, bytes.bytes(),
      [&volume, shown, bytes, done = std::move(done)](Result<void> read) mutable {
        if (!read) return done(read.error());
        const std::size_t length = bytes.size();
        volume.log().log_kept(shown, {std::move(bytes), 0, length}, std::move(done));
      });
}

}  // namespace mariner::volume
