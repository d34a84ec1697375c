#include "server/node/moments.h"

#include <algorithm>
#include <utility>

#include "proto/sequence_text.h"
#include "server/client/time_text.h"
#include "server/client/zone.h"
#include "server/volume/settled_moment.h"

namespace mariner::node {
namespace {

using Done = UniqueFunction<void(Result<ResolvedMoment>)>;

// As long as nothing was given up, the history begins with the volume.
index::IndexMoment oldest_of(const index::IndexMoment& horizon, VersionTime created) {
  return horizon.sequence.value == 0 ? index::IndexMoment{{}, created} : horizon;
}

Error outside(const MomentsOf& of, const index::IndexMoment& oldest, const std::string& asked) {
  return Error{ErrorCode::kOutsideWindow, asked + " is outside the history of " + of.volume +
                                              ", which begins at " + format_utc(oldest.time) +
                                              " (sequence " +
                                              std::to_string(oldest.sequence.value) + ")"};
}

Error not_coordinated(const MomentsOf& of) {
  return Error{ErrorCode::kUnavailable, of.volume + " is not served by this node now"};
}

// What the history knows of it, if it still has it.
volume::History::MomentDone found(const MomentsOf& of, std::string text, ResolvedMoment moment,
                                  Done done) {
  return [of, text = std::move(text), moment = std::move(moment),
          done = std::move(done)](const Result<volume::History::Moment>& in_history) mutable {
    if (!in_history) return done(in_history.error());
    moment.at = in_history->at;
    moment.oldest = oldest_of(in_history->oldest, of.created);
    moment.newest = in_history->newest;
    if (moment.at.sequence < moment.oldest.sequence && !in_history->is_kept)
      return done(outside(of, moment.oldest, text));
    done(std::move(moment));
  };
}

// The newest moment. When the clock was stepped back, version times are ahead of it.
VersionTime now_of(const replication::Replicator& replicator, const Executor& executor) {
  return std::max(executor.wall_time(), replicator.coordinator().floor());
}

void open_moment(const MomentsOf& of, replication::Replicator& replicator, VersionTime time,
                 Done done) {
  ResolvedMoment moment;
  moment.asked = time;
  volume::settled_moment(replicator, *of.history, time,
                         found(of, format_utc(time), std::move(moment), std::move(done)));
}

void resolve_time(const MomentsOf& of, replication::Replicator& replicator, VersionTime time,
                  const Executor& executor, Done done) {
  if (time > now_of(replicator, executor)) {
    return done(Error{ErrorCode::kOutsideWindow, format_utc(time) + " is in the future"});
  }
  if (time < of.created) return done(outside(of, {{}, of.created}, format_utc(time)));
  open_moment(of, replicator, time, std::move(done));
}

void resolve_sequence(const MomentsOf& of, const replication::Replicator& replicator,
                      SequenceNumber sequence, Done done) {
  const SequenceNumber settled = replicator.coordinator().settled();
  if (sequence > settled) {
    return done(Error{ErrorCode::kOutsideWindow, sequence_text(sequence) +
                                                     " is after the newest write of " + of.volume +
                                                     ", #" + std::to_string(settled.value)});
  }
  of.history->moment(sequence, found(of, sequence_text(sequence), {}, std::move(done)));
}

void resolve_mark(const MomentsOf& of, const std::string& name, Done done) {
  const Result<meta::Mark> mark = find_mark(of, name);
  if (!mark) return done(mark.error());
  ResolvedMoment moment;
  moment.mark = name;
  const index::IndexMoment at{SequenceNumber{mark->sequence()}, VersionTime{mark->time_ns()}};
  of.history->moment(at.sequence,
                     found(of, "the mark " + name, std::move(moment),
                           [at, done = std::move(done)](Result<ResolvedMoment> marked) mutable {
                             if (marked) marked->at = at;
                             done(std::move(marked));
                           }));
}

}  // namespace

index::IndexMoment oldest_moment(const ServedVolume& volume) {
  return oldest_of(volume.volume->index().oldest(), VersionTime{volume.meta.created_ns()});
}

Result<MomentsOf> moments_of(const ServedVolume& volume, MetaStore& store) {
  Result<std::vector<meta::Mark>> marks = store.marks_of(volume.meta.id());
  if (!marks) return marks.error();
  MomentsOf of;
  of.volume = volume.meta.name();
  of.created = VersionTime{volume.meta.created_ns()};
  of.history = &volume.volume->history().history();
  of.replicator = [held = volume.volume] { return &held->replicator(); };
  of.marks = *std::move(marks);
  of.keeps = volume.volume;
  return of;
}

void resolve_moment(const MomentsOf& of, const api::MomentSpec& spec, const Executor& executor,
                    Done done) {
  replication::Replicator* const replicator = of.replicator();
  if (replicator == nullptr) return done(not_coordinated(of));
  switch (spec.at_case()) {
    case api::MomentSpec::kTimeNs:
      return resolve_time(of, *replicator, VersionTime{spec.time_ns()}, executor, std::move(done));
    case api::MomentSpec::kNow:
      return open_moment(of, *replicator, now_of(*replicator, executor), std::move(done));
    case api::MomentSpec::kSequence:
      return resolve_sequence(of, *replicator, SequenceNumber{spec.sequence()}, std::move(done));
    case api::MomentSpec::kMark: return resolve_mark(of, spec.mark(), std::move(done));
    case api::MomentSpec::AT_NOT_SET: break;
  }
  done(Error{ErrorCode::kInvalidArgument, "no moment was given"});
}

void resolve_moment(const ServedVolume& volume, const api::MomentSpec& spec, MetaStore& store,
                    const Executor& executor, Done done) {
  const Result<MomentsOf> of = moments_of(volume, store);
  if (!of) return done(of.error());
  resolve_moment(*of, spec, executor, std::move(done));
}

api::MomentSpec or_now(api::MomentSpec spec) {
  if (spec.at_case() == api::MomentSpec::AT_NOT_SET) spec.set_now(true);
  return spec;
}

Result<meta::Mark> find_mark(const MomentsOf& of, const std::string& name) {
  const auto mark = std::ranges::find(of.marks, name, &meta::Mark::name);
  if (mark != of.marks.end()) return *mark;
  return Error{ErrorCode::kNotFound, of.volume + " has no mark named " + name +
                                         "; see `mariner mark list " + of.volume + "`"};
}

api::Moment to_api(const index::IndexMoment& at) {
  api::Moment moment;
  moment.set_sequence(at.sequence.value);
  moment.set_time_ns(at.time.ns);
  if (at.time.ns != 0) {
    moment.set_utc(format_utc(at.time));
    moment.set_local(format_local(at.time, SystemZone()));
  }
  return moment;
}

api::Moment to_api(const ResolvedMoment& resolved) {
  api::Moment moment = to_api(resolved.at);
  moment.set_asked_ns(resolved.asked.ns);
  moment.set_mark(resolved.mark);
  return moment;
}

}  // namespace mariner::node
