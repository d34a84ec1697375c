// What must be done before a portion can be forgotten: what moments show is logged again, images
// are punched, older before-images are made void. See reclaimer.h.
#include <algorithm>
#include <iterator>
#include <utility>

#include "proto/check.h"
#include "server/volume/history.h"
#include "server/volume/reclaimer.h"

namespace mariner::volume {

using Need = ReleaseJudge::Need;
using Verdict = ReleaseJudge::Verdict;

namespace {

// Those of `ranges` that what `done` covers does not contain.
std::vector<BlockRange> those_not_within(const std::vector<BlockRange>& ranges,
                                         const std::vector<BlockRange>& done) {
  const std::vector<BlockRange> covered = index::merge_extents(done);
  std::vector<BlockRange> out;
  for (const BlockRange& range : ranges) {
    const auto behind = std::ranges::upper_bound(covered, range.first, {}, &BlockRange::first);
    if (behind == covered.begin() || !std::prev(behind)->contains(range)) out.push_back(range);
  }
  return out;
}

// The blocks that something is done for before they can be forgotten; they ascend.
std::vector<BlockRange> to_prepare(const Verdict& verdict) {
  std::vector<BlockRange> all;
  for (const auto* const some : {&verdict.to_rebase, &verdict.to_punch, &verdict.to_move}) {
    all.insert(all.end(), some->begin(), some->end());
  }
  for (const KeptShown& shown : verdict.to_keep) all.push_back(shown.range);
  return index::merge_extents(std::move(all));
}

// The parts of `range` that `ranges`, which ascend, leave.
std::vector<BlockRange> without(BlockRange range, const std::vector<BlockRange>& ranges) {
  std::vector<BlockRange> left;
  Lbn at = range.first;
  auto next = std::ranges::upper_bound(ranges, at, {}, [](const BlockRange& r) { return r.end(); });
  for (; next != ranges.end() && next->first < range.end(); ++next) {
    if (at < next->first) left.push_back(BlockRange::between(at, next->first));
    at = next->end();
  }
  if (at < range.end()) left.push_back(BlockRange::between(at, range.end()));
  return left;
}

}  // namespace

void Reclaimer::prepare(const std::shared_ptr<Preparation>& preparation, const Verdict& verdict) {
  VolumeState& state = state_of_next();
  ++preparation->times;
  preparation->waiting = 1;
  const auto done = [this, preparation](const Result<void>& result) {
    prepared(preparation, result);
  };
  // First, because what follows may take it away.
  if (!verdict.to_keep.empty()) {
    preparation->to_keep = verdict.to_keep;
    keep_some(preparation);
    return prepared(preparation, {});
  }
  for (const BlockRange& range : verdict.to_rebase) {
    ++preparation->waiting;
    state.volume->logged().log().log_rebase(range, done);
  }
  const std::vector<BlockRange> to_punch = those_not_within(verdict.to_punch, preparation->punched);
  if (!to_punch.empty()) {
    preparation->punched.insert(preparation->punched.end(), to_punch.begin(), to_punch.end());
    ++preparation->waiting;
    state.volume->punch(to_punch, done);
  }
  preparation->to_move = those_not_within(verdict.to_move, preparation->moved);
  preparation->moved.insert(preparation->moved.end(), preparation->to_move.begin(),
                            preparation->to_move.end());
  move_some(preparation);
  prepared(preparation, {});
}

void Reclaimer::move_some(const std::shared_ptr<Preparation>& preparation) {
  while (!preparation->to_move.empty() && preparation->blocks_under_way < kMovedBlocksAtOnce) {
    BlockRange& left = preparation->to_move.back();
    const BlockRange piece{left.first,
                           std::min(left.count, BlockCount{History::kBeforeImageBlocksMax})};
    left = BlockRange::between(piece.end(), left.end());
    if (left.empty()) preparation->to_move.pop_back();
    ++preparation->waiting;
    preparation->blocks_under_way += piece.count.value;
    move(state_of_next(), piece, [this, preparation, piece](const Result<void>& moved) {
      preparation->blocks_under_way -= piece.count.value;
      if (moved && preparation->result) move_some(preparation);
      prepared(preparation, moved);
    });
  }
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
                         const Result<void>& result) {
  if (!result && preparation->result) preparation->result = result;
  if (--preparation->waiting > 0) return;
  if (!preparation->result) return finish(preparation->result.error());
  judge([this, preparation](const Verdict& verdict) { forget(preparation, verdict); });
}

// It may have made current again what was moved, whose before-image is void then, or zeros of what
// was punched and written since.
void Reclaimer::begin_anew_after_rollback(Preparation& preparation) {
  const SequenceNumber last = state_of_next().volume->logged().index().last_rollback();
  if (std::exchange(preparation.last_rollback, last) == last) return;
  preparation.punched.clear();
  preparation.moved.clear();
}

// If what was prepared is all that it needs, nothing keeps this portion any more. Nor does anything
// keep the blocks of it that need nothing: only the others are prepared, and judged again.
void Reclaimer::forget(const std::shared_ptr<Preparation>& preparation, const Verdict& verdict) {
  const VolumeId volume = portions_[next_].volume;
  if (verdict.need != Need::kNone) return needed(verdict.need, volume);
  begin_anew_after_rollback(*preparation);
  const bool ready = verdict.to_keep.empty() && verdict.to_rebase.empty() &&
                     those_not_within(verdict.to_punch, preparation->punched).empty() &&
                     those_not_within(verdict.to_move, preparation->moved).empty();
  volume::BaseMap& base = state_of_next().volume->logged().base_map();
  if (!ready) {
    const bool again = !stopping_ && preparation->times < kPreparationsMax;
    if (!again) return finish(Report{Outcome::kLater, volume});
    const std::vector<BlockRange> rest = to_prepare(verdict);
    for (const BlockRange& range : verdict.to_base) {
      for (const BlockRange& part : without(range, rest)) base.add(part);
    }
    portions_[next_].ranges = rest;
    return prepare(preparation, verdict);
  }
  for (const BlockRange& range : verdict.to_base) base.add(range);
  // The image has zeros for their base now, which it did not show before.
  for (const BlockRange& range : verdict.to_punch) base.add(range);
  ++next_;
  parts_.executor.in_next_turn(if_alive([this] { forget_some(); }));
}

}  // namespace mariner::volume
