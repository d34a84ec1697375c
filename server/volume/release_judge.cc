#include "server/volume/release_judge.h"

#include <algorithm>
#include <utility>

namespace mariner::volume {

using index::LocatedRun;
using index::VersionLookup;

namespace {

ReleaseJudge::Verdict needing(ReleaseJudge::Need need) {
  ReleaseJudge::Verdict verdict;
  verdict.need = need;
  return verdict;
}

bool is_before_image(const LocatedRun& run) {
  return run.sequence.value == 0 && run.source == LocatedRun::Source::kLog && !run.for_kept;
}

std::vector<VersionLookup::Asked> all_at(std::span<const BlockRange> ranges, SequenceNumber at) {
  std::vector<VersionLookup::Asked> asked;
  asked.reserve(ranges.size());
  for (const BlockRange& range : ranges) asked.push_back({range, at});
  return asked;
}

}  // namespace

ReleaseJudge::ReleaseJudge(const VersionLookup& lookup, const BaseMap& base, Facts facts)
    : lookup_(lookup),
      base_(base),
      facts_(facts),
      others_(lookup.index().rollback_targets(facts.horizon)),
      newest_(lookup.index().newest().sequence) {
  // What kept ones show is written again for them.
  std::erase_if(others_, [&](SequenceNumber other) {
    return std::ranges::binary_search(
        facts_.kept, other, {}, [](const index::KeptMoment& each) { return each.moment.sequence; });
  });
}

ReleaseJudge::Need ReleaseJudge::judge_numbers(const VolumeDigest& digest, const Facts& facts) {
  if (digest.given_up > facts.horizon) return Need::kHistory;
  // Without an image what a rollback brought back stays in the log, and it with that.
  if (!facts.has_image) return digest.has_rollback ? Need::kHistory : Need::kNone;
  // What the image lacks is written from the history, also what was replaced since.
  return digest.given_up > facts.durable ? Need::kImage : Need::kNone;
}

// (What is found through a rollback to a kept moment becomes the base before the rollback is given
// up.)
bool ReleaseJudge::is_given_up(const LocatedRun& run) const {
  if (run.for_kept) return true;
  if (is_before_image(run)) return run.base_ordinal < facts_.end_ordinal;
  return run.sequence.value != 0 && run.sequence <= facts_.given_up;
}

// Whether a later rollback goes back to a moment that sees the base of some of `range`.
bool ReleaseJudge::base_is_needed(BlockRange range) const {
  return std::any_of(others_.begin(), others_.end(), [&](SequenceNumber other) {
    const std::vector<LocatedRun> runs = lookup_.locate(range, other);
    return std::any_of(runs.begin(), runs.end(), [](const LocatedRun& run) {
      return run.source != LocatedRun::Source::kZero && run.sequence.value == 0;
    });
  });
}

bool ReleaseJudge::has_before_image(BlockRange range) const {
  const std::vector<LocatedRun> runs = lookup_.locate(range, SequenceNumber{0});
  return std::ranges::any_of(runs, is_before_image);
}

// A part that is still the newest: its contents become the base, held by the image.
ReleaseJudge::Need ReleaseJudge::judge_current(const LocatedRun& part, Verdict& verdict) const {
  if (!facts_.has_image) return Need::kHistory;
  if (facts_.durable < std::max(part.sequence, lookup_.index().last_rollback()))
    return Need::kImage;
  bool changes_base = part.source == LocatedRun::Source::kLog;
  if (changes_base) {
    verdict.to_base.push_back(part.range);
  } else {
    base_.visit(part.range, [&](BlockRange kept, bool in_image) {
      if (in_image) verdict.to_punch.push_back(kept);
      changes_base = changes_base || in_image;
    });
  }
  if (is_before_image(part) || others_.empty()) return Need::kNone;
  changes_base = changes_base || has_before_image(part.range);
  return changes_base && base_is_needed(part.range) ? Need::kHistory : Need::kNone;
}

// Before-images that stay would hide that the image is the base of `ranges`. (There may be several
// of a block, of which only the first one shows.)
void ReleaseJudge::find_rebases(std::span<const BlockRange> ranges, Verdict& verdict) const {
  for (const LocatedRun& base : lookup_.base_from(ranges, facts_.end_ordinal)) {
    if (base.source == LocatedRun::Source::kLog) verdict.to_rebase.push_back(base.range);
  }
}

// A part that was replaced since the horizon: its contents become the base, held by the log.
ReleaseJudge::Need ReleaseJudge::judge_replaced(const LocatedRun& part, Verdict& verdict) const {
  // (That of a writable view is what its parent held.)
  if (part.source == LocatedRun::Source::kZero && facts_.has_image) {
    bool in_image = false;
    base_.visit(part.range, [&](BlockRange, bool kept) { in_image = in_image || kept; });
    // Without a base in the image the base is zeros as it is.
    if (!in_image && !has_before_image(part.range)) return Need::kNone;
  }
  const bool is_base = is_before_image(part) || part.source == LocatedRun::Source::kBase;
  if (!is_base && base_is_needed(part.range)) return Need::kHistory;
  verdict.to_move.push_back(part.range);
  return Need::kNone;
}

// A before-image that is current (a rollback made it so, or nobody has written since), where
// another one of the block stays: to make that void would leave the image alone with what the block
// is, and hosts may be overwriting it by then, who were told that the log has it. So it is logged
// again. Returns the parts where that is not so.
std::vector<LocatedRun> ReleaseJudge::take_hidden(std::vector<LocatedRun> current,
                                                  std::vector<LocatedRun>& become,
                                                  Verdict& verdict) const {
  std::vector<BlockRange> images;
  for (const LocatedRun& part : current) {
    if (is_before_image(part)) images.push_back(part.range);
  }
  if (images.empty()) return current;
  std::vector<BlockRange> hidden;
  for (const LocatedRun& base : lookup_.base_from(images, facts_.end_ordinal)) {
    if (base.source == LocatedRun::Source::kLog) hidden.push_back(base.range);
  }
  if (hidden.empty()) return current;
  std::vector<LocatedRun> left;
  for (const LocatedRun& part : current) {
    Lbn at = part.range.first;
    const auto leave = [&](Lbn end) {
      if (at < end) left.push_back(index::part_of(part, BlockRange::between(at, end)));
    };
    if (is_before_image(part)) {
      for (const BlockRange& range : hidden) {
        const BlockRange both = range.intersect(part.range);
        if (both.empty()) continue;
        leave(both.first);
        become.push_back(index::part_of(part, both));
        verdict.to_move.push_back(both);
        at = both.end();
      }
    }
    leave(part.range.end());
  }
  return left;
}

// Older moments that later rollbacks go back to will find in the base what they find now.
bool ReleaseJudge::keeps_what_others_show(std::span<const BlockRange> ranges,
                                          std::span<const LocatedRun> become) const {
  return std::ranges::all_of(others_, [&](SequenceNumber other) {
    for (const std::vector<LocatedRun>& runs : lookup_.locate_each(all_at(ranges, other))) {
      for (const LocatedRun& run : runs) {
        if (!is_given_up(run)) continue;
        std::uint64_t kept = 0;
        for (const LocatedRun& base : become) {
          if (is_same_version(base, run)) kept += base.range.intersect(run.range).count.value;
        }
        if (kept < run.range.count.value) return false;
      }
    }
    return true;
  });
}

ReleaseJudge::Verdict ReleaseJudge::judge(std::span<const BlockRange> ranges) const {
  std::vector<LocatedRun> old;
  std::vector<BlockRange> of_old;
  for (const std::vector<LocatedRun>& runs : lookup_.locate_each(all_at(ranges, facts_.horizon))) {
    for (const LocatedRun& run : runs) {
      if (!is_given_up(run)) continue;
      old.push_back(run);
      of_old.push_back(run.range);
    }
  }
  Verdict verdict;
  std::vector<LocatedRun> become;
  std::vector<LocatedRun> current;
  const auto newest = lookup_.locate_each(all_at(of_old, newest_));
  for (std::size_t i = 0; i < old.size(); ++i) {
    for (const LocatedRun& now : newest[i]) {
      const LocatedRun part = index::part_of(old[i], now.range);
      if (is_same_version(now, part)) {
        current.push_back(part);
        continue;
      }
      const std::size_t before = verdict.to_move.size();
      const Need need = judge_replaced(part, verdict);
      if (need != Need::kNone) return needing(need);
      if (verdict.to_move.size() > before) become.push_back(part);
    }
  }
  current = take_hidden(std::move(current), become, verdict);
  const std::size_t moved = become.size();  // they come first
  std::vector<BlockRange> of_current;
  std::vector<LocatedRun> zeros;  // they are the base, too, when the image is punched
  for (const LocatedRun& part : current) {
    const std::size_t based = verdict.to_base.size();
    const Need need = judge_current(part, verdict);
    if (need != Need::kNone) return needing(need);
    if (verdict.to_base.size() > based) become.push_back(part);
    of_current.push_back(part.range);
    if (part.source == LocatedRun::Source::kZero) zeros.push_back(part);
  }
  find_rebases(of_current, verdict);
  if (!keeps_what_others_show(ranges, become)) return needing(Need::kHistory);
  if (facts_.kept.empty()) return verdict;
  std::vector<NextBase> next;
  for (std::size_t i = 0; i < become.size(); ++i) next.push_back({become[i], i < moved});
  for (const LocatedRun& part : zeros) next.push_back({part, false});
  verdict.to_keep = KeptJudge(lookup_, base_, {facts_.kept, facts_.given_up, facts_.end_ordinal})
                        .judge(ranges, std::move(next));
  return verdict;
}

}  // namespace mariner::volume
