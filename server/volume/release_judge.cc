#include "server/volume/release_judge.h"

#include <algorithm>

namespace mariner::volume {

using index::LocatedRun;
using logging::LogLocation;
using logging::Record;
using logging::RecordType;

namespace {

ReleaseJudge::Verdict needing(ReleaseJudge::Need need) {
  ReleaseJudge::Verdict verdict;
  verdict.need = need;
  return verdict;
}

bool is_of(const LocatedRun& run, const Record& record, const LogLocation& location) {
  if (record.type == RecordType::kBeforeImage) {
    return run.source == LocatedRun::Source::kLog && run.location == location;
  }
  return run.source != LocatedRun::Source::kBase && run.sequence == record.sequence;
}

}  // namespace

ReleaseJudge::ReleaseJudge(const index::VersionLookup& lookup, const BaseMap& base, Facts facts)
    : lookup_(lookup),
      base_(base),
      facts_(facts),
      others_(lookup.index().rollback_targets(facts.horizon)),
      newest_(lookup.index().newest().sequence) {}

ReleaseJudge::Verdict ReleaseJudge::judge(const Record& record, const LogLocation& location) const {
  switch (record.type) {
    case RecordType::kVoid:
    case RecordType::kGap:
    case RecordType::kMark:
    case RecordType::kRebase:
    case RecordType::kWithdrawal: return {};
    case RecordType::kRollback:
      if (record.sequence > facts_.horizon) return needing(Need::kHistory);
      if (facts_.has_image && record.sequence > facts_.durable) return needing(Need::kImage);
      // Without an image what it brought back stays in the log, and it with that.
      return needing(facts_.has_image ? Need::kNone : Need::kHistory);
    case RecordType::kWrite:
    case RecordType::kZero:
    case RecordType::kBeforeImage: return judge_version(record, location);
    case RecordType::kRelocated:
    case RecordType::kEncoded: break;
  }
  return needing(Need::kHistory);
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
  return std::any_of(runs.begin(), runs.end(),
                     [](const LocatedRun& run) { return run.source == LocatedRun::Source::kLog; });
}

// A part that is still the newest: its contents become the base, held by the image.
ReleaseJudge::Need ReleaseJudge::judge_current(const Record& record, const LocatedRun& part,
                                               Verdict& verdict) const {
  if (!facts_.has_image) return Need::kHistory;
  if (facts_.durable < std::max(record.sequence, lookup_.index().last_rollback()))
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
  if (record.type == RecordType::kBeforeImage) return Need::kNone;  // it is the base
  for (const LocatedRun& base : lookup_.locate(part.range, SequenceNumber{0})) {
    if (base.source != LocatedRun::Source::kLog) continue;
    verdict.to_rebase.push_back(base.range);
    changes_base = true;
  }
  return changes_base && base_is_needed(part.range) ? Need::kHistory : Need::kNone;
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
  if (part.sequence.value != 0 && base_is_needed(part.range)) return Need::kHistory;
  verdict.to_move.push_back(part.range);
  return Need::kNone;
}

ReleaseJudge::Verdict ReleaseJudge::judge_version(const Record& record,
                                                  const LogLocation& location) const {
  if (record.sequence > facts_.horizon) return needing(Need::kHistory);
  Verdict verdict;
  for (const LocatedRun& run : lookup_.locate(record.extent, facts_.horizon)) {
    if (!is_of(run, record, location)) continue;
    for (const LocatedRun& newest : lookup_.locate(run.range, newest_)) {
      LocatedRun part = run;
      part.range = newest.range;
      const Need need = is_of(newest, record, location) ? judge_current(record, part, verdict)
                                                        : judge_replaced(part, verdict);
      if (need != Need::kNone) return needing(need);
    }
  }
  // Older moments that later rollbacks go back to will find in the base what they found here.
  for (const SequenceNumber other : others_) {
    for (const LocatedRun& run : lookup_.locate(record.extent, other)) {
      if (!is_of(run, record, location)) continue;
      const auto covers = [&](BlockRange range) { return range.contains(run.range); };
      if (std::none_of(verdict.to_base.begin(), verdict.to_base.end(), covers) &&
          std::none_of(verdict.to_move.begin(), verdict.to_move.end(), covers)) {
        return needing(Need::kHistory);
      }
    }
  }
  // What the image lacks is written from the history, also what was replaced since.
  if (facts_.has_image && facts_.durable < record.sequence) return needing(Need::kImage);
  return verdict;
}

}  // namespace mariner::volume
