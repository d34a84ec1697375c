#include "server/node/moments.h"

#include <algorithm>
#include <utility>

#include "server/client/time_text.h"
#include "server/client/zone.h"

namespace mariner::node {

index::IndexMoment oldest_moment(const ServedVolume& volume) {
  const index::IndexMoment horizon = volume.volume->index().oldest();
  return horizon.sequence.value == 0 ? index::IndexMoment{{}, {volume.meta.created_ns()}} : horizon;
}

namespace {

Error outside(const ServedVolume& volume, const std::string& asked) {
  const index::IndexMoment oldest = oldest_moment(volume);
  return Error{ErrorCode::kOutsideWindow, asked + " is outside the history of " +
                                              volume.meta.name() + ", which begins at " +
                                              format_utc(oldest.time) + " (sequence " +
                                              std::to_string(oldest.sequence.value) + ")"};
}

bool is_gone(const ServedVolume& volume, SequenceNumber sequence) {
  return sequence < oldest_moment(volume).sequence;
}

// The newest moment. When the clock was stepped back, version times are ahead of it.
VersionTime now_of(const ServedVolume& volume, const Executor& executor) {
  return std::max(executor.wall_time(), volume.volume->replicator().coordinator().floor());
}

void open_moment(const ServedVolume& volume, VersionTime time,
                 UniqueFunction<void(Result<ResolvedMoment>)> done) {
  // A copy: the volume may be deleted while earlier writes are waited for.
  volume.volume->moment_at(
      time, [volume, time, done = std::move(done)](const Result<index::IndexMoment>& at) mutable {
        if (!at) return done(at.error());
        if (is_gone(volume, at->sequence)) return done(outside(volume, format_utc(time)));
        done(ResolvedMoment{*at, time, {}});
      });
}

void resolve_time(const ServedVolume& volume, VersionTime time, Executor& executor,
                  UniqueFunction<void(Result<ResolvedMoment>)> done) {
  if (time > now_of(volume, executor)) {
    return done(Error{ErrorCode::kOutsideWindow, format_utc(time) + " is in the future"});
  }
  if (time.ns < volume.meta.created_ns()) return done(outside(volume, format_utc(time)));
  open_moment(volume, time, std::move(done));
}

void resolve_sequence(const ServedVolume& volume, SequenceNumber sequence,
                      UniqueFunction<void(Result<ResolvedMoment>)> done) {
  const auto& coordinator = volume.volume->replicator().coordinator();
  if (sequence > coordinator.settled()) {
    return done(Error{ErrorCode::kOutsideWindow,
                      "#" + std::to_string(sequence.value) + " is after the newest write of " +
                          volume.meta.name() + ", #" +
                          std::to_string(volume.volume->index().newest().sequence.value)});
  }
  if (is_gone(volume, sequence)) {
    return done(outside(volume, "#" + std::to_string(sequence.value)));
  }
  volume.volume->index().moment_of(sequence, [volume, sequence, done = std::move(done)](
                                                 const Result<index::IndexMoment>& at) mutable {
    if (!at) return done(at.error());
    if (is_gone(volume, sequence)) {
      return done(outside(volume, "#" + std::to_string(sequence.value)));
    }
    done(ResolvedMoment{*at, {}, {}});
  });
}

}  // namespace

void resolve_moment(const ServedVolume& volume, const api::MomentSpec& spec, MetaStore& store,
                    Executor& executor, UniqueFunction<void(Result<ResolvedMoment>)> done) {
  switch (spec.at_case()) {
    case api::MomentSpec::kTimeNs:
      return resolve_time(volume, VersionTime{spec.time_ns()}, executor, std::move(done));
    case api::MomentSpec::kNow:
      return open_moment(volume, now_of(volume, executor), std::move(done));
    case api::MomentSpec::kSequence:
      return resolve_sequence(volume, SequenceNumber{spec.sequence()}, std::move(done));
    case api::MomentSpec::kMark: {
      Result<std::vector<meta::Mark>> marks = store.marks();
      if (!marks) return done(marks.error());
      for (const meta::Mark& mark : *marks) {
        if (mark.volume_id() != volume.meta.id() || mark.name() != spec.mark()) continue;
        if (is_gone(volume, SequenceNumber{mark.sequence()})) {
          return done(outside(volume, "the mark " + mark.name()));
        }
        return done(ResolvedMoment{
            {SequenceNumber{mark.sequence()}, VersionTime{mark.time_ns()}}, {}, mark.name()});
      }
      return done(Error{ErrorCode::kNotFound, volume.meta.name() + " has no mark named " +
                                                  spec.mark() + "; see `mariner mark list " +
                                                  volume.meta.name() + "`"});
    }
    case api::MomentSpec::AT_NOT_SET: break;
  }
  done(Error{ErrorCode::kInvalidArgument, "no moment was given"});
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
