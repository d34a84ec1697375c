#include "server/volume/reclaimer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "proto/check.h"

namespace mariner::volume {

using logging::LogLocation;
using logging::Record;
using Need = ReleaseJudge::Need;

namespace {

bool is_write(logging::RecordType type) {
  return type == logging::RecordType::kWrite || type == logging::RecordType::kZero ||
         type == logging::RecordType::kRollback;
}

}  // namespace

Reclaimer::~Reclaimer() {
  *alive_ = false;
  CHECK_MSG(idle(), "a reclaimer is destroyed in use");
}

void Reclaimer::reclaim(Done done) {
  CHECK(idle());
  done_ = std::move(done);
  next_ = 0;
  blocks_to_move_ = 0;
  std::vector<logging::LiveTracks> disks = logging::live_tracks(parts_.log);
  const bool complete = std::ranges::any_of(
      disks, [](const logging::LiveTracks& live) { return live.oldest < live.current; });
  if (!complete) {
    return parts_.executor.post([this, alive = alive_] {
      if (*alive) finish(Report{Outcome::kNothing, {}});
    });
  }
  OldestTracks tracks;
  for (const logging::LiveTracks& live : disks) {
    tracks.push_back({live.superblock.disk, live.oldest, live.oldest < live.current});
  }
  if (records_ != nullptr && tracks == read_) {
    return parts_.executor.post([this, alive = alive_] {
      if (*alive) group();
    });
  }
  records_.reset();
  read_ = std::move(tracks);
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
        records_ = std::make_shared<Records>(std::exchange((*oldest)->records, {}));
        oldest_ = **oldest;
        group();
      });
}

Reclaimer::Bounds Reclaimer::bounds_of(VolumeId id, Reclaimable& volume) {
  if (const auto spare = volume.spare_through()) return {VersionTime{UINT64_MAX}, *spare, false};
  Bounds bounds{owner_.keep_from(id), volume.settled(), false};
  // What a rollback brings back is read as of its target, until the image has it.
  const SequenceNumber durable = volume.durable();
  if (volume.has_image() && durable < volume.logged().index().last_rollback()) {
    bounds.most = std::min(bounds.most, durable);
    bounds.lags = true;
  }
  if (const auto pinned = volume.oldest_pinned(); pinned && *pinned < bounds.most) {
    bounds.most = *pinned;
  }
  return bounds;
}

// Whether the horizon that was found may be still the one: a view, a mark or a rollback may have
// come since.
bool Reclaimer::still_holds(VolumeId id, const VolumeState& state) {
  if (state.horizon.sequence <= state.volume->logged().index().oldest().sequence) return true;
  const Bounds bounds = bounds_of(id, *state.volume);
  return state.horizon.time < bounds.keep && state.horizon.sequence <= bounds.most;
}

// Which volumes the track has records of.
void Reclaimer::group() {
  for (const auto& [record, location] : *records_) {
    VolumeState& state = volumes_[record.volume];
    state.last = std::max({state.last, record.sequence, record.target_sequence});
    if (is_write(record.type)) state.given_up = std::max(state.given_up, record.sequence);
    state.payload_bytes += std::uint64_t{record.payload_blocks} * kBlockBytes;
  }
  for (auto it = volumes_.begin(); it != volumes_.end();) {
    it->second.volume = owner_.find(it->first);
    it = it->second.volume == nullptr ? volumes_.erase(it) : std::next(it);
  }
  find_horizons(volumes_.begin());
}

// How far each may be given up: up to the moment before the first one to keep.
void Reclaimer::find_horizons(std::map<VolumeId, VolumeState>::iterator next) {
  if (next == volumes_.end()) return judge_some();
  VolumeState& state = next->second;
  index::StoredIndex& index = state.volume->logged().index();
  const Bounds bounds = bounds_of(next->first, *state.volume);
  state.horizon = index.oldest();
  if (bounds.keep.ns == 0) return find_horizons(std::next(next));
  const auto found = [this, next](const Result<index::IndexMoment>& at) {
    if (!at) return finish(at.error());
    VolumeState& of = next->second;
    if (at->sequence > of.volume->logged().index().oldest().sequence) of.horizon = *at;
    find_horizons(std::next(next));
  };
  index.moment_at({bounds.keep.ns - 1},
                  [&index, &state, bounds, found](const Result<index::IndexMoment>& at) {
                    if (!at || at->sequence <= bounds.most) return found(at);
                    state.lags = bounds.lags;
                    index.moment_of(bounds.most, found);
                  });
}

