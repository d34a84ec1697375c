// What is kept behind the windows. See node_control.h.
#include <algorithm>
#include <utility>

#include "server/client/retention.h"
#include "server/node/node_control.h"
#include "server/node/retained_choice.h"
#include "server/volume/kept_choice.h"

namespace mariner::node {
namespace {

// Why a moment is kept; nothing: nobody wants it any longer.
std::vector<std::string> reasons(const index::KeptMoment& kept, const MomentsOf& of,
                                 const std::vector<meta::View>& views,
                                 const std::vector<RetainedChoice>& choices) {
  std::vector<std::string> out;
  for (const RetainedChoice& each : choices) {
    if (!stands_for(kept, each)) continue;
    out.push_back(std::string(each.asked.period) + (each.clean ? " (clean)" : ""));
  }
  for (const meta::Mark& mark : of.marks) {
    if (mark.sequence() == kept.moment.sequence.value) out.push_back("mark " + mark.name());
  }
  for (const meta::View& view : views) {
    if (view.sequence() == kept.moment.sequence.value) out.push_back("view " + view.name());
  }
  return out;
}

}  // namespace

void NodeControl::volume_retain(const api::RetainRequest& request,
                                admin::Answer<api::Volume> done) {
  const Result<Retention> retain = parse_retention(request.retain());
  if (!retain) return done(retain.error());
  Result<ServedVolume*> served = find_known(request.name());
  if (!served) return done(served.error());
  if (Result<void> r = node_.access_->check_changeable(**served, "retain"); !r) {
    return done(r.error());
  }
  meta::Volume meta = (*served)->meta;
  meta.set_retain(retention_text(*retain));
  if (!request.dry_run()) {
    if (Result<void> r = node_.store_->put_volume(meta); !r) return done(r.error());
    (*served)->meta = meta;
    node_.log_.info("what is kept behind a volume's window changes",
                    {{"volume", meta.name()}, {"retain", meta.retain()}});
  }
  api::Volume out = to_api(**served);
  out.set_retain(meta.retain());
  done(std::move(out));
}

void NodeControl::history_prune(const api::PruneRequest& request,
                                admin::Answer<api::PruneAnswer> done) {
  Result<ServedVolume*> served = find_known(request.name());
  if (!served) return done(served.error());
  const Result<MomentsOf> of = find_moments(request.name());
  if (!of) return done(of.error());
  Retention retain = retention_of((*served)->meta);
  if (!request.retain().empty()) {
    if (!request.dry_run()) {
      return done(Error{ErrorCode::kInvalidArgument,
                        "other moments than those of the volume are for a dry run; `mariner volume "
                        "retain` changes what it keeps"});
    }
    const Result<Retention> other = parse_retention(request.retain());
    if (!other) return done(other.error());
    retain = *other;
  }
  const VolumeId id{(*served)->meta.id()};
  volume::LoggedVolume& logged = (*served)->volume->logged();
  const std::vector<meta::View> views = node_.keeper_->views(id);
  const index::StoredIndex& index = logged.index();
  const std::vector<index::IndexMoment> clean = node_.keeper_->clean_moments(id);
  const std::vector<RetainedChoice> choices = choose_retained(
      retained_times(retain, node_.loop_.wall_time()), {index.oldest(), index.kept(), clean});
  api::PruneAnswer answer;
  answer.set_schema(1);
  answer.set_volume(request.name());
  answer.set_retain(retention_text(retain));
  *answer.mutable_oldest() = node::to_api(oldest_moment(**served));
  for (const index::KeptMoment& each : index.kept()) {
    std::vector<std::string> because = reasons(each, *of, views, choices);
    if (because.empty() && volume::is_in_use(logged, each)) because.emplace_back("in use");
    api::KeptMoment& out = because.empty() ? *answer.add_gone() : *answer.add_kept();
    *out.mutable_at() = node::to_api(each.moment);
    *out.mutable_through() = node::to_api(index::IndexMoment{each.moment.sequence, each.through});
    for (std::string& reason : because) out.add_because(std::move(reason));
  }
  if (request.dry_run() || answer.gone().empty()) return done(std::move(answer));
  node_.log_space_->prune(
      id, [answer = std::move(answer), done = std::move(done)](Result<void> pruned) mutable {
        if (!pruned) return done(pruned.error());
        done(std::move(answer));
      });
}

}  // namespace mariner::node
