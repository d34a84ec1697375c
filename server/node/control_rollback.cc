// Rollback and its undoing: one log record each. See node_control.h.
#include <utility>

#include "server/node/node_control.h"
#include "server/node/rollback_plan.h"
#include "server/node/session_answer.h"

namespace mariner::node {

void NodeControl::rollback(const api::RollbackRequest& request,
                           admin::Answer<api::RollbackAnswer> done) {
  const Result<MomentsOf> of = find_moments(request.volume());
  if (!of) return done(of.error());
  plan_rollback(*of, request, node_.loop_,
                [this, request, done = std::move(done)](Result<RollbackPlan> plan) mutable {
                  if (!plan) return done(plan.error());
                  apply_rollback(request, plan->target, std::move(plan->answer), std::move(done));
                });
}

void NodeControl::apply_rollback(const api::RollbackRequest& request, const ResolvedMoment& target,
                                 api::RollbackAnswer answer,
                                 admin::Answer<api::RollbackAnswer> done) {
  const std::string& name = request.volume();
  Result<ServedVolume*> served = find(name);
  if (!served) return done(served.error());
  volume::Volume& volume = *(*served)->volume;
  const std::vector<iscsi::SessionInfo> sessions = sessions_of((*served)->iqn);
  for (const iscsi::SessionInfo& session : sessions) *answer.add_sessions() = to_api(session);
  answer.set_dry_run(request.dry_run());
  const bool used = in_use(sessions, node_.loop_.monotonic_time());
  if (used && !request.force() && !request.dry_run()) {
    return done(rollback_refused(name, sessions.size()));
  }
  const auto repairs = repairs_of(repairs_, request, VolumeId{(*served)->meta.id()}, answer);
  if (!repairs) return done(repairs.error());
  if (request.dry_run()) return done(std::move(answer));
  volume.live().rollback(target.at, *repairs,
                         [this, name, repairs = *repairs, answer = std::move(answer),
                          done = std::move(done)](Result<replication::Stamp> stamp) mutable {
                           if (!stamp) return done(stamp.error());
                           finish_rollback(name, *stamp, std::move(answer),
                                           unless_not_mended(repairs, std::move(done)));
                         });
}

// Marks the moment before it, by which it can be undone.
void NodeControl::finish_rollback(const std::string& name, const replication::Stamp& stamp,
                                  api::RollbackAnswer answer,
                                  admin::Answer<api::RollbackAnswer> done) {
  Result<ServedVolume*> served = find(name);
  if (!served) return done(served.error());
  (*served)->device->contents_replaced(scsi::Lun{0});
  auto marked = [this, name, stamp, answer = std::move(answer), done = std::move(done),
                 volume = (*served)->volume](const Result<index::IndexMoment>& before) mutable {
    Result<ServedVolume*> rolled = find(name);
    if (!rolled) return done(rolled.error());
    if (!before) return done(before.error());
    const meta::Mark mark =
        mark_before(*before, stamp, VolumeId{(*rolled)->meta.id()}, node_.loop_.wall_time());
    if (Result<void> r = node_.store_->put_mark(mark); r) {
      answer.set_before_mark(mark.name());
    } else {
      node_.log_.warning("the moment before a rollback could not be marked",
                         {{"volume", name}, {"error", to_string(r.error())}});
    }
    *answer.mutable_before() = node::to_api(*before);
    answer.set_sequence(stamp.sequence.value);
    node_.log_.info("rolled back", {{"volume", name},
                                    {"to_sequence", answer.target().sequence()},
                                    {"sequence", stamp.sequence.value},
                                    {"changed_bytes", answer.changed_bytes()}});
    done(std::move(answer));
  };
  (*served)->volume->index().moment_of(SequenceNumber{stamp.sequence.value - 1}, std::move(marked));
}

}  // namespace mariner::node
