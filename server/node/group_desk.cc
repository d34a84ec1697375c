#include "server/node/group_desk.h"

#include <algorithm>
#include <utility>

#include "server/node/gather.h"
#include "server/node/history_answer.h"
#include "server/node/rollback_plan.h"
#include "server/node/session_answer.h"
#include "server/node/view_rules.h"

namespace mariner::node {
namespace {

GroupSet::Names names_of(const api::GroupRequest& request) {
  return {request.volumes().begin(), request.volumes().end()};
}

std::uint64_t locked_until_ns(const api::GroupMarkRequest& request, VersionTime now) {
  api::MarkRequest lock;
  lock.set_lock_s(request.lock_s());
  return mark_of(lock, {}, {}, now).locked_until_ns();
}

// A view that a dry run would expose.
api::View planned_view(const meta::View& meta, const std::string& volume) {
  api::View out;
  out.set_name(meta.name());
  out.set_volume(volume);
  *out.mutable_at() =
      to_api(index::IndexMoment{SequenceNumber{meta.sequence()}, VersionTime{meta.time_ns()}});
  out.set_writable(meta.writable());
  out.set_size_bytes(meta.size_bytes());
  out.set_overlay_bytes_max(meta.overlay_bytes_max());
  out.set_keep(meta.keep());
  out.set_expires_ns(meta.expires_ns());
  out.set_group(meta.group());
  out.set_group_view(meta.group_view());
  return out;
}

api::ExposeRequest expose_request(const api::GroupExposeRequest& request) {
  api::ExposeRequest out;
  out.set_writable(request.writable());
  out.set_overlay_bytes_max(request.overlay_bytes_max());
  return out;
}

}  // namespace

api::GroupMember GroupDesk::to_api(const meta::Group::Member& member) const {
  api::GroupMember out;
  out.set_volume(member.name());
  out.set_id(member.volume_id());
  out.set_joined_ns(member.joined_ns());
  const ServedVolume* served = parts_.volumes.find(member.volume_id());
  if (served == nullptr || served->volume == nullptr) return out;
  *out.mutable_oldest() = node::to_api(oldest_moment(*served));
  api::Volume shown;
  if (const volume::Storage* storage = served->volume->storage()) add_restore(*storage, shown);
  if (shown.has_restore()) *out.mutable_restore() = shown.restore();
  return out;
}

api::Group GroupDesk::to_api(const meta::Group& meta) const {
  api::Group out;
  out.set_name(meta.name());
  out.set_created_ns(meta.created_ns());
  for (const meta::Group::Member& member : meta.members()) {
    const api::GroupMember& shown = *out.add_members() = to_api(member);
    out.set_oldest_ns(std::max({out.oldest_ns(), member.joined_ns(), shown.oldest().time_ns()}));
  }
  if (const auto marks = parts_.store.group_marks_of(meta.name())) {
    out.set_marks(static_cast<std::uint32_t>(marks->size()));
  }
  out.set_views(static_cast<std::uint32_t>(parts_.groups.views_of(meta.name())));
  const auto group = parts_.groups.all().find(meta.name());
  out.set_rolling_back(group != parts_.groups.all().end() && group->second.rolling_back);
  return out;
}

api::GroupMark GroupDesk::to_api(const meta::GroupMark& mark) const {
  api::GroupMark out;
  out.set_name(mark.name());
  out.set_group(mark.group());
  *out.mutable_at() = node::to_api(index::IndexMoment{{}, VersionTime{mark.time_ns()}});
  out.mutable_at()->set_mark(mark.name());
  out.set_locked_until_ns(mark.locked_until_ns());
  out.set_created_ns(mark.created_ns());
  out.set_automatic(mark.automatic());
  for (const meta::GroupPart& part : mark.parts()) {
    api::GroupPart& shown = *out.add_parts();
    if (const ServedVolume* served = parts_.volumes.find(part.volume_id())) {
      shown.set_volume(served->meta.name());
    }
    *shown.mutable_at() = node::to_api(moment_of(part));
  }
  return out;
}

void GroupDesk::list(admin::Answer<api::GroupList> done) {
  api::GroupList out;
  out.set_schema(1);
  for (const auto& [name, group] : parts_.groups.all()) *out.add_groups() = to_api(group.meta);
  done(std::move(out));
}

void GroupDesk::show(const api::GroupRequest& request, admin::Answer<api::Group> done) {
  const Result<ServedGroup*> group = parts_.groups.find(request.name());
  if (!group) return done(group.error());
  done(to_api((*group)->meta));
}

void GroupDesk::answer(const char* what, const Result<meta::Group>& group, bool dry_run,
                       admin::Answer<api::Group> done) const {
  if (!group) return done(group.error());
  if (!dry_run) {
    parts_.log.info(what, {{"group", group->name()}, {"volumes", group->members_size()}});
  }
  done(to_api(*group));
}

void GroupDesk::create(const api::GroupRequest& request, admin::Answer<api::Group> done) {
  answer("created a group",
         parts_.groups.create(request.name(), names_of(request), request.dry_run()),
         request.dry_run(), std::move(done));
}

void GroupDesk::add(const api::GroupRequest& request, admin::Answer<api::Group> done) {
  answer("volumes joined a group",
         parts_.groups.add(request.name(), names_of(request), request.dry_run()), request.dry_run(),
         std::move(done));
}

void GroupDesk::remove(const api::GroupRequest& request, admin::Answer<api::Group> done) {
  if (request.volumes_size() != 1) {
    return done(Error{ErrorCode::kInvalidArgument, "one volume is removed at a time"});
  }
  answer("a volume left a group",
         parts_.groups.remove(request.name(), request.volumes(0), request.dry_run()),
         request.dry_run(), std::move(done));
}

void GroupDesk::erase(const api::GroupRequest& request, admin::Answer<api::Group> done) {
  const Result<ServedGroup*> group = parts_.groups.find(request.name());
  if (!group) return done(group.error());
  const api::Group was = to_api((*group)->meta);
  const Result<meta::Group> erased = parts_.groups.erase(request.name(), request.dry_run());
  if (!erased) return done(erased.error());
  if (!request.dry_run()) parts_.log.info("deleted a group", {{"group", was.name()}});
  done(was);
}

void GroupDesk::resolve(const std::string& group, const api::MomentSpec& at, bool undo,
                        UniqueFunction<void(Result<Found>)> then) {
  Result<GroupMoments> of = moments_of(parts_.groups, group, parts_.store);
  if (!of) return then(of.error());
  const GroupMoments asked = *of;
  auto found = [of = *std::move(of), then = std::move(then)](Result<GroupMoment> moment) mutable {
    if (!moment) return then(moment.error());
    then(Found{std::move(of), *std::move(moment)});
  };
  if (undo) return resolve_undo(asked, parts_.executor, std::move(found));
  resolve_moment(asked, at, parts_.executor, std::move(found));
}

void GroupDesk::mark_add(const api::GroupMarkRequest& request, admin::Answer<api::GroupMark> done) {
  resolve(request.group(), or_now(request.at()), false,
          [this, request, done = std::move(done)](const Result<Found>& found) mutable {
            if (!found) return done(found.error());
            if (Result<void> r = check_mark(found->of, request.name()); !r) return done(r.error());
            const std::vector<meta::GroupPart> parts = parts_of(found->of, found->moment);
            const Result<ServedGroup*> group = parts_.groups.find(request.group());
            if (!group) return done(group.error());
            if (Result<void> r = parts_.groups.check_parts(**group, parts); !r) {
              return done(r.error());
            }
            const VersionTime now = parts_.executor.wall_time();
            meta::GroupMark mark;
            mark.set_group(request.group());
            mark.set_name(request.name());
            mark.set_time_ns(found->moment.time.ns);
            mark.set_created_ns(now.ns);
            mark.set_locked_until_ns(locked_until_ns(request, now));
            mark.mutable_parts()->Add(parts.begin(), parts.end());
            if (!request.dry_run()) {
              if (Result<void> r = parts_.store.put_group_mark(mark); !r) return done(r.error());
            }
            done(to_api(mark));
          });
}

void GroupDesk::mark_list(const api::GroupMarkRequest& request,
                          admin::Answer<api::GroupMarkList> done) {
  const Result<ServedGroup*> group = parts_.groups.find(request.group());
  if (!group) return done(group.error());
  Result<std::vector<meta::GroupMark>> marks = parts_.store.group_marks_of(request.group());
  if (!marks) return done(marks.error());
  std::ranges::sort(*marks, {}, &meta::GroupMark::time_ns);
  api::GroupMarkList out;
  out.set_schema(1);
  for (const meta::GroupMark& mark : *marks) *out.add_marks() = to_api(mark);
  done(std::move(out));
}

void GroupDesk::mark_remove(const api::GroupMarkRequest& request,
                            admin::Answer<api::GroupMark> done) {
  const Result<ServedGroup*> group = parts_.groups.find(request.group());
  if (!group) return done(group.error());
  const Result<std::vector<meta::GroupMark>> marks = parts_.store.group_marks_of(request.group());
  if (!marks) return done(marks.error());
  const Result<meta::GroupMark> mark = find_mark(*marks, request.group(), request.name());
  if (!mark) return done(mark.error());
  if (!request.dry_run()) {
    if (Result<void> r = parts_.store.remove_group_mark(request.group(), request.name()); !r) {
      return done(r.error());
    }
  }
  done(to_api(*mark));
}

void GroupDesk::expose(const api::GroupExposeRequest& request, admin::Answer<api::GroupView> done) {
  if (Result<void> r = check_overlay(expose_request(request)); !r) return done(r.error());
  resolve(request.group(), or_now(request.at()), false,
          [this, request, done = std::move(done)](const Result<Found>& found) mutable {
            if (!found) return done(found.error());
            expose_at(request, *found, std::move(done));
          });
}

void GroupDesk::expose_at(const api::GroupExposeRequest& request, const Found& found,
                          admin::Answer<api::GroupView> done) {
  const Result<ServedGroup*> group = parts_.groups.find(request.group());
  if (!group) return done(group.error());
  if (Result<void> r = parts_.groups.check_parts(**group, parts_of(found.of, found.moment)); !r) {
    return done(r.error());
  }
  const Result<std::vector<ServedVolume*>> volumes = parts_.groups.members(**group);
  if (!volumes) return done(volumes.error());
  NewView wanted;
  wanted.group = request.group();
  wanted.group_view = request.name();
  wanted.asked = found.moment.time;
  wanted.writable = request.writable();
  wanted.overlay_bytes_max = request.overlay_bytes_max();
  wanted.keep = request.keep();
  wanted.expires = view_expires(request.ttl_s(), parts_.executor.wall_time());
  std::vector<ViewSet::OfVolume> requests;
  for (std::size_t i = 0; i < volumes->size(); ++i) {
    wanted.at = found.moment.members[i].at;
    requests.push_back({(*volumes)[i], wanted});
  }
  api::GroupView out;
  out.set_group(request.group());
  *out.mutable_at() = node::to_api(found.moment);
  if (request.dry_run()) {
    const auto planned = parts_.views.plan_together(requests);
    if (!planned) return done(planned.error());
    out.set_name(planned->front().group_view());
    for (std::size_t i = 0; i < planned->size(); ++i) {
      *out.add_views() = planned_view((*planned)[i], (*volumes)[i]->meta.name());
    }
    return done(std::move(out));
  }
  const auto views = parts_.views.expose_together(requests);
  if (!views) return done(views.error());
  out.set_name(views->front()->meta.group_view());
  for (const ServedView* view : *views) *out.add_views() = front_.view_answer(*view);
  parts_.log.info("exposed a view of a group",
                  {{"view", out.name()}, {"group", out.group()}, {"volumes", views->size()}});
  done(std::move(out));
}

void GroupDesk::rollback(const api::GroupRollbackRequest& request,
                         admin::Answer<api::GroupRollbackAnswer> done) {
  resolve(request.group(), request.at(), request.undo(),
          [this, request, done = std::move(done)](const Result<Found>& found) mutable {
            if (!found) return done(found.error());
            plan(request, *found, std::move(done));
          });
}

// What would change, of each of them.
void GroupDesk::plan(const api::GroupRollbackRequest& request, const Found& found,
                     admin::Answer<api::GroupRollbackAnswer> done) {
  api::GroupRollbackAnswer answer;
  answer.set_schema(1);
  answer.set_group(request.group());
  *answer.mutable_target() = node::to_api(found.moment);
  *answer.mutable_before() = node::to_api(index::IndexMoment{{}, found.of.now});
  answer.set_dry_run(request.dry_run());
  gather<RollbackPlan>(
      found.of.members.size(),
      [this, &found](std::size_t i, UniqueFunction<void(Result<RollbackPlan>)> planned) {
        api::RollbackRequest of_member;
        of_member.mutable_at()->set_sequence(found.moment.members[i].at.sequence.value);
        plan_rollback(found.of.members[i].moments, of_member, parts_.executor, std::move(planned));
      },
      [this, request, answer = std::move(answer), targets = parts_of(found.of, found.moment),
       done = std::move(done)](const Result<std::vector<RollbackPlan>>& plans) mutable {
        if (!plans) return done(plans.error());
        for (const RollbackPlan& each : *plans) *answer.add_members() = each.answer;
        apply(request, targets, std::move(answer), std::move(done));
      });
}

void GroupDesk::apply(const api::GroupRollbackRequest& request,
                      const std::vector<meta::GroupPart>& targets, api::GroupRollbackAnswer answer,
                      admin::Answer<api::GroupRollbackAnswer> done) {
  for (api::RollbackAnswer& member : *answer.mutable_members()) {
    member.set_dry_run(request.dry_run());
    const ServedVolume* served = parts_.volumes.find(member.volume());
    if (served == nullptr) continue;  // roll_back() says so
    const std::vector<iscsi::SessionInfo> sessions = front_.sessions_of(served->iqn);
    for (const iscsi::SessionInfo& session : sessions) {
      *member.add_sessions() = front_.session_answer(session);
    }
    if (in_use(sessions, parts_.executor.monotonic_time()) && !request.force() &&
        !request.dry_run()) {
      return done(rollback_refused(member.volume(), sessions.size()));
    }
  }
  if (request.dry_run()) return done(std::move(answer));
  parts_.groups.roll_back(request.group(), targets,
                          [this, answer = std::move(answer), done = std::move(done)](
                              const Result<meta::GroupRollback>& record) mutable {
                            if (!record) return done(record.error());
                            finish(*record, std::move(answer), std::move(done));
                          });
}

void GroupDesk::finish(const meta::GroupRollback& record, api::GroupRollbackAnswer answer,
                       admin::Answer<api::GroupRollbackAnswer> done) {
  *answer.mutable_before() = node::to_api(index::IndexMoment{{}, VersionTime{record.begun_ns()}});
  const Result<std::vector<meta::GroupMark>> marks = parts_.store.group_marks_of(answer.group());
  if (marks) {
    for (const meta::GroupMark& mark : *marks) {
      if (mark.automatic() && mark.time_ns() == record.begun_ns()) {
        answer.set_before_mark(mark.name());
      }
    }
  }
  for (int i = 0; i < answer.members_size(); ++i) {
    api::RollbackAnswer& member = *answer.mutable_members(i);
    *member.mutable_before() = node::to_api(moment_of(record.before(i)));
    ServedVolume* served = parts_.volumes.find(record.before(i).volume_id());
    if (served == nullptr || served->volume == nullptr) continue;
    member.set_sequence(served->volume->index().last_rollback().value);
    if (served->device != nullptr) served->device->contents_replaced(scsi::Lun{0});
  }
  done(std::move(answer));
}

}  // namespace mariner::node