void Reclaimer::judge(std::size_t end, UniqueFunction<void(const Verdicts&)> then) {
  auto verdicts = std::make_shared<Verdicts>();
  if (volumes_.empty()) {
    verdicts->resize(end - next_);
    return then(*verdicts);
  }
  const auto compute = [this, end, verdicts](index::BlockReader& reader) {
    verdicts->clear();
    for (std::size_t i = next_; i < end; ++i) {
      const auto& [record, location] = (*records_)[i];
      ReleaseJudge::Verdict& verdict = verdicts->emplace_back();
      const auto state = volumes_.find(record.volume);
      if (state == volumes_.end()) continue;
      Reclaimable& volume = *state->second.volume;
      if (volume.spare_through()) {
        if (record.sequence > state->second.horizon.sequence) verdict.need = Need::kHistory;
        continue;
      }
      const index::VersionLookup lookup(volume.logged().index(), reader);
      const ReleaseJudge judge(lookup, volume.logged().base_map(),
                               {.horizon = state->second.horizon.sequence,
                                .durable = volume.durable(),
                                .has_image = volume.has_image()});
      verdict = judge.judge(record, location);
    }
  };
  index::consult(volumes_.begin()->second.volume->logged().index().store(), compute,
                 [this, verdicts, then = std::move(then)](const Result<void>& looked) mutable {
                   if (!looked) return finish(looked.error());
                   then(*verdicts);
                 });
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
  judge(std::min(next_ + kRecordsPerTurn, records_->size()),
        [this](const Verdicts& verdicts) { judged(verdicts); });
}

void Reclaimer::judged(const Verdicts& verdicts) {
  for (const ReleaseJudge::Verdict& verdict : verdicts) {
    const VolumeId volume = (*records_)[next_++].first.volume;
    if (verdict.need != Need::kNone) return needed(verdict.need, volume);
    for (const BlockRange& range : verdict.to_move) blocks_to_move_ += range.count.value;
    if (blocks_to_move_ * kBlockBytes > movable_bytes()) return needed(Need::kHistory, volume);
  }
  if (next_ == records_->size()) {
    next_ = 0;
    return store_horizons([this] {
      for (auto& [id, state] : volumes_) {
        state.volume->logged().index().begin_forgetting(
            state.given_up, std::max(given_up_, oldest_.end_ordinal) - 1);
      }
      forget_some();
    });
  }
  parts_.executor.post([this, alive = alive_] {
    if (*alive) judge_some();
  });
}

void Reclaimer::needed(Need need, VolumeId volume) {
  // With the image further on the horizon could be, too.
  if (need == Need::kHistory && volumes_[volume].lags) need = Need::kImage;
  if (need == Need::kImage) return wait_for_image(volume);
  finish(Report{Outcome::kNeeded, volume});
}

// Makes what is known of the volumes now durable.
void Reclaimer::store(std::optional<std::uint64_t> ordinal, UniqueFunction<void()> then) {
  std::vector<VolumeRelease> releases;
  for (auto& [id, state] : volumes_) {
    releases.push_back({id,
                        {.moment = state.horizon,
                         .last = ordinal ? state.last : SequenceNumber{},
                         .frontier = state.volume->durable(),
                         .given_up = ordinal ? state.given_up : SequenceNumber{}},
                        state.volume->logged().base_map().changed()});
  }
  owner_.store(std::move(releases), ordinal,
               [this, then = std::move(then)](Result<void> stored) mutable {
                 if (!stored) return finish(stored.error());
                 for (auto& [id, state] : volumes_) {
                   state.volume->logged().base_map().stored();
                   state.volume->logged().index().set_stored_horizon(state.horizon.sequence);
                 }
                 then();
               });
}

void Reclaimer::store_horizons(UniqueFunction<void()> then) {
  // What a failed log was asked last may be there after a restart, a rollback for instance.
  if (parts_.log.writer().failed()) return finish(Error{ErrorCode::kIo, "the log disk has failed"});
  for (auto& [id, state] : volumes_) {
    if (!still_holds(id, state)) return finish(Report{Outcome::kLater, id});
  }
  for (auto& [id, state] : volumes_) state.volume->logged().index().set_horizon(state.horizon);
  store(std::nullopt, std::move(then));
}

