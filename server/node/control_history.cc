// History, marks, and what checks found. See node_control.h.
#include <algorithm>
#include <utility>

#include "server/node/history_answer.h"
#include "server/node/node_control.h"

namespace mariner::node {

Result<MomentsOf> NodeControl::find_moments(const std::string& name) {
  Result<ServedVolume*> served = find_known(name);
  if (!served) return served.error();
  return moments_of(**served, *node_.store_);
}

NodeControl::NodeControl(Node& node)
    : node_(node),
      past_(node.loop_, [this](const std::string& name) { return find_past(name); }),
      repairs_(node.loop_, node.config_.server.state_dir,
               [this](const std::string& name) { return find_repaired(name); }),
      files_(node.loop_.context(), node.loop_, {.socket = node.config_.server.admin_socket}) {}

Result<RepairDesk::Volume> NodeControl::find_repaired(const std::string& name) {
  Result<VerdictDesk::Volume> volume = find_checked(name);
  if (!volume) return volume.error();
  return RepairDesk::Volume{volume->id, node_.volumes_->find(name)->meta.size_bytes(),
                            std::move(volume->moments)};
}

Result<PastDesk::Volume> NodeControl::find_past(const std::string& name) {
  Result<ServedVolume*> served = find_known(name);
  if (!served) return served.error();
  Result<MomentsOf> moments = moments_of(**served, *node_.store_);
  if (!moments) return moments.error();
  const std::shared_ptr<volume::Volume>& of = (*served)->volume;
  const auto hold = [of](SequenceNumber at, PastDesk::HoldDone done) {
    const auto pin = of->pin(at);
    if (!pin) return done(pin.error());
    done(PastDesk::Hold{*pin, [kept = *pin] { return kept->holds(); }});
  };
  return PastDesk::Volume{of->id(), of->size_bytes(), *std::move(moments), &of->history(), hold};
}

void NodeControl::history(const api::HistoryRequest& request, admin::Answer<api::History> done) {
  const Result<MomentsOf> of = find_moments(request.name());
  if (!of) return done(of.error());
  Result<std::vector<meta::ClockStep>> steps = node_.store_->clock_steps();
  if (!steps) return done(steps.error());
  const auto id = VolumeId{node_.volumes_->find(request.name())->meta.id()};
  Result<std::vector<meta::Verdict>> verdicts = node_.verdicts_->all(id);
  if (!verdicts) return done(verdicts.error());
  answer_history(*of, request, {*std::move(steps), *std::move(verdicts)}, node_.loop_,
                 std::move(done));
}

Result<VerdictDesk::Volume> NodeControl::find_checked(const std::string& name) {
  Result<ServedVolume*> served = find(name);
  if (!served) return served.error();
  Result<MomentsOf> moments = moments_of(**served, *node_.store_);
  if (!moments) return moments.error();
  return VerdictDesk::Volume{VolumeId{(*served)->meta.id()}, *std::move(moments)};
}

void NodeControl::verdicts_save(const api::SaveVerdictsRequest& request,
                                admin::Answer<api::VerdictList> done) {
  node_.verdicts_->save(request, std::move(done));
}

void NodeControl::verdict_list(const api::VerdictsRequest& request,
                               admin::Answer<api::VerdictList> done) {
  node_.verdicts_->list(request, std::move(done));
}

void NodeControl::mark_add(const api::MarkRequest& request, admin::Answer<api::Mark> done) {
  Result<ServedVolume*> served = find_known(request.volume());
  if (!served) return done(served.error());
  const Result<MomentsOf> of = moments_of(**served, *node_.store_);
  if (!of) return done(of.error());
  if (Result<void> r = check_mark(*of, request.name()); !r) return done(r.error());
  resolve_moment(*of, or_now(request.at()), node_.loop_,
                 [this, request, id = (*served)->meta.id(),
                  done = std::move(done)](const Result<ResolvedMoment>& moment) mutable {
                   if (!moment) return done(moment.error());
                   if (Result<ServedVolume*> volume = find_known(request.volume()); !volume) {
                     return done(volume.error());
                   }
                   const meta::Mark mark =
                       mark_of(request, VolumeId{id}, moment->at, node_.loop_.wall_time());
                   if (!request.dry_run()) {
                     if (Result<void> r = node_.store_->put_mark(mark); !r) return done(r.error());
                   }
                   done(node::to_api(mark, request.volume()));
                 });
}

void NodeControl::mark_list(const api::MarkRequest& request, admin::Answer<api::MarkList> done) {
  const Result<MomentsOf> of = find_moments(request.volume());
  if (!of) return done(of.error());
  done(node::to_api(*of));
}

void NodeControl::mark_remove(const api::MarkRequest& request, admin::Answer<api::Mark> done) {
  const Result<MomentsOf> of = find_moments(request.volume());
  if (!of) return done(of.error());
  const Result<meta::Mark> mark = find_mark(*of, request.name());
  if (!mark) return done(mark.error());
  if (!mark->group().empty()) {
    return done(Error{ErrorCode::kInvalidArgument,
                      mark->name() + " is a part of a mark of the group " + mark->group() +
                          ", and goes with that: see `mariner mark remove group:" + mark->group() +
                          "`"});
  }
  if (!request.dry_run()) {
    if (Result<void> r = node_.store_->remove_mark(mark->volume_id(), mark->name()); !r) {
      return done(r.error());
    }
  }
  done(node::to_api(*mark, request.volume()));
}

}  // namespace mariner::node
