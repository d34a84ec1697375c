#include "server/volume/reclaimer.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {

using logging::LogLocation;
using logging::Record;
using Need = ReleaseJudge::Need;

Reclaimer::~Reclaimer() {
  *alive_ = false;
  CHECK_MSG(idle(), "a reclaimer is destroyed in use");
}

void Reclaimer::reclaim(Done done) {
  CHECK(idle());
  done_ = std::move(done);
  records_ = std::make_shared<Records>();
  next_ = 0;
  blocks_to_move_ = 0;
  // The lists' own order must not be looked at from the other thread.
  std::vector<logging::LiveTracks> disks;
  bool complete = false;
  for (const auto& member : parts_.log.members()) {
    const std::uint64_t oldest = member->tracks.oldest();
    const std::uint64_t current = member->log_disk->current_allocation();
    complete = complete || oldest < current;
    logging::LiveTracks live{.disk = member->disk,
                             .superblock = member->superblock,
                             .oldest = oldest,
                             .current = current,
                             .current_first_batch = member->log_disk->track_first_batch(),
                             .finished = member->log_disk->finished(),
                             .tracks = {}};
    if (oldest <= current) {
      live.tracks = logging::allocated_from(member->tracks, oldest, current - oldest + 1);
      std::erase_if(live.tracks,
                    [&](const logging::Allocated& a) { return a.allocation > current; });
    }
    disks.push_back(std::move(live));
  }
  if (!complete) {
    return parts_.executor.post([this, alive = alive_] {
      if (*alive) finish(Report{Outcome::kNothing, {}});
    });
  }
  // Below it nothing can come any more.
  const std::uint64_t frontier = parts_.log.writer().ordinal_frontier();
  auto oldest = std::make_shared<std::optional<logging::OldestRecords>>();
  parts_.worker.run(
      [disks = std::move(disks), from = given_up_, oldest]() -> Result<void> {
        auto read = logging::read_oldest_records(disks, from);
        if (!read) return read.error();
        *oldest = *std::move(read);
        return {};
      },
      [this, oldest, frontier](Result<void> read) {
        if (!read) return finish(read.error());
        CHECK(oldest->has_value());
        if ((*oldest)->end_ordinal > frontier) return finish(Report{Outcome::kLater, {}});
        *records_ = std::exchange((*oldest)->records, {});
        oldest_ = **oldest;
        group();
      });
}

// The latest that may be: up to the moment before the first one to keep.
index::IndexMoment Reclaimer::horizon_of(VolumeId id, Volume& volume, bool& lags) {
  const index::VersionIndex& index = volume.index();
  const VersionTime keep = owner_.keep_from(id);
  index::IndexMoment at =
      keep.ns == 0 ? index::IndexMoment{} : index.moment_at(VersionTime{keep.ns - 1});
  const SequenceNumber settled = volume.replicator().coordinator().settled();
  if (at.sequence > settled) at = index.moment_of(settled);
  // What waits for the image is written from the history.
  const Storage* storage = volume.storage();
  if (storage != nullptr && at.sequence > storage->durable()) {
    at = index.moment_of(storage->durable());
    lags = true;
  }
  if (const auto target = volume.live().oldest_target(); target && *target < at.sequence) {
    at = index.moment_of(*target);
  }
  return at.sequence > index.oldest().sequence ? at : index.oldest();
}

// Which volumes the track has records of, and how far each may be given up.
void Reclaimer::group() {
  for (const auto& [record, location] : *records_) {
    VolumeState& state = volumes_[record.volume];
    state.last = std::max({state.last, record.sequence, record.target_sequence});
  }
  for (auto it = volumes_.begin(); it != volumes_.end();) {
    it->second.volume = owner_.find(it->first);
    if (it->second.volume == nullptr) {
      it = volumes_.erase(it);
      continue;
    }
    it->second.horizon = horizon_of(it->first, *it->second.volume, it->second.lags);
    ++it;
  }
  judge_some();
}

ReleaseJudge::Verdict Reclaimer::judge(VolumeState& state, const Record& record,
                                       const LogLocation& location) const {
  Volume& volume = *state.volume;
  const Storage* storage = volume.storage();
  const ReleaseJudge judge(volume.index(), volume.base_map(),
                           {.horizon = state.horizon.sequence,
                            .durable = storage != nullptr ? storage->durable() : SequenceNumber{},
                            .has_image = storage != nullptr});
  return judge.judge(record, location);
}

