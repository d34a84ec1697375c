// Rollback and its undoing: one log record each. See node_control.h.
#include <cstdio>
#include <ctime>
#include <optional>
#include <utility>

#include "server/node/node_control.h"

namespace mariner::node {
namespace {

// A name for the mark on the moment before a rollback: "before-rollback-20261120-143205-#41".
std::string mark_name(VersionTime now, SequenceNumber sequence) {
  const auto seconds = static_cast<std::time_t>(now.ns / 1'000'000'000);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[64];
  std::snprintf(text, sizeof text, "before-rollback-%04d%02d%02d-%02d%02d%02dz-%llu",
                utc.tm_year + 1900, utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min,
                utc.tm_sec, static_cast<unsigned long long>(sequence.value));
  return text;
}

}  // namespace

void NodeControl::rollback(const api::RollbackRequest& request,
                           admin::Answer<api::RollbackAnswer> done) {
  Result<ServedVolume*> served = find(request.volume());
  if (!served) return done(served.error());
  if (!request.undo()) {
    resolve_moment(**served, request.at(), *node_.store_, node_.loop_,
                   [this, request, done = std::move(done)](Result<ResolvedMoment> target) mutable {
                     if (!target) return done(target.error());
                     roll_back(request.volume(), request, *target, std::move(done));
                   });
    return;
  }
  // To the moment before the newest rollback; undoing an undo is doing it again.
  index::StoredIndex& index = (*served)->volume->index();
  const SequenceNumber newest = index.last_rollback();
  if (newest.value == 0) {
    return done(Error{ErrorCode::kNotFound,
                      request.volume() + " has not been rolled back: there is nothing to undo"});
  }
  index.moment_of(SequenceNumber{newest.value - 1},
                  [this, request, held = (*served)->volume,
                   done = std::move(done)](const Result<index::IndexMoment>& before) mutable {
                    if (!before) return done(before.error());
                    roll_back(request.volume(), request, {*before, {}, {}}, std::move(done));
                  });
}

// Looks up what would change, then does it.
void NodeControl::roll_back(const std::string& name, const api::RollbackRequest& request,
                            const ResolvedMoment& target, admin::Answer<api::RollbackAnswer> done) {
  Result<ServedVolume*> served = find(name);
  if (!served) return done(served.error());
  const std::shared_ptr<volume::Volume> volume = (*served)->volume;
  const index::IndexMoment newest = volume->index().newest();
  api::RollbackAnswer answer;
  answer.set_schema(1);
  answer.set_volume(name);
  *answer.mutable_target() = node::to_api(target);
  *answer.mutable_before() = node::to_api(newest);
  volume->index().changed(
      target.at.sequence, newest.sequence,
      [this, request, target, newest, volume, answer = std::move(answer),
       done = std::move(done)](const Result<std::vector<BlockRange>>& changed) mutable {
        if (!changed) return done(changed.error());
        for (const BlockRange& extent : *changed) {
          answer.set_changed_bytes(answer.changed_bytes() + extent.count.bytes());
        }
        auto undone = std::make_shared<std::uint64_t>(0);
        volume->index().for_each(
            target.at.sequence, newest.sequence,
            [undone](const index::IndexedWrite&) {
              ++*undone;
              return true;
            },
            [this, request, target, volume, undone, answer = std::move(answer),
             done = std::move(done)](const Result<void>& counted) mutable {
              if (!counted) return done(counted.error());
              answer.set_undone_writes(*undone);
              apply_rollback(request, target, std::move(answer), std::move(done));
            });
      });
}

void NodeControl::apply_rollback(const api::RollbackRequest& request, const ResolvedMoment& target,
                                 api::RollbackAnswer answer,
                                 admin::Answer<api::RollbackAnswer> done) {
  const std::string& name = request.volume();
  Result<ServedVolume*> served = find(name);
  if (!served) return done(served.error());
  volume::Volume& volume = *(*served)->volume;
  const TargetUse use = use_of((*served)->iqn);
  for (const iscsi::SessionInfo& session : use.sessions) *answer.add_sessions() = to_api(session);
  answer.set_dry_run(request.dry_run());
  if (request.dry_run()) return done(std::move(answer));
  if (use.in_use && !request.force()) {
    return done(Error{ErrorCode::kBusy,
                      name + " is in use: " + std::to_string(use.sessions.size()) +
                          " sessions, with commands in the last seconds; unmount it on the host, "
                          "or use --force"});
  }
  volume.live().rollback(target.at,
                         [this, name, answer = std::move(answer),
                          done = std::move(done)](Result<replication::Stamp> stamp) mutable {
                           if (!stamp) return done(stamp.error());
                           finish_rollback(name, *stamp, std::move(answer), std::move(done));
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
    meta::Mark mark;
    mark.set_volume_id((*rolled)->meta.id());
    mark.set_name(mark_name(node_.loop_.wall_time(), stamp.sequence));
    mark.set_sequence(before->sequence.value);
    mark.set_time_ns(before->time.ns);
    mark.set_created_ns(node_.loop_.wall_time().ns);
    mark.set_automatic(true);
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
