// What a rollback would do, looked up before it is done, and the mark by which it can be undone.
#pragma once

#include "proto/admin.pb.h"
#include "proto/executor.h"
#include "proto/meta.pb.h"
#include "replication/messages.h"
#include "server/node/moments.h"
#include "server/node/repair_desk.h"
#include "server/volume/storage.h"

namespace mariner::node {

struct RollbackPlan {
  ResolvedMoment target;
  api::RollbackAnswer answer;  // with what would change
};

// To what `request` asks for; with undo, to the moment before the newest rollback. kNotFound: there
// is none; otherwise as resolve_moment().
void plan_rollback(const MomentsOf& of, const api::RollbackRequest& request,
                   const Executor& executor, UniqueFunction<void(Result<RollbackPlan>)> done);

// The repairs that a request names, for the answer's target, counted in the answer; null: none. Of
// a dry run they stay at the desk. Errors of RepairDesk::take(); kInvalidArgument: undoing has
// none.
[[nodiscard]] Result<std::shared_ptr<volume::RepairSource>> repairs_of(
    RepairDesk& desk, const api::RollbackRequest& request, VolumeId volume,
    api::RollbackAnswer& answer);
// `done`, or the error that says that the rollback has happened but its repairs (null: none) were
// not all written.
[[nodiscard]] UniqueFunction<void(Result<api::RollbackAnswer>)> unless_not_mended(
    std::shared_ptr<volume::RepairSource> repairs,
    UniqueFunction<void(Result<api::RollbackAnswer>)> done);

// Why it is not done while hosts use the volume.
[[nodiscard]] Error rollback_refused(const std::string& volume, std::size_t sessions);

// What a volume's answer says while a rollback is being restored here.
void add_restore(const volume::Storage& storage, api::Volume& to);

// A name for the mark on the moment before a rollback: "before-rollback-20261120-143205z-41".
[[nodiscard]] std::string automatic_mark_name(VersionTime now, std::uint64_t number);

// Marks `before`, the moment before the rollback that has this stamp.
[[nodiscard]] meta::Mark mark_before(const index::IndexMoment& before,
                                     const replication::Stamp& stamp, VolumeId volume,
                                     VersionTime now);

}  // namespace mariner::node
