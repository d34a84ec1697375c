#include "server/node/group_moment.h"

#include <algorithm>
#include <utility>

#include "server/client/time_text.h"
#include "server/node/gather.h"
#include "server/node/names.h"

namespace mariner::node {
namespace {

using Done = UniqueFunction<void(Result<GroupMoment>)>;

// No member is asked for a moment before it was in the group.
Result<void> check_joined(const GroupMoments& of, VersionTime time) {
  for (const GroupMoments::Member& member : of.members) {
    if (time >= member.joined) continue;
    return Error{ErrorCode::kOutsideWindow,
                 format_utc(time) + " is before " + member.moments.volume + " joined the group " +
                     of.group + ", at " + format_utc(member.joined) +
                     ": there is no moment of all of it; its volumes have each its own"};
  }
  return {};
}

// Asks each member for what `spec_of` says of it.
void resolve_members(const GroupMoments& of, GroupMoment moment,
                     const std::function<api::MomentSpec(std::size_t)>& spec_of,
                     const Executor& executor, Done done) {
  if (Result<void> r = check_joined(of, moment.time); !r) return done(r.error());
  gather<ResolvedMoment>(
      of.members.size(),
      [&](std::size_t i, UniqueFunction<void(Result<ResolvedMoment>)> answer) {
        resolve_moment(of.members[i].moments, spec_of(i), executor, std::move(answer));
      },
      [moment = std::move(moment),
       done = std::move(done)](Result<std::vector<ResolvedMoment>> members) mutable {
        if (!members) return done(members.error());
        moment.members = *std::move(members);
        done(std::move(moment));
      });
}

// The time itself, or the one before the rollback that it falls into.
VersionTime whole(const GroupMoments& of, VersionTime time) {
  for (const meta::GroupRollback& rollback : of.rollbacks) {
    if (time.ns >= rollback.begun_ns() && time.ns < rollback.ended_ns()) {
      return VersionTime{rollback.begun_ns()};
    }
  }
  return time;
}

void resolve_time(const GroupMoments& of, VersionTime asked, const Executor& executor, Done done) {
  GroupMoment moment;
  moment.asked = asked;
  moment.time = whole(of, asked);
  api::MomentSpec spec;
  spec.set_time_ns(moment.time.ns);
  resolve_members(
      of, std::move(moment), [&spec](std::size_t) { return spec; }, executor, std::move(done));
}

// Where it is known of each member.
void resolve_parts(const GroupMoments& of, GroupMoment moment,
                   const google::protobuf::RepeatedPtrField<meta::GroupPart>& parts,
                   const Executor& executor, Done done) {
  if (Result<void> r = check_joined(of, moment.time); !r) return done(r.error());
  std::vector<api::MomentSpec> specs;
  for (const GroupMoments::Member& member : of.members) {
    const auto part = std::ranges::find(parts, member.volume, &meta::GroupPart::volume_id);
    if (part == parts.end()) {
      return done(Error{ErrorCode::kOutsideWindow, member.moments.volume +
                                                       " was not in the group " + of.group +
                                                       " at " + format_utc(moment.time)});
    }
    specs.emplace_back().set_sequence(part->sequence());
  }
  resolve_members(
      of, std::move(moment), [&specs](std::size_t i) { return specs[i]; }, executor,
      std::move(done));
}

}  // namespace

Result<GroupMoments> moments_of(GroupSet& groups, const std::string& name, MetaStore& store) {
  const Result<ServedGroup*> group = groups.find(name);
  if (!group) return group.error();
  if ((*group)->rolling_back) {
    return Error{ErrorCode::kUnavailable,
                 name + " is being rolled back; try again when that is done"};
  }
  const Result<std::vector<ServedVolume*>> members = groups.members(**group);
  if (!members) return members.error();
  Result<std::vector<meta::GroupMark>> marks = store.group_marks_of(name);
  if (!marks) return marks.error();
  GroupMoments of;
  of.group = name;
  of.marks = *std::move(marks);
  of.rollbacks = (*group)->rollbacks;
  of.now = groups.now(**group);
  for (std::size_t i = 0; i < members->size(); ++i) {
    const ServedVolume& volume = *(*members)[i];
    Result<MomentsOf> moments = moments_of(volume, store);
    if (!moments) return moments.error();
    const meta::Group::Member& member = (*group)->meta.members(static_cast<int>(i));
    of.members.push_back(
        {member.volume_id(), VersionTime{member.joined_ns()}, *std::move(moments)});
  }
  return of;
}

void resolve_moment(const GroupMoments& of, const api::MomentSpec& spec, const Executor& executor,
                    Done done) {
  switch (spec.at_case()) {
    case api::MomentSpec::kTimeNs:
      return resolve_time(of, VersionTime{spec.time_ns()}, executor, std::move(done));
    case api::MomentSpec::kNow: return resolve_time(of, of.now, executor, std::move(done));
    case api::MomentSpec::kSequence:
      return done(Error{ErrorCode::kInvalidArgument,
                        "a group has no sequence numbers, its volumes have each its own; a moment "
                        "of " +
                            of.group + " is a time or a mark"});
    case api::MomentSpec::kMark: {
      const Result<meta::GroupMark> mark = find_mark(of.marks, of.group, spec.mark());
      if (!mark) return done(mark.error());
      GroupMoment moment;
      moment.time = VersionTime{mark->time_ns()};
      moment.mark = spec.mark();
      return resolve_parts(of, std::move(moment), mark->parts(), executor, std::move(done));
    }
    case api::MomentSpec::AT_NOT_SET: break;
  }
  done(Error{ErrorCode::kInvalidArgument, "no moment was given"});
}

void resolve_undo(const GroupMoments& of, const Executor& executor, Done done) {
  if (of.rollbacks.empty()) {
    return done(Error{ErrorCode::kNotFound, "the group " + of.group +
                                                " has not been rolled back: there is nothing to "
                                                "undo"});
  }
  const meta::GroupRollback& newest = of.rollbacks.back();
  GroupMoment moment;
  moment.time = VersionTime{newest.begun_ns()};
  resolve_parts(of, std::move(moment), newest.before(), executor, std::move(done));
}

Result<meta::GroupMark> find_mark(const std::vector<meta::GroupMark>& marks,
                                  const std::string& group, const std::string& name) {
  const auto mark = std::ranges::find(marks, name, &meta::GroupMark::name);
  if (mark != marks.end()) return *mark;
  return Error{ErrorCode::kNotFound, "the group " + group + " has no mark named " + name +
                                         "; see `mariner mark list group:" + group + "`"};
}

Result<void> check_mark(const GroupMoments& of, const std::string& name) {
  if (Result<void> r = check_volume_name(name); !r) {
    return Error{r.error().code, "the mark's name: " + r.error().message};
  }
  if (std::ranges::find(of.marks, name, &meta::GroupMark::name) == of.marks.end()) return {};
  return Error{ErrorCode::kAlreadyExists,
               "the group " + of.group + " has a mark named " + name + " already"};
}

std::vector<meta::GroupPart> parts_of(const GroupMoments& of, const GroupMoment& moment) {
  std::vector<meta::GroupPart> parts;
  for (std::size_t i = 0; i < of.members.size(); ++i) {
    parts.push_back(part_of(VolumeId{of.members[i].volume}, moment.members[i].at));
  }
  return parts;
}

api::Moment to_api(const GroupMoment& moment) {
  api::Moment out = to_api(index::IndexMoment{{}, moment.time});
  out.set_asked_ns(moment.asked.ns);
  out.set_mark(moment.mark);
  return out;
}

}  // namespace mariner::node
