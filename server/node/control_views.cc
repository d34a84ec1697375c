// Views: expose, list, unexpose. See node_control.h.
#include <utility>

#include "server/node/identity.h"
#include "server/node/node_control.h"
#include "server/node/view_rules.h"

namespace mariner::node {

api::View NodeControl::to_api(const ServedView& view) {
  api::View out;
  out.set_name(view.meta.name());
  const ServedVolume* volume = node_.volumes_->find(view.meta.volume_id());
  if (volume != nullptr) out.set_volume(volume->meta.name());
  *out.mutable_at() = node::to_api(
      index::IndexMoment{SequenceNumber{view.meta.sequence()}, VersionTime{view.meta.time_ns()}});
  out.mutable_at()->set_asked_ns(view.meta.asked_ns());
  out.set_writable(view.meta.writable());
  out.set_size_bytes(view.meta.size_bytes());
  out.set_iqn(view.iqn);
  out.set_serial(view.identity.serial);
  out.set_naa(naa_text(view.identity));
  out.set_expires_ns(view.meta.expires_ns());
  out.set_created_ns(view.meta.created_ns());
  out.set_repaired_blocks(view.meta.repaired_blocks());
  out.set_sessions(
      static_cast<std::uint32_t>(node_.front_->portal().sessions().count_of(view.iqn)));
  if (view.failure) out.set_failure(view.failure->message);
  out.set_keep(view.meta.keep());
  out.set_group(view.meta.group());
  out.set_group_view(view.meta.group_view());
  out.set_overlay_bytes_max(view.meta.overlay_bytes_max());
  if (view.overlay != nullptr) {
    out.set_overlay_bytes(
        view.overlay->filled_bytes().value_or(view.overlay->log().payload_bytes()));
  }
  return out;
}

void NodeControl::view_expose(const api::ExposeRequest& request, admin::Answer<api::View> done) {
  if (Result<void> r = check_overlay(request); !r) return done(r.error());
  Result<ServedVolume*> served = find(request.volume());
  if (!served) return done(served.error());
  resolve_moment(
      **served, or_now(request.at()), *node_.store_, node_.loop_,
      [this, request, done = std::move(done)](const Result<ResolvedMoment>& moment) mutable {
        if (!moment) return done(moment.error());
        expose(request, *moment, std::move(done));
      });
}

void NodeControl::expose(const api::ExposeRequest& request, const ResolvedMoment& moment,
                         admin::Answer<api::View> done) {
  Result<ServedVolume*> volume = find(request.volume());
  if (!volume) return done(volume.error());
  NewView wanted;
  wanted.name = request.name();
  wanted.at = moment.at;
  wanted.asked = moment.asked;
  wanted.writable = request.writable();
  wanted.overlay_bytes_max = request.overlay_bytes_max();
  wanted.keep = request.keep();
  wanted.expires = view_expires(request.ttl_s(), node_.loop_.wall_time());
  if (!request.repairs().empty()) {
    const auto repairs = repairs_.take(request.repairs(), VolumeId{(*volume)->meta.id()},
                                       moment.at.sequence, request.dry_run());
    if (!repairs) return done(repairs.error());
    wanted.repairs = RepairFile::read(*repairs);
    wanted.repaired_blocks = (*repairs)->blocks();
  }
  if (request.dry_run()) {
    api::View planned;
    planned.set_name(wanted.name);
    planned.set_volume(request.volume());
    *planned.mutable_at() = node::to_api(moment);
    planned.set_writable(wanted.writable);
    planned.set_size_bytes((*volume)->meta.size_bytes());
    planned.set_overlay_bytes_max(node_.views_->overlay_bytes_max(wanted));
    planned.set_keep(wanted.keep);
    planned.set_expires_ns(wanted.expires.ns);
    planned.set_repaired_blocks(wanted.repaired_blocks);
    return done(std::move(planned));
  }
  node_.views_->expose(**volume, wanted,
                       [this, name = request.volume(),
                        done = std::move(done)](const Result<ServedView*>& view) mutable {
                         if (!view) return done(view.error());
                         const meta::View& meta = (*view)->meta;
                         node_.log_.info("exposed a view",
                                         {{"view", meta.name()},
                                          {"volume", name},
                                          {"sequence", meta.sequence()},
                                          {"repaired_blocks", meta.repaired_blocks()},
                                          {"target", (*view)->iqn}});
                         done(to_api(**view));
                       });
}

void NodeControl::view_list(admin::Answer<api::ViewList> done) {
  api::ViewList out;
  out.set_schema(1);
  for (const auto& [name, view] : node_.views_->all()) *out.add_views() = to_api(view);
  done(std::move(out));
}

Result<api::View> NodeControl::view_named(const std::string& name) {
  if (const ServedView* view = node_.views_->find(name); view != nullptr) {
    if (view->meta.group_view().empty()) return to_api(*view);
    return Error{ErrorCode::kInvalidArgument, name + " is a part of " + view->meta.group_view() +
                                                  ", a view of the group " + view->meta.group() +
                                                  ": unexpose that"};
  }
  const std::vector<std::string> parts = node_.views_->together(name);
  if (parts.empty()) return no_view(name);
  api::View out;
  for (const std::string& each : parts) {
    const api::View part = to_api(*node_.views_->find(each));
    const std::uint32_t sessions = out.sessions() + part.sessions();
    out.MergeFrom(part);
    out.set_sessions(sessions);
  }
  out.set_name(name);
  out.clear_volume();
  out.clear_iqn();
  out.clear_serial();
  out.clear_naa();
  // (Its parts have each their own number.)
  *out.mutable_at() = node::to_api(index::IndexMoment{{}, VersionTime{out.at().asked_ns()}});
  return out;
}

void NodeControl::view_unexpose(const api::UnexposeRequest& request,
                                admin::Answer<api::View> done) {
  Result<api::View> named = view_named(request.name());
  if (!named) return done(named.error());
  api::View was = *std::move(named);
  if (Result<void> r = check_unexpose(was, request.force()); !r) return done(r.error());
  if (request.dry_run()) return done(std::move(was));
  node_.unexpose(request.name(),
                 [this, was = std::move(was), done = std::move(done)](Result<void> result) mutable {
                   if (!result) return done(result.error());
                   node_.log_.info("unexposed a view", {{"view", was.name()}});
                   done(std::move(was));
                 });
}

}  // namespace mariner::node
