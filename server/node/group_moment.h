// Moments of a group: a time, and for each member the last write at or before it.
#pragma once

#include <string>
#include <vector>

#include "proto/admin.pb.h"
#include "server/node/group_set.h"
#include "server/node/moments.h"

namespace mariner::node {

// As much of a group as finding its moments needs. To be copied, as MomentsOf.
struct GroupMoments {
  struct Member {
    std::uint32_t volume = 0;
    VersionTime joined;
    MomentsOf moments;
  };
  std::string group;  // its name
  std::vector<Member> members;
  std::vector<meta::GroupMark> marks;
  std::vector<meta::GroupRollback> rollbacks;
  VersionTime now;
};
// kOutsideWindow: a member is gone; kUnavailable: it is being rolled back, and where it is shows
// then.
[[nodiscard]] Result<GroupMoments> moments_of(GroupSet& groups, const std::string& group,
                                              MetaStore& store);

struct GroupMoment {
  VersionTime time;
  VersionTime asked;  // 0 when it was not asked for by time
  std::string mark;
  std::vector<ResolvedMoment> members;  // in the order of the group's
};

// As resolve_moment() for all of them. kOutsideWindow, with the member's name, also when one was
// not in the group yet; kInvalidArgument also for a sequence number, which a group has none of.
// Between the records of a rollback of the group there is none: that means the one before it.
void resolve_moment(const GroupMoments& of, const api::MomentSpec& spec, const Executor& executor,
                    UniqueFunction<void(Result<GroupMoment>)> done);
// The moment before the newest rollback of the group. kNotFound: there was none.
void resolve_undo(const GroupMoments& of, const Executor& executor,
                  UniqueFunction<void(Result<GroupMoment>)> done);

// Among the marks of a group. kNotFound.
[[nodiscard]] Result<meta::GroupMark> find_mark(const std::vector<meta::GroupMark>& marks,
                                                const std::string& group, const std::string& name);
// kAlreadyExists; kInvalidArgument: the name is none.
[[nodiscard]] Result<void> check_mark(const GroupMoments& of, const std::string& name);

// The parts that its members have of it.
[[nodiscard]] std::vector<meta::GroupPart> parts_of(const GroupMoments& of,
                                                    const GroupMoment& moment);
[[nodiscard]] api::Moment to_api(const GroupMoment& moment);

}  // namespace mariner::node
