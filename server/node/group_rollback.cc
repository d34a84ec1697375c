#include "server/node/group_rollback.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"
#include "server/node/gather.h"
#include "server/node/rollback_plan.h"

namespace mariner::node {
namespace {

constexpr auto kRetry = std::chrono::seconds(1);

struct Unit {};

}  // namespace

meta::GroupPart part_of(VolumeId volume, const index::IndexMoment& at) {
  meta::GroupPart part;
  part.set_volume_id(volume.value);
  part.set_sequence(at.sequence.value);
  part.set_time_ns(at.time.ns);
  return part;
}

index::IndexMoment moment_of(const meta::GroupPart& part) {
  return {SequenceNumber{part.sequence()}, VersionTime{part.time_ns()}};
}

GroupRollback::GroupRollback(Parts parts, meta::GroupRollback record, std::vector<Member> members,
                             std::vector<std::uint64_t> forgotten)
    : parts_(std::move(parts)), record_(std::move(record)), forgotten_(std::move(forgotten)) {
  CHECK(!members.empty());
  for (Member& member : members) {
    Part part{.member = std::move(member), .steps = nullptr};
    part.steps = part.member.volume->live().begin_rollback(part.member.target);
    members_.push_back(std::move(part));
  }
}

void GroupRollback::each(const Step& step, volume::Done then) {
  gather<Unit>(
      members_.size(),
      [this, &step](std::size_t i, UniqueFunction<void(Result<Unit>)> done) {
        Part& part = members_[i];
        step(part, [name = part.member.name, done = std::move(done)](Result<void> result) mutable {
          if (result) return done(Unit{});
          done(Error{result.error().code, name + ": " + result.error().message});
        });
      },
      [then = std::move(then)](const Result<std::vector<Unit>>& all) mutable {
        if (!all) return then(all.error());
        then({});
      });
}

void GroupRollback::look_up(volume::Done then) {
  each([](Part& part,
          volume::Done done) { part.member.volume->live().look_up(part.steps, std::move(done)); },
       std::move(then));
}

void GroupRollback::hold_up(UniqueFunction<void()> then) {
  each(
      [](Part& part, volume::Done done) {
        part.member.volume->live().hold_up(part.steps,
                                           [done = std::move(done)]() mutable { done({}); });
      },
      [then = std::move(then)](const Result<void>&) mutable { then(); });
}

// What takes long is looked up while hosts go on.
void GroupRollback::run(Ended done) {
  done_ = std::move(done);
  look_up([self = shared_from_this()](const Result<void>& found) {
    if (!found) return self->end(found.error());
    self->hold_up([self] {
      self->look_up([self](const Result<void>& all) {
        if (!all) return self->end(all.error());
        self->each(
            [](Part& part, volume::Done next) {
              volume::Volume& volume = *part.member.volume;
              // A log that has failed lets nothing settle, and takes no record either.
              if (volume.settled() != volume.replicator().coordinator().last_stamped()) {
                return next(Error{ErrorCode::kIo, "the log has failed; see `mariner doctor`"});
              }
              volume.index().moment_of(
                  volume.settled(),
                  [&part, next = std::move(next)](const Result<index::IndexMoment>& at) mutable {
                    if (!at) return next(at.error());
                    part.before = *at;
                    next({});
                  });
            },
            [self](const Result<void>& known) {
              if (!known) return self->end(known.error());
              self->decide();
            });
      });
    });
  });
}

void GroupRollback::decide() {
  // All that was written to members has been stamped at or before this, and all records will be
  // behind it.
  record_.set_begun_ns(members_.front().member.volume->replicator().coordinator().floor().ns);
  for (const Part& part : members_) {
    const VolumeId id = part.member.volume->id();
    *record_.add_before() = part_of(id, part.before);
    *record_.add_target() = part_of(id, part.member.target);
  }
  if (Result<void> r = parts_.store.put_group_rollback(record_); !r) return end(r.error());
  log();
}

void GroupRollback::resume(Ended done) {
  done_ = std::move(done);
  resumed_ = true;
  CHECK(record_.before_size() == static_cast<int>(members_.size()));
  for (int i = 0; i < record_.before_size(); ++i) {
    members_[static_cast<std::size_t>(i)].before = moment_of(record_.before(i));
  }
  hold_up([self = shared_from_this()] {
    self->look_up([self](const Result<void>& found) {
      if (!found) return self->not_logged(found.error());
      self->log();
    });
  });
}

// Nothing else was written to the members since: a rollback behind `before` is this one.
void GroupRollback::find_recorded(volume::Done then) {
  each(
      [](Part& part, volume::Done done) {
        index::StoredIndex& index = part.member.volume->index();
        const SequenceNumber last = index.last_rollback();
        if (part.recorded.ns != 0 || last <= part.before.sequence) return done({});
        index.moment_of(
            last, [&part, done = std::move(done)](const Result<index::IndexMoment>& at) mutable {
              if (!at) return done(at.error());
              part.recorded = at->time;
              done({});
            });
      },
      std::move(then));
}

// Whoever has no record yet gets one.
void GroupRollback::log() {
  find_recorded([self = shared_from_this()](const Result<void>& known) {
    if (!known) return self->not_logged(known.error());
    self->each(
        [](Part& part, volume::Done done) {
          if (part.recorded.ns != 0) return done({});
          volume::LiveVolume& live = part.member.volume->live();
          live.look_up(part.steps, [&part, &live,
                                    done = std::move(done)](const Result<void>& found) mutable {
            if (!found) return done(found.error());
            live.log_rollback(part.steps, [&part, done = std::move(done)](
                                              const Result<replication::Stamp>& stamp) mutable {
              if (!stamp) return done(stamp.error());
              part.recorded = stamp->time;
              done({});
            });
          });
        },
        [self](const Result<void>& logged) {
          if (!logged) return self->not_logged(logged.error());
          self->finish();
        });
  });
}

// It may be taken back while no member has a record, and surely will have none.
void GroupRollback::not_logged(const Error& error) {
  const bool some =
      std::ranges::any_of(members_, [](const Part& part) { return part.recorded.ns != 0; });
  if (some || resumed_) return try_again(error);
  each(
      [](Part& part, volume::Done done) {
        replication::LocalReplicator& replicator = part.member.volume->replicator();
        replicator.settle([&replicator, done = std::move(done)](SequenceNumber settled) mutable {
          if (settled == replicator.coordinator().last_stamped()) return done({});
          done(Error{ErrorCode::kIo, "the log has failed"});
        });
      },
      [self = shared_from_this(), error](const Result<void>& settled) {
        if (!settled) return self->try_again(error);
        self->take_back(error);
      });
}

void GroupRollback::take_back(const Error& error) {
  if (Result<void> r = parts_.store.remove_group_rollback(record_.group(), record_.number()); !r) {
    return try_again(r.error());
  }
  end(error);
}

void GroupRollback::try_again(const Error& error) {
  if (*parts_.stopping) {
    return end(Error{ErrorCode::kUnavailable, "the server is stopping: the rollback of " +
                                                  record_.group() +
                                                  " is completed at the next start"});
  }
  if (!std::exchange(warned_, true)) {
    parts_.log.error(
        "a rollback of a group is not on record for all its volumes yet; hosts wait until it is, "
        "now or after a restart",
        {{"group", record_.group()}, {"error", to_string(error)}});
  }
  parts_.executor.after(kRetry, [self = shared_from_this()] { self->log(); });
}

void GroupRollback::finish() {
  std::uint64_t ended_ns = 0;
  for (const Part& part : members_) ended_ns = std::max(ended_ns, part.recorded.ns);
  record_.set_ended_ns(ended_ns);
  const meta::GroupMark mark = mark_before(record_, parts_.executor.wall_time());
  if (Result<void> r = parts_.store.end_group_rollback(record_, mark, forgotten_); !r) {
    // All members have it on record: the next start finds that, too.
    parts_.log.warning("the moment before a rollback could not be marked",
                       {{"group", record_.group()}, {"error", to_string(r.error())}});
  }
  end(record_);
}

void GroupRollback::end(Result<meta::GroupRollback> result) {
  for (Part& part : members_) part.member.volume->live().let_go(part.steps);
  std::exchange(done_, nullptr)(std::move(result));
}

meta::GroupMark mark_before(const meta::GroupRollback& record, VersionTime now) {
  meta::GroupMark mark;
  mark.set_group(record.group());
  mark.set_name(automatic_mark_name(now, record.number()));
  mark.set_time_ns(record.begun_ns());
  mark.set_created_ns(now.ns);
  mark.set_automatic(true);
  *mark.mutable_parts() = record.before();
  return mark;
}

}  // namespace mariner::node
