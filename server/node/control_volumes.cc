// Volumes: list, show, create, resize, delete, import, clone; and the node's status. See
// node_control.h.
#include <utility>

#include "proto/payload.h"
#include "server/node/identity.h"
#include "server/node/node_control.h"
#include "server/node/rollback_plan.h"

namespace mariner::node {
namespace {

constexpr std::uint64_t kDefaultWindow_s = 72 * 3600;

std::string state_name(const ServedVolume& served) {
  switch (served.meta.state()) {
    case meta::Volume::IMPORTING: return "importing";
    case meta::Volume::CLONING: return "cloning";
    case meta::Volume::DELETING: return "deleting";
    default: return served.serves() ? "ready" : "failed";
  }
}

NewVolume new_volume_of(const std::string& name, std::uint64_t size_bytes, std::uint32_t block_size,
                        std::uint64_t window_s) {
  NewVolume wanted;
  wanted.name = name;
  wanted.size_bytes = size_bytes;
  wanted.block_size = block_size == 0 ? 512 : block_size;
  wanted.window_s = window_s == 0 ? kDefaultWindow_s : window_s;
  return wanted;
}

}  // namespace

Result<ServedVolume*> NodeControl::find(const std::string& name) {
  Result<ServedVolume*> served = find_known(name);
  if (served && !(*served)->serves()) return not_served(**served);
  return served;
}

Result<ServedVolume*> NodeControl::find_known(const std::string& name) {
  ServedVolume* served = node_.volumes_->find(name);
  if (served == nullptr) {
    return Error{ErrorCode::kNotFound,
                 "there is no volume " + name + "; see `mariner volume list`"};
  }
  if (served->volume == nullptr) {
    return Error{ErrorCode::kUnavailable, "the volume " + name + " is " + state_name(*served)};
  }
  return served;
}

api::Volume NodeControl::to_api(const ServedVolume& served) {
  api::Volume out;
  const meta::Volume& meta = served.meta;
  out.set_name(meta.name());
  out.set_id(meta.id());
  out.set_size_bytes(meta.size_bytes());
  out.set_block_size(meta.block_size());
  out.set_window_s(meta.window_s());
  out.set_retain(retention_text(retention_of(meta)));
  if (served.volume != nullptr) {
    out.set_kept(static_cast<std::uint32_t>(served.volume->index().kept().size()));
  }
  out.set_sanitize(meta.sanitize());
  out.set_removable(meta.removable());
  out.set_iqn(served.iqn);
  out.set_state(state_name(served));
  if (served.failure) out.set_failure(served.failure->message);
  out.set_serial(served.identity.serial);
  out.set_naa(naa_text(served.identity));
  out.set_image_path(served.image_path);
  out.set_views(static_cast<std::uint32_t>(node_.views_->count_of(meta.id())));
  if (Result<std::vector<meta::Mark>> marks = node_.store_->marks_of(meta.id()); marks) {
    out.set_marks(static_cast<std::uint32_t>(marks->size()));
  }
  out.set_sessions(
      static_cast<std::uint32_t>(node_.front_->portal().sessions().count_of(served.iqn)));
  *out.mutable_access() = access_of(served, meta);
  if (served.image != nullptr) out.set_image_bytes(served.image->allocated_bytes());
  if (const auto outlook = node_.window_watch_->outlook(VolumeId{meta.id()});
      outlook && outlook->short_in) {
    out.mutable_outlook()->set_short_in_s(static_cast<std::uint64_t>(outlook->short_in->count()));
    out.mutable_outlook()->set_lasting_s(static_cast<std::uint64_t>(outlook->lasting.count()));
  }
  if (served.volume != nullptr) {
    *out.mutable_newest() = node::to_api(served.volume->index().newest());
    *out.mutable_oldest() = node::to_api(oldest_moment(served));
    out.set_history_bytes(served.volume->log().payload_bytes());
    if (const volume::Storage* storage = served.volume->storage(); storage != nullptr) {
      out.set_unapplied_bytes(storage->lag_bytes());
      out.set_restoring(storage->restoring());
      add_restore(*storage, out);
    }
  }
  return out;
}

void NodeControl::status(admin::Answer<api::StatusAnswer> done) {
  api::StatusAnswer out;
  out.set_schema(1);
  out.set_version(MARINER_VERSION);
  out.set_started_ns(node_.started_.ns);
  out.set_now_ns(node_.loop_.wall_time().ns);
  for (const std::string& portal : node_.front_->portal().addresses()) out.add_portals(portal);
  out.set_iqn_base(node_.config_.server.iqn_base);
  out.set_log_used_bytes(node_.node_log_->stack().writer().used_bytes());
  out.set_log_limit_bytes(node_.node_log_->stack().writer().limit_bytes());
  out.set_log_history_bytes(node_.node_log_->stack().writer().history_bytes());
  out.set_log_compacting(node_.log_packing_->compacting());
  out.set_log_compact_trouble(node_.log_packing_->trouble());
  out.set_config_path(node_.config_path_);
  out.set_ready(node_.readiness().has_value());
  out.set_epoch(node_.epoch_.value);
  out.set_payload_memory_bytes(Payload::total_bytes());
  done(std::move(out));
}

void NodeControl::log_compact(admin::Answer<api::CompactAnswer> done) {
  if (Result<void> r = node_.log_packing_->compact_now(); !r) return done(r.error());
  api::CompactAnswer out;
  out.set_schema(1);
  done(std::move(out));
}

void NodeControl::volume_list(admin::Answer<api::VolumeList> done) {
  api::VolumeList out;
  out.set_schema(1);
  for (const auto& [name, served] : node_.volumes_->all()) *out.add_volumes() = to_api(served);
  done(std::move(out));
}

void NodeControl::volume_show(const api::VolumeRequest& request, admin::Answer<api::Volume> done) {
  const ServedVolume* served = node_.volumes_->find(request.name());
  if (served == nullptr) return done(find(request.name()).error());
  done(to_api(*served));
}

void NodeControl::volume_create(const api::CreateVolumeRequest& request,
                                admin::Answer<api::Volume> done) {
  NewVolume wanted =
      new_volume_of(request.name(), request.size_bytes(), request.block_size(), request.window_s());
  if (!request.retain().empty()) {
    const Result<Retention> retain = parse_retention(request.retain());
    if (!retain) return done(retain.error());
    wanted.retain = *retain;
  }
  wanted.sanitize = request.sanitize();
  wanted.removable = request.removable();
  if (request.dry_run()) {
    Result<meta::Volume> meta = node_.volumes_->plan(wanted);
    if (!meta) return done(meta.error());
    ServedVolume planned;
    planned.meta = *meta;
    planned.iqn = volume_iqn(node_.config_.server.iqn_base, wanted.name);
    api::Volume out = to_api(planned);
    out.set_state("planned");
    return done(std::move(out));
  }
  Result<ServedVolume*> created = node_.volumes_->create(wanted);
  if (!created) return done(created.error());
  node_.log_.info("created a volume", {{"volume", wanted.name}, {"target", (*created)->iqn}});
  done(to_api(**created));
}

void NodeControl::volume_resize(const api::ResizeRequest& request,
                                admin::Answer<api::Volume> done) {
  Result<ServedVolume*> served = find(request.name());
  if (!served) return done(served.error());
  if (Result<void> r = node_.access_->check_changeable(**served, "size"); !r) {
    return done(r.error());
  }
  if (request.dry_run()) {
    const Result<meta::Volume> meta =
        node_.volumes_->plan_resize(request.name(), request.size_bytes());
    if (!meta) return done(meta.error());
    api::Volume out = to_api(**served);
    out.set_size_bytes(meta->size_bytes());
    return done(std::move(out));
  }
  node_.volumes_->resize(request.name(), request.size_bytes(),
                         [this, was = (*served)->meta.size_bytes(),
                          done = std::move(done)](Result<ServedVolume*> resized) mutable {
                           if (!resized) return done(resized.error());
                           const meta::Volume& meta = (*resized)->meta;
                           if (meta.size_bytes() != was) {
                             node_.log_.info("resized a volume", {{"volume", meta.name()},
                                                                  {"from_bytes", was},
                                                                  {"to_bytes", meta.size_bytes()}});
                           }
                           done(to_api(**resized));
                         });
}

void NodeControl::volume_delete(const api::VolumeRequest& request,
                                admin::Answer<api::Volume> done) {
  Result<ServedVolume*> served = find_known(request.name());
  if (!served) return done(served.error());
  if (const std::string file = node_.access_->declared_in(**served); !file.empty()) {
    return done(
        Error{ErrorCode::kReadOnly,
              request.name() + " is declared in " + file +
                  ", and would come back empty: remove its [[volume]] there, let the daemon "
                  "read it again (systemctl reload marinerd), then delete it"});
  }
  const std::string iqn = (*served)->iqn;
  const std::size_t sessions = node_.front_->portal().sessions().count_of(iqn);
  const std::size_t views = node_.views_->count_of((*served)->meta.id());
  if (views > 0) {
    return done(Error{ErrorCode::kBusy, request.name() + " has " + std::to_string(views) +
                                            " exposed views; unexpose them first"});
  }
  if (sessions > 0 && !request.force()) {
    return done(Error{ErrorCode::kBusy, request.name() + " is used by " + std::to_string(sessions) +
                                            " sessions; log them out, or use --force"});
  }
  if (const ServedGroup* group = node_.groups_->group_of((*served)->meta.id()); group != nullptr) {
    const std::string& name = group->meta.name();
    return done(Error{ErrorCode::kBusy, request.name() + " is in the group " + name +
                                            "; `mariner group remove " + name + " " +
                                            request.name() + "` comes first"});
  }
  Result<std::vector<meta::Mark>> marks = node_.store_->marks_of((*served)->meta.id());
  if (!marks) return done(marks.error());
  const std::uint64_t now = node_.loop_.wall_time().ns;
  for (const meta::Mark& mark : *marks) {
    if (mark.locked_until_ns() > now) {
      return done(Error{ErrorCode::kBusy, "the mark " + mark.name() + " of " + request.name() +
                                              " is locked; remove it first"});
    }
  }
  api::Volume was = to_api(**served);
  if (request.dry_run()) return done(std::move(was));
  node_.front_->portal().sessions().close_target(iqn);
  node_.volumes_->remove(request.name(), [this, was = std::move(was),
                                          done = std::move(done)](Result<void> removed) mutable {
    if (!removed) return done(removed.error());
    node_.log_.info("deleted a volume", {{"volume", was.name()}});
    done(std::move(was));
  });
}

void NodeControl::volume_import(const api::ImportRequest& request,
                                UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
                                admin::Answer<api::Volume> done) {
  const NewVolume wanted =
      new_volume_of(request.name(), 0, request.block_size(), request.window_s());
  node_.volumes_->import(
      wanted, request.path(), request.dry_run(), std::move(progress),
      [this, done = std::move(done)](Result<ServedVolume*> imported) mutable {
        if (!imported) return done(imported.error());
        node_.log_.info("imported a volume", {{"volume", (*imported)->meta.name()}});
        done(to_api(**imported));
      });
}

void NodeControl::volume_clone(const api::CloneRequest& request,
                               UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
                               admin::Answer<api::Clone> done) {
  Result<ServedVolume*> source = find(request.volume());
  if (!source) return done(source.error());
  resolve_moment(**source, or_now(request.at()), *node_.store_, node_.loop_,
                 [this, request, progress = std::move(progress),
                  done = std::move(done)](const Result<ResolvedMoment>& moment) mutable {
                   if (!moment) return done(moment.error());
                   clone(request, *moment, std::move(progress), std::move(done));
                 });
}

void NodeControl::clone(const api::CloneRequest& request, const ResolvedMoment& moment,
                        UniqueFunction<void(std::uint64_t, std::uint64_t)> progress,
                        admin::Answer<api::Clone> done) {
  Result<ServedVolume*> source = find(request.volume());
  if (!source) return done(source.error());
  const std::uint64_t window_s =
      request.window_s() == 0 ? (*source)->meta.window_s() : request.window_s();
  NewVolume wanted = new_volume_of(request.name(), 0, 0, window_s);
  wanted.sanitize = request.sanitize();
  wanted.removable = request.removable();
  node_.volumes_->clone(
      wanted, **source, moment.at.sequence, request.dry_run(), std::move(progress),
      [this, request, moment, done = std::move(done)](Result<ServedVolume*> cloned) mutable {
        if (!cloned) return done(cloned.error());
        if (!request.dry_run()) {
          node_.log_.info("cloned a volume", {{"volume", (*cloned)->meta.name()},
                                              {"source", request.volume()},
                                              {"sequence", moment.at.sequence.value}});
        }
        api::Clone out;
        out.set_schema(1);
        out.set_source(request.volume());
        *out.mutable_at() = node::to_api(moment);
        *out.mutable_volume() = to_api(**cloned);
        if (request.dry_run()) out.mutable_volume()->set_state("planned");
        done(std::move(out));
      });
}

}  // namespace mariner::node
