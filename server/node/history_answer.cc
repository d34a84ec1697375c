#include "server/node/history_answer.h"

#include <algorithm>
#include <string>
#include <utility>

#include "server/node/names.h"
#include "server/node/verdict_set.h"

namespace mariner::node {
namespace {

using volume::HistorySummary;

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

void add_event(api::History& out, const char* kind, SequenceNumber sequence, VersionTime time,
               const std::string& text) {
  api::HistoryEvent* event = out.add_events();
  event->set_kind(kind);
  event->set_sequence(sequence.value);
  event->set_time_ns(time.ns);
  event->set_text(text);
}

// A history that is being put together.
struct Work {
  MomentsOf of;
  api::HistoryRequest request;
  BesideHistory beside;
  const Executor& executor;
  UniqueFunction<void(Result<api::History>)> done;
  index::IndexMoment from{};
  index::IndexMoment to{};
  api::History out{};
  std::uint64_t start = 0;  // of the histogram
  std::uint64_t end = 0;

  [[nodiscard]] HistorySummary::Question question();
  void fill(const HistorySummary& summary);
  void add_events(const HistorySummary& summary);
  void add_verdicts();
};
using WorkPtr = std::shared_ptr<Work>;

HistorySummary::Question Work::question() {
  // The histogram spans what was asked for, or else from the first write to the last.
  start = out.from().asked_ns() != 0 ? out.from().asked_ns() : from.time.ns;
  end = out.to().asked_ns() != 0 ? out.to().asked_ns() : to.time.ns;
  if (start == 0) start = of.created.ns;
  HistorySummary::Question question;
  question.from = from.sequence;
  question.to = to.sequence;
  question.start = VersionTime{start};
  question.columns = request.buckets();
  question.writes_max = request.max_writes();
  if (request.buckets() != 0 && end > start) {
    question.width_ns = (end - start) / request.buckets() + 1;
  }
  for (std::uint64_t i = 0; question.width_ns != 0 && i < request.buckets(); ++i) {
    api::HistoryBucket* bucket = out.add_buckets();
    bucket->set_from_ns(start + i * question.width_ns);
    bucket->set_to_ns(std::min(start + (i + 1) * question.width_ns, end));
  }
  return question;
}

void Work::fill(const HistorySummary& summary) {
  out.set_schema(1);
  out.set_name(of.volume);
  out.set_writes(summary.writes);
  out.set_bytes(summary.bytes);
  out.set_distinct_bytes(summary.distinct_bytes);
  out.set_truncated(summary.truncated);
  const int columns = std::min(out.buckets_size(), static_cast<int>(summary.columns.size()));
  for (int i = 0; i < columns; ++i) {
    const HistorySummary::Column& column = summary.columns[static_cast<std::size_t>(i)];
    out.mutable_buckets(i)->set_writes(column.writes);
    out.mutable_buckets(i)->set_bytes(column.bytes);
  }
  for (const HistorySummary::Write& write : summary.list) {
    api::HistoryWrite* listed = out.add_write_list();
    listed->set_sequence(write.sequence.value);
    listed->set_time_ns(write.time.ns);
    listed->set_kind(std::string(logging::record_type_name(write.type)));
    listed->set_first_block(write.extent.first.value);
    listed->set_blocks(write.extent.count.value);
    listed->set_target_sequence(write.target.value);
    listed->set_epoch(write.epoch.value);
  }
  add_events(summary);
}

// "level 1", "level 2: 3 findings, 12 blocks to mend".
std::string verdict_text(const meta::Verdict& verdict) {
  std::string text = "level " + std::to_string(verdict.level());
  if (verdict.findings() != 0) text += ": " + std::to_string(verdict.findings()) + " findings";
  if (verdict.blocks_mended() != 0) {
    text += (verdict.findings() != 0 ? ", " : ": ") + std::to_string(verdict.blocks_mended()) +
            " blocks to mend";
  }
  return text;
}

void count(meta::Verdict::Kind kind, api::HistoryBucket& in) {
  switch (kind) {
    case meta::Verdict::CLEAN: return in.set_clean(in.clean() + 1);
    case meta::Verdict::REPAIRABLE: return in.set_repairable(in.repairable() + 1);
    case meta::Verdict::DAMAGED: return in.set_damaged(in.damaged() + 1);
    default: return;
  }
}

void Work::add_verdicts() {
  VerdictSet shown;
  for (const meta::Verdict& verdict : beside.verdicts) {
    if (verdict.sequence() < from.sequence.value || verdict.sequence() > to.sequence.value) {
      continue;
    }
    shown.add(verdict);
    // (The moment that a history begins with may be before its first column.)
    const auto column = std::ranges::find_if(
        *out.mutable_buckets(), [at = std::max(verdict.time_ns(), start)](const auto& bucket) {
          return at < bucket.to_ns();
        });
    if (column != out.mutable_buckets()->end()) {
      count(verdict.kind(), *column);
    } else if (out.buckets_size() > 0) {
      count(verdict.kind(), *out.mutable_buckets(out.buckets_size() - 1));
    }
  }
  shown.thin(kVerdictEventsMax);
  for (const auto& [sequence, verdict] : shown.all()) {
    add_event(out, std::string(verdict_name(verdict.kind())).c_str(), SequenceNumber{sequence},
              VersionTime{verdict.time_ns()}, verdict_text(verdict));
  }
}

// Rollbacks, marks, what was checked, and steps of the clock.
void Work::add_events(const HistorySummary& summary) {
  for (const HistorySummary::Write& rollback : summary.rollbacks) {
    add_event(out, "rollback", rollback.sequence, rollback.time,
              "to #" + std::to_string(rollback.target.value));
  }
  for (const meta::Mark& mark : of.marks) {
    if (mark.sequence() < from.sequence.value || mark.sequence() > to.sequence.value) continue;
    add_event(out, "mark", SequenceNumber{mark.sequence()}, VersionTime{mark.time_ns()},
              mark.name());
  }
  add_verdicts();
  for (const meta::ClockStep& step : beside.clock_steps) {
    if (step.at_ns() < start || step.at_ns() > end) continue;
    add_event(out, "clock-step", {}, VersionTime{step.at_ns()},
              std::to_string(step.step_ns() / 1'000'000) + " ms");
  }
  std::stable_sort(out.mutable_events()->begin(), out.mutable_events()->end(),
                   [](const api::HistoryEvent& a, const api::HistoryEvent& b) {
                     return a.time_ns() < b.time_ns();
                   });
}

void summarize(const WorkPtr& work) {
  const HistorySummary::Question question = work->question();
  work->of.history->summarize(question, [work](const Result<HistorySummary>& summary) {
    if (!summary) return work->done(summary.error());
    work->fill(*summary);
    work->done(std::move(work->out));
  });
}

void begin(const WorkPtr& work, const ResolvedMoment& end) {
  work->to = end.at;
  *work->out.mutable_to() = to_api(end);
  if (work->request.from().at_case() == api::MomentSpec::AT_NOT_SET) {
    if (end.oldest.sequence.value > 0) {
      work->from = end.oldest;
      *work->out.mutable_from() = to_api(end.oldest);
    }
    return summarize(work);
  }
  // A start before the history begins means from there.
  api::MomentSpec from = work->request.from();
  if (from.has_time_ns()) from.set_time_ns(std::max(from.time_ns(), end.oldest.time.ns));
  resolve_moment(work->of, from, work->executor, [work](const Result<ResolvedMoment>& begin) {
    if (!begin) return work->done(begin.error());
    work->from = begin->at;
    *work->out.mutable_from() = to_api(*begin);
    summarize(work);
  });
}

}  // namespace

void answer_history(const MomentsOf& of, const api::HistoryRequest& request, BesideHistory beside,
                    const Executor& executor, UniqueFunction<void(Result<api::History>)> done) {
  if (request.buckets() > HistorySummary::kColumnsMax) {
    return done(Error{ErrorCode::kLimit,
                      "at most " + std::to_string(HistorySummary::kColumnsMax) + " buckets"});
  }
  const auto work =
      std::make_shared<Work>(Work{of, request, std::move(beside), executor, std::move(done)});
  resolve_moment(of, or_now(request.to()), executor, [work](const Result<ResolvedMoment>& end) {
    if (!end) return work->done(end.error());
    begin(work, *end);
  });
}

api::Mark to_api(const meta::Mark& mark, const std::string& volume) {
  api::Mark out;
  out.set_name(mark.name());
  out.set_volume(volume);
  *out.mutable_at() =
      to_api(index::IndexMoment{SequenceNumber{mark.sequence()}, VersionTime{mark.time_ns()}});
  out.mutable_at()->set_mark(mark.name());
  out.set_locked_until_ns(mark.locked_until_ns());
  out.set_created_ns(mark.created_ns());
  out.set_automatic(mark.automatic());
  return out;
}

api::MarkList to_api(const MomentsOf& of) {
  std::vector<meta::Mark> marks = of.marks;
  std::ranges::sort(marks, {}, &meta::Mark::sequence);
  api::MarkList out;
  out.set_schema(1);
  for (const meta::Mark& mark : marks) *out.add_marks() = to_api(mark, of.volume);
  return out;
}

meta::Mark mark_of(const api::MarkRequest& request, VolumeId volume, const index::IndexMoment& at,
                   VersionTime now) {
  meta::Mark mark;
  mark.set_volume_id(volume.value);
  mark.set_name(request.name());
  mark.set_sequence(at.sequence.value);
  mark.set_time_ns(at.time.ns);
  mark.set_created_ns(now.ns);
  if (request.lock_s() != 0) {
    mark.set_locked_until_ns(request.lock_s() > (UINT64_MAX - now.ns) / kNsPerSecond
                                 ? UINT64_MAX
                                 : now.ns + request.lock_s() * kNsPerSecond);
  }
  return mark;
}

Result<void> check_mark(const MomentsOf& of, const std::string& name) {
  if (Result<void> r = check_volume_name(name); !r) {
    return Error{r.error().code, "the mark's name: " + r.error().message};
  }
  if (std::ranges::find(of.marks, name, &meta::Mark::name) == of.marks.end()) return {};
  return Error{ErrorCode::kAlreadyExists, of.volume + " has a mark named " + name + " already"};
}

}  // namespace mariner::node
