#include "server/node/rollback_plan.h"

#include <cstdio>
#include <ctime>
#include <string>
#include <utility>

namespace mariner::node {
namespace {

using Done = UniqueFunction<void(Result<RollbackPlan>)>;

// Looks up what would change.
void look(const MomentsOf& of, ResolvedMoment target, Done done) {
  RollbackPlan plan;
  plan.answer.set_schema(1);
  plan.answer.set_volume(of.volume);
  *plan.answer.mutable_target() = to_api(target);
  *plan.answer.mutable_before() = to_api(target.newest);
  volume::HistorySummary::Question question;
  question.from = target.at.sequence;
  question.to = std::max(target.at.sequence, target.newest.sequence);
  plan.target = std::move(target);
  of.history->summarize(question, [of, plan = std::move(plan), done = std::move(done)](
                                      const Result<volume::HistorySummary>& summary) mutable {
    if (!summary) return done(summary.error());
    plan.answer.set_changed_bytes(summary->distinct_bytes);
    plan.answer.set_undone_writes(summary->writes);
    done(std::move(plan));
  });
}

// The moment before the newest rollback; undoing an undo is doing it again.
void before_newest(const MomentsOf& of, const volume::History::Moment& now, Done done) {
  if (now.last_rollback.value == 0) {
    return done(Error{ErrorCode::kNotFound,
                      of.volume + " has not been rolled back: there is nothing to undo"});
  }
  const SequenceNumber before{now.last_rollback.value - 1};
  of.history->moment(
      before, [of, done = std::move(done)](const Result<volume::History::Moment>& found) mutable {
        if (!found) return done(found.error());
        ResolvedMoment target;
        target.at = found->at;
        target.oldest = found->oldest;
        target.newest = found->newest;
        look(of, std::move(target), std::move(done));
      });
}

}  // namespace

std::string automatic_mark_name(VersionTime now, std::uint64_t number) {
  const auto seconds = static_cast<std::time_t>(now.ns / 1'000'000'000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[64];
  std::snprintf(text, sizeof text, "before-rollback-%04d%02d%02d-%02d%02d%02dz-%llu",
                utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                utc.tm_sec, static_cast<unsigned long long>(number));
  return text;
}

void plan_rollback(const MomentsOf& of, const api::RollbackRequest& request,
                   const Executor& executor, Done done) {
  if (!request.undo()) {
    return resolve_moment(of, request.at(), executor,
                          [of, done = std::move(done)](Result<ResolvedMoment> target) mutable {
                            if (!target) return done(target.error());
                            look(of, *std::move(target), std::move(done));
                          });
  }
  of.history->moment(
      SequenceNumber{UINT64_MAX},
      [of, done = std::move(done)](const Result<volume::History::Moment>& now) mutable {
        if (!now) return done(now.error());
        before_newest(of, *now, std::move(done));
      });
}

Result<std::shared_ptr<volume::RepairSource>> repairs_of(RepairDesk& desk,
                                                         const api::RollbackRequest& request,
                                                         VolumeId volume,
                                                         api::RollbackAnswer& answer) {
  if (request.repairs().empty()) return std::shared_ptr<volume::RepairSource>();
  if (request.undo()) {
    return Error{ErrorCode::kInvalidArgument,
                 "undoing a rollback returns to a state as it was: it has no repairs"};
  }
  const auto repairs = desk.take(request.repairs(), volume,
                                 SequenceNumber{answer.target().sequence()}, request.dry_run());
  if (!repairs) return repairs.error();
  answer.set_repaired_blocks((*repairs)->blocks());
  return RepairFile::read(*repairs);
}

UniqueFunction<void(Result<api::RollbackAnswer>)> unless_not_mended(
    std::shared_ptr<volume::RepairSource> repairs,
    UniqueFunction<void(Result<api::RollbackAnswer>)> done) {
  return [repairs = std::move(repairs),
          done = std::move(done)](Result<api::RollbackAnswer> answer) mutable {
    if (!answer || repairs == nullptr || !repairs->failure()) return done(std::move(answer));
    const Error& why = *repairs->failure();
    done(Error{why.code, answer->volume() + " is rolled back to #" +
                             std::to_string(answer->target().sequence()) +
                             ", but its file system was not mended: " + why.message +
                             "; `mariner rollback undo " + answer->volume() +
                             "` returns to what it was before"});
  };
}

Error rollback_refused(const std::string& volume, std::size_t sessions) {
  return {ErrorCode::kBusy, volume + " is in use: " + std::to_string(sessions) +
                                " sessions, with commands in the last seconds; unmount it on the "
                                "host, or use --force"};
}

void add_restore(const volume::Storage& storage, api::Volume& to) {
  if (!storage.restoring()) return;
  const volume::Storage::RestoreProgress progress = storage.restore_progress();
  api::Restoring& out = *to.mutable_restore();
  out.set_total_bytes(progress.total_bytes);
  out.set_left_bytes(progress.left_bytes);
  out.set_bytes_per_second(progress.bytes_per_second);
  if (progress.bytes_per_second > 0) {
    out.set_seconds_left(progress.left_bytes / progress.bytes_per_second + 1);
  }
}

meta::Mark mark_before(const index::IndexMoment& before, const replication::Stamp& stamp,
                       VolumeId volume, VersionTime now) {
  meta::Mark mark;
  mark.set_volume_id(volume.value);
  mark.set_name(automatic_mark_name(now, stamp.sequence.value));
  mark.set_sequence(before.sequence.value);
  mark.set_time_ns(before.time.ns);
  mark.set_created_ns(now.ns);
  mark.set_automatic(true);
  return mark;
}

}  // namespace mariner::node
