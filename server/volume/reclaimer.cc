#include "server/volume/reclaimer.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"
#include "server/volume/history.h"

namespace mariner::volume {

using Need = ReleaseJudge::Need;
using Verdict = ReleaseJudge::Verdict;

Reclaimer::~Reclaimer() {
  *alive_ = false;
  CHECK_MSG(idle(), "a reclaimer is destroyed in use");
}

void Reclaimer::reclaim(std::size_t tracks_max, Done done) {
  CHECK(idle());
  CHECK(tracks_max >= 1 && tracks_max <= kTracksMax);
  done_ = std::move(done);
  std::vector<logging::LiveTracks> disks = logging::live_tracks(parts_.log);
  LiveEnds ends;
  bool same_oldest = read_.size() == disks.size();
  for (std::size_t i = 0; i < disks.size(); ++i) {
    ends.emplace_back(disks[i].superblock.disk, disks[i].oldest, disks[i].current);
    same_oldest = same_oldest && std::get<0>(ends[i]) == std::get<0>(read_[i]) &&
                  std::get<1>(ends[i]) == std::get<1>(read_[i]);
  }
  const bool complete = std::ranges::any_of(
      disks, [](const logging::LiveTracks& live) { return live.oldest < live.current; });
  const bool known =
      same_oldest && !digests_.empty() && (digests_.size() >= tracks_max || ends == read_);
  if (!complete || known) {
    return parts_.executor.post(if_alive([this, complete, tracks_max] {
      if (!complete) return finish(Report{});
      group(tracks_max);
    }));
  }
  read_ = std::move(ends);
  read(std::move(disks), tracks_max);
}

void Reclaimer::read(std::vector<logging::LiveTracks> disks, std::size_t tracks_max) {
  digests_.clear();
  // Below it nothing can come any more.
  const std::uint64_t frontier = parts_.log.writer().ordinal_frontier();
  auto digests = std::make_shared<std::vector<TrackDigest>>();
  parts_.worker.run(
      [disks = std::move(disks), from = given_up_, tracks_max, digests]() -> Result<void> {
        auto digested = digest_oldest_tracks(disks, from, tracks_max);
        if (!digested) return digested.error();
        *digests = *std::move(digested);
        return {};
      },
      [this, digests, frontier, tracks_max](Result<void> digested) {
        if (!digested) return finish(digested.error());
        digests_ = std::move(*digests);
        while (!digests_.empty() && digests_.back().end_ordinal > frontier) digests_.pop_back();
        if (digests_.empty()) return finish(Report{Outcome::kLater, {}});
        group(tracks_max);
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

// Which volumes the tracks have records of.
void Reclaimer::group(std::size_t tracks_max) {
  tracks_ = std::min(tracks_max, digests_.size());
  for (std::size_t i = 0; i < tracks_; ++i) {
    for (const auto& [id, digest] : digests_[i].volumes) {
      if (volumes_.contains(id)) continue;
      if (auto volume = owner_.find(id)) volumes_[id].volume = std::move(volume);
    }
  }
  find_horizons(volumes_.begin());
}

// How far each may be given up: up to the moment before the first one to keep.
void Reclaimer::find_horizons(NextVolume next) {
  if (next == volumes_.end()) return choose_tracks();
  VolumeState& state = next->second;
  index::StoredIndex& index = state.volume->logged().index();
  const Bounds bounds = bounds_of(next->first, *state.volume);
  state.horizon = index.oldest();
  if (bounds.keep.ns == 0) return find_kept(next);
  const auto found = [this, next](const Result<index::IndexMoment>& at) {
    if (!at) return finish(at.error());
    VolumeState& of = next->second;
    if (at->sequence > of.volume->logged().index().oldest().sequence) of.horizon = *at;
    find_kept(next);
  };
  index.moment_at({bounds.keep.ns - 1},
                  [&index, &state, bounds, found](const Result<index::IndexMoment>& at) {
                    if (!at || at->sequence <= bounds.most) return found(at);
                    state.lags = bounds.lags;
                    index.moment_of(bounds.most, found);
                  });
}

ReleaseJudge::Facts Reclaimer::facts_of(const VolumeState& state) const {
  return {.horizon = state.horizon.sequence,
          .durable = state.volume->durable(),
          .has_image = state.volume->has_image(),
          .given_up = state.digest.given_up,
          .end_ordinal = end_ordinal(),
          .kept = state.kept};
}

Need Reclaimer::judge_numbers(VolumeId id, const VolumeDigest& digest) {
  const auto state = volumes_.find(id);
  if (state == volumes_.end()) return Need::kNone;
  if (state->second.volume->spare_through()) {
    return digest.highest > state->second.horizon.sequence ? Need::kHistory : Need::kNone;
  }
  return ReleaseJudge::judge_numbers(digest, facts_of(state->second));
}

// As many of the tracks as the horizons and the images have reached.
void Reclaimer::choose_tracks() {
  for (std::size_t i = 0; i < tracks_; ++i) {
    for (const auto& [id, digest] : digests_[i].volumes) {
      const Need need = judge_numbers(id, digest);
      if (need == Need::kNone) continue;
      if (i > 0) return try_tracks(i);
      may_try_fewer_ = false;
      return needed(need, id);
    }
  }
  try_tracks(tracks_);
}

// What they hold together is sorted by the worker, because it may be very much.
void Reclaimer::try_tracks(std::size_t count) {
  tracks_ = count;
  may_try_fewer_ = count > 1;
  struct Part {
    VolumeDigest* digest;
    std::vector<const VolumeDigest*> of_tracks;
    index::RecentWrites::Periods overwritten;
  };
  std::vector<Part> parts;
  for (auto& [id, state] : volumes_) {
    state.digest = {};
    Part part{&state.digest, {}, {}};
    SequenceNumber given_up;
    for (std::size_t i = 0; i < count; ++i) {
      const auto of_track = digests_[i].volumes.find(id);
      if (of_track == digests_[i].volumes.end()) continue;
      part.of_tracks.push_back(&of_track->second);
      given_up = std::max(given_up, of_track->second.given_up);
    }
    part.overwritten = overwritten(state, given_up);
    parts.push_back(std::move(part));
  }
  parts_.worker.run(
      [parts = std::move(parts)]() -> Result<void> {
        for (const Part& part : parts) {
          for (const VolumeDigest* each : part.of_tracks) part.digest->add(*each);
          part.digest->complete();
          if (part.overwritten.empty()) continue;
          for (auto* ranges : {&part.digest->written, &part.digest->zeroed}) {
            *ranges = index::without_written(*ranges, part.overwritten);
          }
        }
        return {};
      },
      [this](const Result<void>& sorted) {
        if (!sorted) return finish(sorted.error());
        add_brought_back(volumes_.begin());
      });
}

// Where what the tracks hold is known to have been replaced before the horizon: of these blocks
// nothing is needed, whoever asks (ReleaseJudge). Kept moments, and others that a rollback goes
// back to, may show what is older. Whether a rollback has come since, store_horizons() sees; behind
// it none goes back to before the horizon.
index::RecentWrites::Periods Reclaimer::overwritten(VolumeState& state, SequenceNumber given_up) {
  state.left_out_as_of.reset();
  if (!state.kept.empty() || state.volume->spare_through()) return {};
  const index::StoredIndex& index = state.volume->logged().index();
  auto periods = index.written_within(given_up, state.horizon.sequence);
  if (!periods.empty()) state.left_out_as_of = index.last_rollback();
  return periods;
}

// What is judged in one turn: so many ranges, and so many blocks, of zeros far more. (A record of
// zeros may be as long as the volume.)
void Reclaimer::divide() {
  portions_.clear();
  for (auto& [id, state] : volumes_) {
    if (state.volume->spare_through()) continue;
    divide(id, std::exchange(state.digest.written, {}), kBlocksPerTurn);
    divide(id, std::exchange(state.digest.zeroed, {}), kZeroedBlocksPerTurn);
  }
}

void Reclaimer::divide(VolumeId id, const std::vector<BlockRange>& ranges,
                       std::uint64_t blocks_max) {
  const std::size_t ranges_max = ranges_per_turn();
  std::uint64_t blocks = blocks_max;  // of the last portion
  for (BlockRange left : ranges) {
    while (!left.empty()) {
      if (blocks == blocks_max || portions_.back().ranges.size() >= ranges_max) {
        portions_.push_back({id, {}});
        blocks = 0;
      }
      const BlockCount count = std::min(left.count, BlockCount{blocks_max - blocks});
      portions_.back().ranges.push_back({left.first, count});
      blocks += count.value;
      left = BlockRange::between(left.first + count, left.end());
    }
  }
}

std::size_t Reclaimer::ranges_per_turn() const {
  const double records = parts_.log.writer().records_of_a_batch();
  return std::clamp(static_cast<std::size_t>(records * kRangesPerTurnMin), kRangesPerTurnMin,
                    kRangesPerTurn);
}

std::uint64_t Reclaimer::end_ordinal() const {
  return std::max(given_up_, digests_[tracks_ - 1].end_ordinal);
}

void Reclaimer::judge(UniqueFunction<void(const Verdict&)> then) {
  CHECK(next_ < portions_.size());
  VolumeState& state = state_of_next();
  auto verdict = std::make_shared<Verdict>();
  state.volume->logged().index().consult(
      [this, &state, verdict](const index::VersionLookup& lookup) {
        const ReleaseJudge judge(lookup, state.volume->logged().base_map(), facts_of(state));
        *verdict = judge.judge(portions_[next_].ranges);
      },
      [this, verdict, then = std::move(then)](const Result<void>& looked) mutable {
        if (!looked) return finish(looked.error());
        then(*verdict);
      });
}

UniqueFunction<void()> Reclaimer::if_alive(UniqueFunction<void()> step) const {
  return [step = std::move(step), alive = alive_]() mutable {
    if (*alive) step();
  };
}

void Reclaimer::judge_some() {
  if (stopping_) return finish(Report{Outcome::kLater, {}});
  if (next_ < portions_.size()) return judge([this](const Verdict& verdict) { judged(verdict); });
  next_ = 0;
  store_horizons([this] {
    may_try_fewer_ = false;
    for (auto& [id, state] : volumes_) {
      state.volume->logged().index().begin_forgetting(state.digest.given_up, end_ordinal() - 1);
    }
    forget_some();
  });
}

// Whether one portion has nothing that could keep the tracks, when another one has not: then only
// how much is to be moved remains to be seen, and some of many tell that well enough. (What is
// forgotten is judged again in any case.)
bool Reclaimer::portions_are_alike() const {
  return portions_.size() > kPortionsMany && std::ranges::all_of(volumes_, [](const auto& each) {
           const VolumeState& state = each.second;
           return state.volume->spare_through() ||
                  (state.volume->has_image() && state.kept.empty() &&
                   state.volume->logged().index().rollback_targets(state.horizon.sequence).empty());
         });
}

void Reclaimer::judged(const Verdict& verdict) {
  const VolumeId volume = portions_[next_].volume;
  if (verdict.need != Need::kNone) return needed(verdict.need, volume);
  const std::size_t stands_for = portions_are_alike() ? kPortionsAlike : 1;
  next_ += stands_for;
  for (const BlockRange& range : verdict.to_move) {
    blocks_to_move_ += range.count.value * stands_for;
  }
  for (const KeptShown& shown : verdict.to_keep) {
    if (!shown.zeros) blocks_to_keep_ += shown.range.count.value;
  }
  const bool too_much = blocks_to_move_ * kBlockBytes > movable_bytes() ||
                        (blocks_to_keep_ > 0 && written_again() > keepable_bytes());
  if (too_much) return needed(Need::kHistory, volume);
  parts_.executor.in_next_turn(if_alive([this] { judge_some(); }));
}

void Reclaimer::needed(Need need, VolumeId volume) {
  if (may_try_fewer_) return try_tracks(tracks_ / 2);
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
                         .last = ordinal ? state.digest.last : SequenceNumber{},
                         .frontier = state.volume->durable(),
                         .given_up = ordinal ? state.digest.given_up : SequenceNumber{},
                         .kept = state.kept},
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
    const SequenceNumber last_rollback = state.volume->logged().index().last_rollback();
    if (!still_holds(id, state) || !keeps_what_it_must(id, state) ||
        last_rollback != state.left_out_as_of.value_or(last_rollback)) {
      return finish(Report{Outcome::kLater, id});
    }
  }
  for (auto& [id, state] : volumes_) {
    index::StoredIndex& index = state.volume->logged().index();
    index.set_horizon(state.horizon);
    index.set_kept(state.kept);
  }
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
  if (next_ == portions_.size()) return store_bases();
  judge([this](const Verdict& verdict) { forget(std::make_shared<Preparation>(), verdict); });
}

void Reclaimer::store_bases() {
  store(end_ordinal(), [this] { release(); });
}

void Reclaimer::release() {
  given_up_ = end_ordinal();
  parts_.log.writer().forget_withdrawn(given_up_);
  for (auto& [id, state] : volumes_) {
    state.volume->logged().forget_through(state.digest.given_up, given_up_ - 1,
                                          state.digest.payload_bytes);
  }
  released_ = 0;
  room_ = room([](const logging::LogArray::Member&) { return true; });
  release_next(0);
}

// Frees of each disk in turn what can go of it.
void Reclaimer::release_next(std::size_t disk) {
  for (; disk < read_.size(); ++disk) {
    auto& [number, oldest, end] = read_[disk];
    const auto tracks = static_cast<std::uint64_t>(
        std::count_if(digests_.begin(), digests_.begin() + static_cast<std::ptrdiff_t>(tracks_),
                      [of = number](const TrackDigest& digest) { return digest.disk == of; }));
    const logging::LogArray::Member* member = parts_.log.find(number);
    if (tracks == 0) continue;
    if (stopping_ || member == nullptr || !member->recycler->idle() ||
        member->tracks.oldest() != oldest ||
        oldest + tracks > member->log_disk->current_allocation()) {
      continue;
    }
    return member->recycler->release(oldest + tracks, [this, disk, tracks](Result<void> released) {
      if (!released) return finish(released.error());
      std::get<1>(read_[disk]) += tracks;
      released_ += tracks;
      release_next(disk + 1);
    });
  }
  // What was read of the tracks behind them holds still.
  if (released_ == tracks_) {
    digests_.erase(digests_.begin(), digests_.begin() + static_cast<std::ptrdiff_t>(tracks_));
  } else {
    digests_.clear();
  }
  const Outcome outcome = released_ > 0 ? Outcome::kFreed : Outcome::kLater;
  finish(Report{outcome, {}, released_, written_again(), room_ * released_ / tracks_});
}

void Reclaimer::finish(Result<Report> report) {
  if (!report) digests_.clear();
  portions_.clear();
  volumes_.clear();
  std::exchange(done_, nullptr)(std::move(report));
}

}  // namespace mariner::volume
