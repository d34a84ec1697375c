#include "server/node/cluster_past.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/node/identity.h"
#include "server/node/names.h"
#include "server/node/session_answer.h"
#include "server/node/view_rules.h"

namespace mariner::node {

using Done = manager::MomentDirectory::Done;

namespace {

// How long an answer waits until this node has heard of a view: some seconds.
constexpr int kServedTries = 500;
constexpr auto kServedPoll = std::chrono::milliseconds(10);

// What a moment is kept for.
std::string the_mark(const meta::Mark& mark) {
  return fmt::format("mark {} of {}", mark.name(), mark.volume_id());
}
std::string the_view(const std::string& name) { return "view " + name; }

}  // namespace

Result<void> ClusterPast::known(const std::string& name) const {
  const std::vector<meta::Volume> all = parts_.directory.volumes();
  const auto meta = std::ranges::find(all, name, &meta::Volume::name);
  if (meta == all.end()) {
    return Error{ErrorCode::kNotFound, "the cluster has no volume named " + name};
  }
  const auto record = parts_.directory.record(VolumeId{meta->id()});
  const bool coordinated = record && record->epoch.value > 0;
  return Error{ErrorCode::kUnavailable, coordinated
                                            ? name + " is not served here now: ask node " +
                                                  hosts_.name_of(record->coordinator.value) +
                                                  ", which coordinates it"
                                            : name + " is not served by any node yet"};
}

// Whether a node has both the volume and a target of it, as views need it.
bool ClusterPast::served_at_all(const meta::Volume& volume) {
  const auto& storages = volume.cluster().storages();
  return std::ranges::any_of(manager::targets_of(volume), [&storages](std::uint32_t node) {
    return std::ranges::find(storages, node) != storages.end();
  });
}

Result<ClusterVolume*> ClusterPast::find(const std::string& name) const {
  ClusterVolume* const volume = parts_.volumes.find(name);
  if (volume == nullptr || volume->target == nullptr || volume->target->replicator() == nullptr) {
    return known(name).error();
  }
  return volume;
}

Result<MomentsOf> ClusterPast::find_moments(const std::string& name) const {
  const Result<ClusterVolume*> volume = find(name);
  if (!volume) return volume.error();
  MomentsOf of;
  of.volume = name;
  of.created = VersionTime{(*volume)->meta.created_ns()};
  of.history = (*volume)->history;
  // (What this node has of a volume stays as long as the node runs.)
  of.replicator = [target = (*volume)->target.get()] { return target->replicator(); };
  of.marks = parts_.moments.marks(VolumeId{(*volume)->meta.id()});
  of.keeps = under_way_;
  return of;
}

Result<PastDesk::Volume> ClusterPast::find_past(const std::string& name) const {
  Result<MomentsOf> moments = find_moments(name);
  if (!moments) return moments.error();
  ClusterVolume& volume = *parts_.volumes.find(name);
  if (volume.storage == nullptr) {
    return Error{ErrorCode::kUnavailable,
                 name +
                     " is not stored on this node, which serves it, and its past is read with an "
                     "image: have one of its storage nodes serve it (`mariner node promote`)"};
  }
  const auto hold = [history = volume.history](SequenceNumber at, PastDesk::HoldDone done) {
    history->hold(at, [done = std::move(done)](Result<volume::History::Hold> held) mutable {
      if (!held) return done(held.error());
      done(PastDesk::Hold{*std::move(held), nullptr});
    });
  };
  return PastDesk::Volume{VolumeId{volume.meta.id()}, volume.meta.size_bytes(), *std::move(moments),
                          &volume.storage->storage().past(), hold};
}

Result<VerdictDesk::Volume> ClusterPast::find_checked(const std::string& name) const {
  Result<MomentsOf> moments = find_moments(name);
  if (!moments) return moments.error();
  return VerdictDesk::Volume{VolumeId{parts_.volumes.find(name)->meta.id()}, *std::move(moments)};
}

Result<RepairDesk::Volume> ClusterPast::find_repaired(const std::string& name) const {
  Result<MomentsOf> moments = find_moments(name);
  if (!moments) return moments.error();
  const meta::Volume& meta = parts_.volumes.find(name)->meta;
  return RepairDesk::Volume{VolumeId{meta.id()}, meta.size_bytes(), *std::move(moments)};
}

void ClusterPast::history(const api::HistoryRequest& request, admin::Answer<api::History> done) {
  const Result<MomentsOf> of = find_moments(request.name());
  if (!of) return done(of.error());
  Result<std::vector<meta::Verdict>> verdicts =
      verdicts_.all(VolumeId{parts_.volumes.find(request.name())->meta.id()});
  if (!verdicts) return done(verdicts.error());
  answer_history(*of, request, {{}, *std::move(verdicts)}, parts_.executor, std::move(done));
}

// ---- marks

void ClusterPast::keep(const MomentsOf& of, SequenceNumber at, const std::string& what,
                       UniqueFunction<void(Done)> say, Done done) {
  of.history->hold(at, [this, of, what, say = std::move(say),
                        done = std::move(done)](Result<volume::History::Hold> hold) mutable {
    if (!hold) return done(hold.error());
    // Before it is said: somebody may take it back at once.
    const std::uint64_t number = kept_.keep(what, *std::move(hold));
    say([this, of, number, done = std::move(done)](Result<void> said) mutable {
      kept_.said(number);
      done(std::move(said));
    });
  });
}

void ClusterPast::add_mark(const MomentsOf& of, const meta::Mark& mark, Done done) {
  keep(
      of, SequenceNumber{mark.sequence()}, the_mark(mark),
      [this, mark](Done said) { parts_.moments.add(mark, std::move(said)); }, std::move(done));
}

void ClusterPast::mark_add(const api::MarkRequest& request, admin::Answer<api::Mark> done) {
  const Result<MomentsOf> of = find_moments(request.volume());
  if (!of) return done(of.error());
  if (Result<void> r = check_mark(*of, request.name()); !r) return done(r.error());
  const VolumeId id{parts_.volumes.find(request.volume())->meta.id()};
  resolve_moment(*of, or_now(request.at()), parts_.executor,
                 [this, of = *of, request, id,
                  done = std::move(done)](const Result<ResolvedMoment>& moment) mutable {
                   if (!moment) return done(moment.error());
                   const meta::Mark mark =
                       mark_of(request, id, moment->at, parts_.executor.wall_time());
                   api::Mark answer = node::to_api(mark, of.volume);
                   if (request.dry_run()) return done(std::move(answer));
                   add_mark(of, mark,
                            [answer = std::move(answer),
                             done = std::move(done)](const Result<void>& added) mutable {
                              if (!added) return done(added.error());
                              done(std::move(answer));
                            });
                 });
}

void ClusterPast::mark_list(const api::MarkRequest& request, admin::Answer<api::MarkList> done) {
  const Result<MomentsOf> of = find_moments(request.volume());
  if (!of) return done(of.error());
  done(node::to_api(*of));
}

void ClusterPast::mark_remove(const api::MarkRequest& request, admin::Answer<api::Mark> done) {
  const Result<MomentsOf> of = find_moments(request.volume());
  if (!of) return done(of.error());
  const Result<meta::Mark> mark = find_mark(*of, request.name());
  if (!mark) return done(mark.error());
  api::Mark answer = node::to_api(*mark, of->volume);
  if (request.dry_run()) return done(std::move(answer));
  parts_.moments.remove_mark(
      VolumeId{mark->volume_id()}, mark->name(),
      [this, what = the_mark(*mark), last = kept_.last(), keeps = under_way_,
       answer = std::move(answer), done = std::move(done)](const Result<void>& removed) mutable {
        if (!removed) return done(removed.error());
        kept_.taken_back(what, last);
        done(std::move(answer));
      });
}

// ---- views

// By the nodes that store its volume.
bool ClusterPast::served_elsewhere(const ClusterVolume& volume) {
  return volume.target != nullptr && volume.storage == nullptr;
}

void ClusterPast::describe(const ClusterServedView& view, api::View& out) const {
  out.set_iqn(view.iqn);
  out.set_serial(view.identity.serial);
  out.set_naa(naa_text(view.identity));
  out.set_sessions(static_cast<std::uint32_t>(hosts_.sessions(view.iqn).size()));
}

api::View ClusterPast::to_api(const meta::View& view) const {
  api::View out;
  out.set_name(view.name());
  const auto volume = parts_.volumes.all().find(view.volume_id());
  if (volume != parts_.volumes.all().end()) out.set_volume(volume->second.meta.name());
  *out.mutable_at() = node::to_api(
      index::IndexMoment{SequenceNumber{view.sequence()}, VersionTime{view.time_ns()}});
  out.mutable_at()->set_asked_ns(view.asked_ns());
  out.set_size_bytes(view.size_bytes());
  out.set_expires_ns(view.expires_ns());
  out.set_created_ns(view.created_ns());
  out.set_keep(view.keep());
  const auto here = parts_.views.all().find(view.name());
  if (here != parts_.views.all().end()) {
    describe(here->second, out);
  } else if (volume != parts_.volumes.all().end() && served_elsewhere(volume->second)) {
    describe(parts_.views.described(view, volume->second), out);
  }
  return out;
}

std::string ClusterPast::free_name(const meta::Volume& volume, SequenceNumber at) const {
  return free_view_name(volume.name(), at, [this](const std::string& name) {
    const std::vector<meta::View> views = parts_.moments.views();
    return std::ranges::find(views, name, &meta::View::name) != views.end();
  });
}

void ClusterPast::view_expose(const api::ExposeRequest& request, admin::Answer<api::View> done) {
  if (request.writable()) {
    return done(Error{ErrorCode::kInvalidArgument,
                      "a writable view is not possible in a cluster yet: its writes would have no "
                      "mirror; expose it read-only, and put an overlay on it on the host"});
  }
  if (!request.repairs().empty()) {
    return done(Error{ErrorCode::kInvalidArgument,
                      "a repaired view is not possible in a cluster yet: its repairs would have no "
                      "mirror; expose the moment as it is, or roll back to it with its repairs"});
  }
  const Result<MomentsOf> of = find_moments(request.volume());
  if (!of) return done(of.error());
  resolve_moment(
      *of, or_now(request.at()), parts_.executor,
      [this, request, done = std::move(done)](const Result<ResolvedMoment>& moment) mutable {
        if (!moment) return done(moment.error());
        expose(request, *moment, std::move(done));
      });
}

void ClusterPast::expose(const api::ExposeRequest& request, const ResolvedMoment& moment,
                         admin::Answer<api::View> done) {
  const Result<MomentsOf> of = find_moments(request.volume());
  if (!of) return done(of.error());
  const ClusterVolume& here = *parts_.volumes.find(request.volume());
  const meta::Volume& volume = here.meta;
  if (served_elsewhere(here) && !served_at_all(volume)) {
    return done(Error{ErrorCode::kInvalidArgument,
                      "no node that may serve " + volume.name() +
                          " stores it, and views are served from images: name one of its storage "
                          "nodes as a target of it, too"});
  }
  const VersionTime now = parts_.executor.wall_time();
  meta::View view;
  view.set_name(request.name().empty() ? free_name(volume, moment.at.sequence) : request.name());
  if (Result<void> r = check_volume_name(view.name()); !r) return done(r.error());
  view.set_volume_id(volume.id());
  view.set_sequence(moment.at.sequence.value);
  view.set_time_ns(moment.at.time.ns);
  view.set_asked_ns(moment.asked.ns);
  view.set_size_bytes(volume.size_bytes());
  view.set_uuid(new_uuid());
  view.set_expires_ns(view_expires(request.ttl_s(), now).ns);
  view.set_created_ns(now.ns);
  view.set_keep(request.keep());
  if (request.dry_run()) return done(to_api(view));
  keep(
      *of, moment.at.sequence, the_view(view.name()),
      [this, view](Done said) { parts_.moments.add(view, std::move(said)); },
      [this, view, keeps = under_way_, done = std::move(done)](const Result<void>& added) mutable {
        if (!added) return done(added.error());
        parts_.log.info("exposed a view", {{"view", view.name()}, {"sequence", view.sequence()}});
        answer_when_served(view, kServedTries, std::move(done));
      });
}

// This node hears of it from the shared store, as all do. One that stores nothing of the volume
// serves no view of it.
void ClusterPast::answer_when_served(const meta::View& view, int tries,
                                     admin::Answer<api::View> done) {
  const auto volume = parts_.volumes.all().find(view.volume_id());
  const bool elsewhere = volume == parts_.volumes.all().end() || served_elsewhere(volume->second);
  if (elsewhere || tries == 0 || parts_.views.all().contains(view.name())) {
    return done(to_api(view));
  }
  parts_.executor.after(kServedPoll,
                        [this, view, tries, keeps = under_way_, done = std::move(done)]() mutable {
                          answer_when_served(view, tries - 1, std::move(done));
                        });
}

void ClusterPast::view_list(admin::Answer<api::ViewList> done) {
  api::ViewList out;
  out.set_schema(1);
  for (const meta::View& view : parts_.moments.views()) *out.add_views() = to_api(view);
  done(std::move(out));
}

void ClusterPast::view_unexpose(const api::UnexposeRequest& request,
                                admin::Answer<api::View> done) {
  const std::vector<meta::View> views = parts_.moments.views();
  const auto view = std::ranges::find(views, request.name(), &meta::View::name);
  if (view == views.end()) return done(no_view(request.name()));
  api::View was = to_api(*view);
  if (Result<void> r = check_unexpose(was, request.force()); !r) return done(r.error());
  if (request.dry_run()) return done(std::move(was));
  parts_.moments.remove_view(request.name(),
                             [this, was = std::move(was), last = kept_.last(), keeps = under_way_,
                              done = std::move(done)](const Result<void>& removed) mutable {
                               if (!removed) return done(removed.error());
                               kept_.taken_back(the_view(was.name()), last);
                               parts_.log.info("unexposed a view", {{"view", was.name()}});
                               done(std::move(was));
                             });
}

// Whoever serves the volume does it.
void ClusterPast::tick() {
  const std::uint64_t now = parts_.executor.wall_time().ns;
  for (const meta::View& view : parts_.moments.views()) {
    if (view.expires_ns() == 0 || view.expires_ns() > now) continue;
    const auto volume = parts_.volumes.all().find(view.volume_id());
    if (volume == parts_.volumes.all().end() || volume->second.target == nullptr ||
        volume->second.target->replicator() == nullptr) {
      continue;
    }
    parts_.moments.remove_view(
        view.name(), [this, name = view.name()](const Result<void>& removed) {
          if (removed) parts_.log.info("a view's time to live is over", {{"view", name}});
        });
  }
}

// ---- rollback

void ClusterPast::rollback(const api::RollbackRequest& request,
                           admin::Answer<api::RollbackAnswer> done) {
  const Result<MomentsOf> of = find_moments(request.volume());
  if (!of) return done(of.error());
  plan_rollback(*of, request, parts_.executor,
                [this, request, done = std::move(done)](Result<RollbackPlan> plan) mutable {
                  if (!plan) return done(plan.error());
                  apply_rollback(request, *std::move(plan), std::move(done));
                });
}

void ClusterPast::apply_rollback(const api::RollbackRequest& request, RollbackPlan plan,
                                 admin::Answer<api::RollbackAnswer> done) {
  const Result<ClusterVolume*> volume = find(request.volume());
  if (!volume) return done(volume.error());
  const std::vector<iscsi::SessionInfo> sessions = hosts_.sessions((*volume)->iqn);
  for (const iscsi::SessionInfo& session : sessions) {
    *plan.answer.add_sessions() = hosts_.to_api(session);
  }
  plan.answer.set_dry_run(request.dry_run());
  const bool used = in_use(sessions, parts_.executor.monotonic_time());
  if (used && !request.force() && !request.dry_run()) {
    return done(rollback_refused(request.volume(), sessions.size()));
  }
  const auto repairs = repairs_of(repairs_, request, VolumeId{(*volume)->meta.id()}, plan.answer);
  if (!repairs) return done(repairs.error());
  if (request.dry_run()) return done(std::move(plan.answer));
  const Result<MomentsOf> of = find_moments(request.volume());
  if (!of) return done(of.error());
  (*volume)->target->rollback(plan.target.at, *repairs,
                              [this, of = *of, repairs = *repairs, answer = std::move(plan.answer),
                               done = std::move(done)](Result<replication::Stamp> stamp) mutable {
                                if (!stamp) return done(stamp.error());
                                finish_rollback(of, *stamp, std::move(answer),
                                                unless_not_mended(repairs, std::move(done)));
                              });
}

// Marks the moment before it, by which it can be undone.
void ClusterPast::finish_rollback(const MomentsOf& of, const replication::Stamp& stamp,
                                  api::RollbackAnswer answer,
                                  admin::Answer<api::RollbackAnswer> done) {
  ClusterVolume& volume = *parts_.volumes.find(of.volume);
  volume.device->contents_replaced(scsi::Lun{0});
  answer.set_sequence(stamp.sequence.value);
  parts_.log.info("rolled back", {{"volume", of.volume},
                                  {"to_sequence", answer.target().sequence()},
                                  {"sequence", stamp.sequence.value},
                                  {"changed_bytes", answer.changed_bytes()}});
  of.history->moment(
      SequenceNumber{stamp.sequence.value - 1},
      [this, of, stamp, id = VolumeId{volume.meta.id()}, answer = std::move(answer),
       done = std::move(done)](const Result<volume::History::Moment>& before) mutable {
        // It has happened: what is left is to say so.
        if (!before) return done(std::move(answer));
        *answer.mutable_before() = node::to_api(before->at);
        const meta::Mark mark = mark_before(before->at, stamp, id, parts_.executor.wall_time());
        add_mark(of, mark,
                 [this, mark, answer = std::move(answer),
                  done = std::move(done)](const Result<void>& marked) mutable {
                   if (marked) {
                     answer.set_before_mark(mark.name());
                   } else {
                     parts_.log.warning(
                         "the moment before a rollback could not be marked",
                         {{"volume_id", mark.volume_id()}, {"error", to_string(marked.error())}});
                   }
                   done(std::move(answer));
                 });
      });
}

}  // namespace mariner::node
