#include "server/volume/release_judge.h"

#include <algorithm>

namespace mariner::volume {

using index::LocatedRun;
using logging::LogLocation;
using logging::Record;
using logging::RecordType;

namespace {

bool is_of(const LocatedRun& run, const Record& record, const LogLocation& location) {
  if (record.type == RecordType::kBeforeImage) {
    return run.source == LocatedRun::Source::kLog && run.location == location;
  }
  return run.source != LocatedRun::Source::kBase && run.sequence == record.sequence;
}

}  // namespace

ReleaseJudge::ReleaseJudge(const index::VersionIndex& index, const BaseMap& base, Facts facts)
    : index_(index),
      base_(base),
      facts_(facts),
      others_(index.rollback_targets(facts.horizon)),
      newest_(index.newest().sequence) {}

ReleaseJudge::Verdict ReleaseJudge::judge(const Record& record, const LogLocation& location) const {
  switch (record.type) {
    case RecordType::kVoid:
    case RecordType::kGap:
    case RecordType::kMark:
    case RecordType::kRebase: return {};
    case RecordType::kRollback:
      if (record.sequence > facts_.horizon) return {Need::kHistory, {}, {}, {}};
      if (facts_.has_image && record.sequence > facts_.durable) return {Need::kImage, {}, {}, {}};
      // Without an image what it brought back stays in the log, and it with that.
      return {facts_.has_image ? Need::kNone : Need::kHistory, {}, {}, {}};
    case RecordType::kWrite:
    case RecordType::kZero:
    case RecordType::kBeforeImage: return judge_version(record, location);
    case RecordType::kRelocated:
    case RecordType::kEncoded: break;
  }
  return {Need::kHistory, {}, {}, {}};
}

// Whether a later rollback goes back to a moment that sees the base of some of `range`.
bool ReleaseJudge::base_is_needed(BlockRange range) const {
  return std::any_of(others_.begin(), others_.end(), [&](SequenceNumber other) {
    const std::vector<LocatedRun> runs = index_.locate(range, other);
    return std::any_of(runs.begin(), runs.end(), [](const LocatedRun& run) {
      return run.source != LocatedRun::Source::kZero && run.sequence.value == 0;
    });
  });
}

ReleaseJudge::Verdict ReleaseJudge::judge_version(const Record& record,
                                                  const LogLocation& location) const {
  if (record.sequence > facts_.horizon) return {Need::kHistory, {}, {}, {}};
  Verdict verdict;
  const auto is_current = [&](BlockRange range) {
    const std::vector<LocatedRun> runs = index_.locate(range, newest_);
    return std::all_of(runs.begin(), runs.end(),
                       [&](const LocatedRun& run) { return is_of(run, record, location); });
  };
  for (const LocatedRun& run : index_.locate(record.extent, facts_.horizon)) {
    if (!is_of(run, record, location)) continue;
    if (!is_current(run.range)) return {Need::kHistory, {}, {}, {}};
    const SequenceNumber must_hold = std::max(record.sequence, index_.last_rollback());
    if (!facts_.has_image) return {Need::kHistory, {}, {}, {}};
    if (facts_.durable < must_hold) return {Need::kImage, {}, {}, {}};
    // Its contents become the base, in the place of what was there before the first write.
    bool changes_base = run.source == LocatedRun::Source::kLog;
    if (changes_base) {
      verdict.to_base.push_back(run.range);
    } else {
      base_.visit(run.range, [&](BlockRange part, bool in_image) {
        if (in_image) verdict.to_punch.push_back(part);
        changes_base = changes_base || in_image;
      });
    }
    if (record.type == RecordType::kBeforeImage) continue;  // it is the base
    for (const LocatedRun& base : index_.locate(run.range, SequenceNumber{0})) {
      if (base.source != LocatedRun::Source::kLog) continue;
      verdict.to_rebase.push_back(base.range);
      changes_base = true;
    }
    if (changes_base && base_is_needed(run.range)) return {Need::kHistory, {}, {}, {}};
  }
  for (const SequenceNumber other : others_) {
    for (const LocatedRun& run : index_.locate(record.extent, other)) {
      if (!is_of(run, record, location)) continue;
      const bool becomes_base =
          std::any_of(verdict.to_base.begin(), verdict.to_base.end(),
                      [&](BlockRange range) { return range.contains(run.range); });
      if (!becomes_base) return {Need::kHistory, {}, {}, {}};
    }
  }
  // What waits for the image is written from the history, which must not lose a replaced version
  // either before the image has what replaced it.
  if (facts_.has_image && facts_.durable < facts_.horizon) return {Need::kImage, {}, {}, {}};
  return verdict;
}

}  // namespace mariner::volume