// What may be logged again for the track's sake. One of a disk that is being emptied gives no room
// for it: then only what can be spared.
std::uint64_t Reclaimer::movable_bytes() const {
  const logging::LogArray::Member* member = parts_.log.find(oldest_.disk);
  if (member == nullptr) return 0;
  if (member->log_disk->finished() && parts_.log.writer().short_of_tracks()) return 0;
  return member->superblock.track_bytes() / 2;
}

void Reclaimer::judge_some() {
  if (stopping_) return finish(Report{Outcome::kLater, {}});
  const std::size_t end = std::min(next_ + kRecordsPerTurn, records_->size());
  for (; next_ < end; ++next_) {
    const auto& [record, location] = (*records_)[next_];
    const auto state = volumes_.find(record.volume);
    if (state == volumes_.end()) continue;
    const ReleaseJudge::Verdict verdict = judge(state->second, record, location);
    if (verdict.need != Need::kNone) return needed(verdict.need, record.volume);
    for (const BlockRange& range : verdict.to_move) blocks_to_move_ += range.count.value;
    if (blocks_to_move_ * kBlockBytes > movable_bytes()) {
      return needed(Need::kHistory, record.volume);
    }
  }
  if (next_ == records_->size()) {
    next_ = 0;
    return store_horizons();
  }
  parts_.executor.post([this, alive = alive_] {
    if (*alive) judge_some();
  });
}

void Reclaimer::needed(Need need, VolumeId volume) {
  // With the image further on the horizon could be, too.
  if (need == Need::kHistory && volumes_[volume].lags) need = Need::kImage;
  if (need == Need::kImage) {
    Storage* storage = volumes_[volume].volume->storage();
    storage->drain([](const Result<void>&) {});
  }
  finish(Report{need == Need::kImage ? Outcome::kLater : Outcome::kNeeded, volume});
}

// Makes what is known of the volumes now durable.
void Reclaimer::store(std::optional<std::uint64_t> ordinal, UniqueFunction<void()> then) {
  std::vector<VolumeRelease> releases;
  for (auto& [id, state] : volumes_) {
    const Storage* storage = state.volume->storage();
    releases.push_back(
        {id,
         {state.horizon, state.last, storage != nullptr ? storage->durable() : SequenceNumber{}},
         state.volume->base_map().changed()});
  }
  owner_.store(std::move(releases), ordinal,
               [this, then = std::move(then)](Result<void> stored) mutable {
                 if (!stored) return finish(stored.error());
                 for (auto& [id, state] : volumes_) state.volume->base_map().stored();
                 then();
               });
}

void Reclaimer::store_horizons() {
  // What a failed log was asked last may be there after a restart, a rollback for instance.
  if (parts_.log.writer().failed()) return finish(Error{ErrorCode::kIo, "the log disk has failed"});
  for (auto& [id, state] : volumes_) {
    // A view, a mark or a rollback may have come since.
    if (horizon_of(id, *state.volume, state.lags).sequence < state.horizon.sequence) {
      return finish(Report{Outcome::kLater, id});
    }
  }
  for (auto& [id, state] : volumes_) state.volume->set_horizon(state.horizon);
  store(std::nullopt, [this] { forget_some(); });
}

// A portion: what it needs first, all at once; then record by record.
void Reclaimer::forget_some() {
  if (stopping_) return finish(Report{Outcome::kLater, {}});
  if (next_ == records_->size()) return store_bases();
  std::size_t end = std::min(next_ + kRecordsPerTurn, records_->size());
  auto preparation = std::make_shared<Preparation>();
  std::uint64_t moved = 0;
  for (std::size_t i = next_; i < end; ++i) {
    const auto& [record, location] = (*records_)[i];
    const auto found = volumes_.find(record.volume);
    if (found == volumes_.end()) continue;
    const ReleaseJudge::Verdict verdict = judge(found->second, record, location);
    if (verdict.need != Need::kNone) return needed(verdict.need, record.volume);
    const auto add = [](std::vector<BlockRange>& to, const std::vector<BlockRange>& ranges) {
      to.insert(to.end(), ranges.begin(), ranges.end());
    };
    if (!verdict.to_rebase.empty()) add(preparation->rebased[record.volume], verdict.to_rebase);
    if (!verdict.to_punch.empty()) add(preparation->punched[record.volume], verdict.to_punch);
    if (!verdict.to_move.empty()) add(preparation->moved[record.volume], verdict.to_move);
    for (const BlockRange& range : verdict.to_move) moved += range.count.value;
    if (moved >= kMovedBlocksPerTurn) end = i + 1;
  }
  const auto done = [this, preparation, end](const Result<void>& result) {
    prepared(preparation, result, end);
  };
  for (auto& [id, ranges] : preparation->rebased) {
    for (const BlockRange& range : ranges) {
      ++preparation->waiting;
      volumes_[id].volume->log().log_rebase(range, done);
    }
  }
  for (auto& [id, ranges] : preparation->punched) {
    ++preparation->waiting;
    volumes_[id].volume->storage()->punch(ranges, done);
  }
  for (auto& [id, ranges] : preparation->moved) {
    for (const BlockRange& range : ranges) {
      ++preparation->waiting;
      move(volumes_[id], range, done);
    }
  }
  prepared(preparation, {}, end);
}