// The image lacks a record. Before what it lacks overwrites a base, that is logged, for which there
// may be no room: so what no moment from the horizons on shows is given up already, which makes
// most of that unnecessary.
void Reclaimer::wait_for_image(VolumeId volume) {
  const auto later = [this, volume] {
    volumes_[volume].volume->hurry();
    finish(Report{Outcome::kLater, volume});
  };
  const bool further = std::ranges::any_of(volumes_, [](const auto& each) {
    return each.second.horizon.sequence > each.second.volume->logged().index().stored_horizon();
  });
  if (!further || stopping_) return later();
  store_horizons(later);
}

// A portion: what it needs first, all at once.
void Reclaimer::forget_some() {
  if (stopping_) return finish(Report{Outcome::kLater, {}});
  if (next_ == records_->size()) return store_bases();
  judge(std::min(next_ + kRecordsPerTurn, records_->size()),
        [this](const Verdicts& verdicts) { prepare(verdicts); });
}

void Reclaimer::prepare(const Verdicts& verdicts) {
  std::size_t end = next_;
  auto preparation = std::make_shared<Preparation>();
  std::uint64_t moved = 0;
  for (const ReleaseJudge::Verdict& verdict : verdicts) {
    const VolumeId volume = (*records_)[end++].first.volume;
    if (verdict.need != Need::kNone) return needed(verdict.need, volume);
    const auto add = [](std::vector<BlockRange>& to, const std::vector<BlockRange>& ranges) {
      to.insert(to.end(), ranges.begin(), ranges.end());
    };
    if (!verdict.to_rebase.empty()) add(preparation->rebased[volume], verdict.to_rebase);
    if (!verdict.to_punch.empty()) add(preparation->punched[volume], verdict.to_punch);
    if (!verdict.to_move.empty()) add(preparation->moved[volume], verdict.to_move);
    for (const BlockRange& range : verdict.to_move) moved += range.count.value;
    if (moved >= kMovedBlocksPerTurn) break;
  }
  const auto done = [this, preparation, end](const Result<void>& result) {
    prepared(preparation, result, end);
  };
  for (auto& [id, ranges] : preparation->rebased) {
    for (const BlockRange& range : ranges) {
      ++preparation->waiting;
      volumes_[id].volume->logged().log().log_rebase(range, done);
    }
  }
  for (auto& [id, ranges] : preparation->punched) {
    ++preparation->waiting;
    volumes_[id].volume->punch(ranges, done);
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
  LoggedVolume& volume = state.volume->logged();
  volume.reader().read(
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
  judge(end, [this, preparation](const Verdicts& verdicts) { forget(*preparation, verdicts); });
}

// What was prepared is all that it needs: nothing keeps these records any more.
void Reclaimer::forget(const Preparation& preparation, const Verdicts& verdicts) {
  const auto all_done = [](VolumeId volume, const std::vector<BlockRange>& ranges,
                           const std::map<VolumeId, std::vector<BlockRange>>& done) {
    const auto of_volume = done.find(volume);
    return std::ranges::all_of(ranges, [&](BlockRange range) {
      return of_volume != done.end() &&
             std::ranges::any_of(of_volume->second,
                                 [&](BlockRange whole) { return whole.contains(range); });
    });
  };
  for (const ReleaseJudge::Verdict& verdict : verdicts) {
    const VolumeId volume = (*records_)[next_].first.volume;
    if (verdict.need != Need::kNone) return needed(verdict.need, volume);
    const bool ready = verdict.to_rebase.empty() &&
                       all_done(volume, verdict.to_punch, preparation.punched) &&
                       all_done(volume, verdict.to_move, preparation.moved);
    // Something has changed meanwhile.
    if (!ready) return finish(Report{Outcome::kLater, volume});
    for (const BlockRange& range : verdict.to_base)
      volumes_[volume].volume->logged().base_map().add(range);
    ++next_;
  }
  parts_.executor.post([this, alive = alive_] {
    if (*alive) forget_some();
  });
}

void Reclaimer::store_bases() {
  store(std::max(given_up_, oldest_.end_ordinal), [this] { release(); });
}

void Reclaimer::release() {
  given_up_ = std::max(given_up_, oldest_.end_ordinal);
  read_.clear();
  parts_.log.writer().forget_withdrawn(given_up_);
  for (auto& [id, state] : volumes_) {
    state.volume->logged().forget_through(state.given_up, given_up_ - 1, state.payload_bytes);
  }
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
  const bool again =
      report && (report->outcome == Outcome::kLater || report->outcome == Outcome::kNeeded);
  if (!again) records_.reset();
  volumes_.clear();
  std::exchange(done_, nullptr)(std::move(report));
}

}  // namespace mariner::volume