void Reclaimer::move(VolumeState& state, BlockRange range,
                     UniqueFunction<void(Result<void>)> done) {
  Payload bytes = Payload::allocate(range.count.bytes());
  Volume& volume = *state.volume;
  volume.history().read(
      range, state.horizon.sequence, bytes.bytes(),
      [&volume, range, bytes, done = std::move(done)](Result<void> read) mutable {
        if (!read) return done(read.error());
        const std::size_t length = bytes.size();
        volume.log().log_before_image(range, {std::move(bytes), 0, length}, true, std::move(done));
      });
}

void Reclaimer::prepared(const std::shared_ptr<Preparation>& preparation,
                         const Result<void>& result, std::size_t end) {
  if (!result && preparation->result) preparation->result = result;
  if (--preparation->waiting > 0) return;
  if (!preparation->result) return finish(preparation->result.error());
  while (next_ < end) {
    if (!forget_one(*preparation)) return;
  }
  parts_.executor.post([this, alive = alive_] {
    if (*alive) forget_some();
  });
}

// False: it has come to its end.
bool Reclaimer::forget_one(const Preparation& preparation) {
  const auto& [record, location] = (*records_)[next_];
  const auto found = volumes_.find(record.volume);
  if (found == volumes_.end()) {
    ++next_;
    return true;
  }
  Volume& volume = *found->second.volume;
  const ReleaseJudge::Verdict verdict = judge(found->second, record, location);
  if (verdict.need != Need::kNone) {
    needed(verdict.need, record.volume);
    return false;
  }
  const auto all_done = [&](const std::vector<BlockRange>& ranges,
                            const std::map<VolumeId, std::vector<BlockRange>>& done) {
    const auto of_volume = done.find(record.volume);
    return std::all_of(ranges.begin(), ranges.end(), [&](BlockRange range) {
      return of_volume != done.end() &&
             std::any_of(of_volume->second.begin(), of_volume->second.end(),
                         [&](BlockRange whole) { return whole.contains(range); });
    });
  };
  const bool ready = verdict.to_rebase.empty() && all_done(verdict.to_punch, preparation.punched) &&
                     all_done(verdict.to_move, preparation.moved);
  if (!ready) {  // something has changed meanwhile
    finish(Report{Outcome::kLater, record.volume});
    return false;
  }
  for (const BlockRange& range : verdict.to_base) volume.base_map().add(range);
  volume.forget(record, location);
  ++next_;
  return true;
}

void Reclaimer::store_bases() {
  store(std::max(given_up_, oldest_.end_ordinal), [this] { release(); });
}

void Reclaimer::release() {
  given_up_ = std::max(given_up_, oldest_.end_ordinal);
  const logging::LogArray::Member* member = parts_.log.find(oldest_.disk);
  if (stopping_ || member == nullptr || !member->recycler->idle() ||
      member->tracks.oldest() >= member->log_disk->current_allocation()) {
    return finish(Report{Outcome::kLater, {}});
  }
  member->recycler->release(member->tracks.oldest() + 1, [this](Result<void> released) {
    if (!released) return finish(released.error());
    finish(Report{Outcome::kFreed, {}});
  });
}

void Reclaimer::finish(Result<Report> report) {
  records_.reset();
  volumes_.clear();
  std::exchange(done_, nullptr)(std::move(report));
}

}  // namespace mariner::volume
