#include "server/node/group_set.h"

#include <algorithm>
#include <utility>

#include "server/node/moments.h"
#include "server/node/names.h"

namespace mariner::node {
namespace {

bool has_member(const meta::Group& group, std::uint32_t volume) {
  return std::ranges::any_of(group.members(), [volume](const meta::Group::Member& member) {
    return member.volume_id() == volume;
  });
}

void remove_part(meta::GroupMark& mark, std::uint32_t volume) {
  auto& parts = *mark.mutable_parts();
  parts.erase(
      std::remove_if(parts.begin(), parts.end(),
                     [volume](const meta::GroupPart& part) { return part.volume_id() == volume; }),
      parts.end());
}

// Whether there are writes behind `before` that are no rollback.
bool written_since(const volume::Volume& volume, SequenceNumber before) {
  const SequenceNumber newest = volume.index().newest().sequence;
  return newest > before && newest != volume.index().last_rollback();
}

Error is_rolled_back(const std::string& group) {
  return {ErrorCode::kUnavailable, group + " is being rolled back; try again when that is done"};
}

}  // namespace

Result<void> GroupSet::start() {
  const Result<std::vector<meta::Group>> groups = parts_.store.groups();
  if (!groups) return groups.error();
  for (const meta::Group& meta : *groups) {
    if (Result<void> r = load(meta); !r) return r;
  }
  return {};
}

Result<void> GroupSet::load(const meta::Group& meta) {
  ServedGroup& group = groups_[meta.name()];
  group.meta = meta;
  group.clock = std::make_shared<replication::VersionClock>();
  // Moments that somebody may have opened never change.
  for (const meta::Group::Member& member : meta.members()) {
    group.clock->raise(VersionTime{member.joined_ns()});
    ServedVolume* served = parts_.volumes.find(member.volume_id());
    if (served == nullptr || served->volume == nullptr) {
      parts_.log.warning("a volume of a group is gone: there are no moments of all of it",
                         {{"group", meta.name()}, {"volume", member.name()}});
      continue;
    }
    served->volume->replicator().share_clock(group.clock);
  }
  const Result<std::vector<meta::GroupMark>> marks = parts_.store.group_marks_of(meta.name());
  if (!marks) return marks.error();
  for (const meta::GroupMark& mark : *marks) group.clock->raise(VersionTime{mark.time_ns()});
  Result<std::vector<meta::GroupRollback>> rollbacks = parts_.store.group_rollbacks(meta.name());
  if (!rollbacks) return rollbacks.error();
  for (const meta::GroupRollback& rollback : *rollbacks) {
    group.clock->raise(VersionTime{std::max(rollback.begun_ns(), rollback.ended_ns())});
  }
  if (rollbacks->empty() || rollbacks->back().ended_ns() != 0) {
    group.rollbacks = *std::move(rollbacks);
    return {};
  }
  const meta::GroupRollback interrupted = std::move(rollbacks->back());
  rollbacks->pop_back();
  group.rollbacks = *std::move(rollbacks);
  return resume(group, interrupted);
}

Result<void> GroupSet::resume(ServedGroup& group, const meta::GroupRollback& interrupted) {
  meta::GroupRollback record = interrupted;
  record.clear_before();
  record.clear_target();
  std::vector<GroupRollback::Member> members;
  bool written = false;
  bool recorded = true;
  for (int i = 0; i < interrupted.target_size(); ++i) {
    const meta::GroupPart& target = interrupted.target(i);
    const ServedVolume* served = parts_.volumes.find(target.volume_id());
    if (served == nullptr || served->volume == nullptr) continue;
    *record.add_before() = interrupted.before(i);
    *record.add_target() = target;
    members.push_back({served->meta.name(), served->volume, moment_of(target)});
    const SequenceNumber before{interrupted.before(i).sequence()};
    written = written || written_since(*served->volume, before);
    recorded = recorded && served->volume->index().last_rollback() > before;
  }
  if (members.empty() || (written && !recorded)) {
    // The store failed when this was to be taken back, and hosts have gone on.
    parts_.log.warning("a rollback of a group that never happened is forgotten",
                       {{"group", group.meta.name()}});
    return parts_.store.remove_group_rollback(record.group(), record.number());
  }
  parts_.log.warning("a rollback of a group was interrupted, and is completed",
                     {{"group", group.meta.name()}, {"members", members.size()}});
  group.rolling_back = true;
  make_rollback(record, std::move(members), {})
      ->resume([this, name = group.meta.name()](const Result<meta::GroupRollback>& done) {
        ended(name, done, {});
      });
  return {};
}

std::shared_ptr<GroupRollback> GroupSet::make_rollback(
    const meta::GroupRollback& record, std::vector<GroupRollback::Member> members,
    const std::vector<std::uint64_t>& forgotten) {
  return std::make_shared<GroupRollback>(
      GroupRollback::Parts{parts_.store, parts_.executor, parts_.log, stopping_}, record,
      std::move(members), forgotten);
}

void GroupSet::ended(const std::string& name, const Result<meta::GroupRollback>& record,
                     const std::vector<std::uint64_t>& forgotten) {
  ServedGroup& group = groups_.at(name);
  group.rolling_back = false;
  if (!record) return;
  std::erase_if(group.rollbacks, [&forgotten](const meta::GroupRollback& old) {
    return std::ranges::find(forgotten, old.number()) != forgotten.end();
  });
  group.rollbacks.push_back(*record);
  parts_.log.info(
      "rolled back a group",
      {{"group", name}, {"number", record->number()}, {"members", record->before_size()}});
}

// No moment before they ended can be opened of any member any more.
std::vector<std::uint64_t> GroupSet::forgettable(const ServedGroup& group) {
  VersionTime oldest;
  for (const meta::Group::Member& member : group.meta.members()) {
    const ServedVolume* served = parts_.volumes.find(member.volume_id());
    if (served == nullptr || served->volume == nullptr) continue;
    oldest = std::max({oldest, oldest_moment(*served).time, VersionTime{member.joined_ns()}});
  }
  std::vector<std::uint64_t> out;
  for (const meta::GroupRollback& rollback : group.rollbacks) {
    if (rollback.ended_ns() < oldest.ns) out.push_back(rollback.number());
  }
  return out;
}

Result<void> GroupSet::check_parts(const ServedGroup& group,
                                   const std::vector<meta::GroupPart>& parts) const {
  const bool same =
      std::ranges::equal(group.meta.members(), parts, {}, &meta::Group::Member::volume_id,
                         &meta::GroupPart::volume_id);
  if (same) return {};
  return Error{ErrorCode::kAborted,
               "the volumes of the group " + group.meta.name() + " changed meanwhile; try again"};
}

void GroupSet::roll_back(const std::string& name, const std::vector<meta::GroupPart>& targets,
                         GroupRollback::Ended done) {
  const Result<ServedGroup*> found = find_changeable(name);
  if (!found) return done(found.error());
  ServedGroup& group = **found;
  if (Result<void> r = check_parts(group, targets); !r) return done(r.error());
  const Result<std::vector<ServedVolume*>> served = members(group);
  if (!served) return done(served.error());
  for (const ServedVolume* each : *served) {
    if (!each->serves()) return done(not_served(*each));
  }
  std::vector<std::uint64_t> forgotten = forgettable(group);
  if (group.rollbacks.size() - forgotten.size() >= kRollbacksMax) {
    return done(Error{ErrorCode::kLimit, name + " was rolled back " +
                                             std::to_string(kRollbacksMax) +
                                             " times in its history, which is the limit"});
  }
  meta::GroupRollback record;
  record.set_group(name);
  record.set_number(group.rollbacks.empty() ? 1 : group.rollbacks.back().number() + 1);
  std::vector<GroupRollback::Member> members;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    members.push_back({(*served)[i]->meta.name(), (*served)[i]->volume, moment_of(targets[i])});
  }
  group.rolling_back = true;
  make_rollback(record, std::move(members), forgotten)
      ->run([this, name, forgotten,
             done = std::move(done)](Result<meta::GroupRollback> ended_record) mutable {
        ended(name, ended_record, forgotten);
        done(std::move(ended_record));
      });
}

Result<ServedGroup*> GroupSet::find(const std::string& name) {
  const auto found = groups_.find(name);
  if (found != groups_.end()) return &found->second;
  return Error{ErrorCode::kNotFound, "there is no group " + name + "; see `mariner group list`"};
}

Result<ServedGroup*> GroupSet::find_changeable(const std::string& name) {
  const Result<ServedGroup*> group = find(name);
  if (!group) return group;
  if ((*group)->rolling_back) return is_rolled_back(name);
  return group;
}

const ServedGroup* GroupSet::group_of(std::uint32_t volume) const {
  const auto found = std::ranges::find_if(
      groups_, [volume](const auto& each) { return has_member(each.second.meta, volume); });
  return found == groups_.end() ? nullptr : &found->second;
}

Result<std::vector<ServedVolume*>> GroupSet::members(const ServedGroup& group) {
  std::vector<ServedVolume*> out;
  for (const meta::Group::Member& member : group.meta.members()) {
    ServedVolume* served = parts_.volumes.find(member.volume_id());
    if (served == nullptr || served->volume == nullptr) {
      return Error{ErrorCode::kOutsideWindow,
                   "the volume " + member.name() + " of the group " + group.meta.name() +
                       " is gone: there is no moment of all of it; `mariner group remove " +
                       group.meta.name() + " " + member.name() + "` leaves the others"};
    }
    out.push_back(served);
  }
  return out;
}

VersionTime GroupSet::now(const ServedGroup& group) const {
  return std::max(parts_.executor.wall_time(), group.clock->last());
}

std::size_t GroupSet::views_of(const std::string& group) const {
  std::vector<std::string> names;
  for (const auto& [name, view] : parts_.views.all()) {
    if (view.meta.group() == group) names.push_back(view.meta.group_view());
  }
  std::ranges::sort(names);
  return static_cast<std::size_t>(std::unique(names.begin(), names.end()) - names.begin());
}

Result<void> GroupSet::check_joining(const meta::Group& group, const Names& volumes) const {
  if (volumes.empty()) {
    return Error{ErrorCode::kInvalidArgument, "a group has a volume at least; name some"};
  }
  if (group.members_size() + static_cast<int>(volumes.size()) > kMembersMax) {
    return Error{ErrorCode::kLimit, "a group has at most " + std::to_string(kMembersMax) +
                                        " volumes; " + group.name() + " would have " +
                                        std::to_string(group.members_size() + volumes.size())};
  }
  Names seen;
  for (const std::string& name : volumes) {
    const ServedVolume* served = parts_.volumes.find(name);
    if (served == nullptr) {
      return Error{ErrorCode::kNotFound,
                   "there is no volume " + name + "; see `mariner volume list`"};
    }
    if (served->volume == nullptr) {
      return Error{ErrorCode::kUnavailable, "the volume " + name + " is not ready"};
    }
    if (const ServedGroup* other = group_of(served->meta.id()); other != nullptr) {
      return Error{ErrorCode::kAlreadyExists, name + " is in the group " + other->meta.name() +
                                                  " already, and a volume is in one at most"};
    }
    if (std::ranges::find(seen, name) != seen.end()) {
      return Error{ErrorCode::kInvalidArgument, name + " is named twice"};
    }
    seen.push_back(name);
  }
  return {};
}

Result<meta::Group> GroupSet::create(const std::string& name, const Names& volumes, bool dry_run) {
  if (Result<void> r = check_volume_name(name); !r) {
    return Error{r.error().code, "the group's name: " + r.error().message};
  }
  if (groups_.contains(name)) {
    return Error{ErrorCode::kAlreadyExists, "a group named " + name + " exists already"};
  }
  if (groups_.size() >= kGroupsMax) {
    return Error{ErrorCode::kLimit,
                 "there are " + std::to_string(kGroupsMax) + " groups already, which is the limit"};
  }
  ServedGroup group;
  group.meta.set_name(name);
  group.meta.set_created_ns(parts_.executor.wall_time().ns);
  group.clock = std::make_shared<replication::VersionClock>();
  return grow(std::move(group), volumes, dry_run);
}

Result<meta::Group> GroupSet::add(const std::string& name, const Names& volumes, bool dry_run) {
  const Result<ServedGroup*> group = find_changeable(name);
  if (!group) return group.error();
  return grow(**group, volumes, dry_run);
}

Result<meta::Group> GroupSet::grow(ServedGroup group, const Names& volumes, bool dry_run) {
  if (Result<void> r = check_joining(group.meta, volumes); !r) return r.error();
  const int before = group.meta.members_size();
  VersionTime joined = now(group);
  for (const std::string& name : volumes) {
    const ServedVolume* served = parts_.volumes.find(name);
    joined = std::max(joined, served->volume->replicator().coordinator().floor());
    meta::Group::Member& member = *group.meta.add_members();
    member.set_volume_id(served->meta.id());
    member.set_name(name);
  }
  for (int i = before; i < group.meta.members_size(); ++i) {
    group.meta.mutable_members(i)->set_joined_ns(joined.ns);
  }
  if (dry_run) return group.meta;
  if (Result<void> r = parts_.store.put_group(group.meta); !r) return r.error();
  // Whatever was stamped until now was stamped before they joined; what comes is behind that.
  group.clock->raise(joined);
  for (const std::string& name : volumes) {
    parts_.volumes.find(name)->volume->replicator().share_clock(group.clock);
  }
  return (groups_[group.meta.name()] = std::move(group)).meta;
}

Result<void> GroupSet::check_unlocked(const std::string& group) {
  if (const std::size_t views = views_of(group); views > 0) {
    return Error{ErrorCode::kBusy, "the group " + group + " has " + std::to_string(views) +
                                       " exposed views; unexpose them first"};
  }
  const Result<std::vector<meta::GroupMark>> marks = parts_.store.group_marks_of(group);
  if (!marks) return marks.error();
  const std::uint64_t now_ns = parts_.executor.wall_time().ns;
  for (const meta::GroupMark& mark : *marks) {
    if (mark.locked_until_ns() > now_ns) {
      return Error{ErrorCode::kBusy, "the mark " + mark.name() + " of the group " + group +
                                         " is locked; remove it first"};
    }
  }
  return {};
}

Result<meta::Group> GroupSet::remove(const std::string& name, const std::string& volume,
                                     bool dry_run) {
  const Result<ServedGroup*> group = find_changeable(name);
  if (!group) return group.error();
  meta::Group changed = (*group)->meta;
  const auto member =
      std::ranges::find(*changed.mutable_members(), volume, &meta::Group::Member::name);
  if (member == changed.mutable_members()->end()) {
    return Error{ErrorCode::kNotFound, volume + " is not in the group " + name};
  }
  if (changed.members_size() == 1) {
    return Error{ErrorCode::kInvalidArgument, volume + " is the last volume of " + name +
                                                  "; `mariner group delete " + name +
                                                  "` deletes the group, and no volume"};
  }
  if (Result<void> r = check_unlocked(name); !r) return r.error();
  const std::uint32_t id = member->volume_id();
  changed.mutable_members()->erase(member);
  if (dry_run) return changed;
  Result<std::vector<meta::GroupMark>> marks = parts_.store.group_marks_of(name);
  if (!marks) return marks.error();
  for (meta::GroupMark& mark : *marks) remove_part(mark, id);
  if (Result<void> r = parts_.store.change_group(changed, *marks); !r) return r.error();
  (*group)->meta = changed;
  leave(id);
  return changed;
}

// With a clock of its own, which goes on from the group's.
void GroupSet::leave(std::uint32_t volume) {
  const ServedVolume* served = parts_.volumes.find(volume);
  if (served == nullptr || served->volume == nullptr) return;
  served->volume->replicator().share_clock(std::make_shared<replication::VersionClock>());
}

Result<meta::Group> GroupSet::erase(const std::string& name, bool dry_run) {
  const Result<ServedGroup*> group = find_changeable(name);
  if (!group) return group.error();
  if (Result<void> r = check_unlocked(name); !r) return r.error();
  meta::Group was = (*group)->meta;
  if (dry_run) return was;
  if (Result<void> r = parts_.store.remove_group(name); !r) return r.error();
  groups_.erase(name);
  for (const meta::Group::Member& member : was.members()) leave(member.volume_id());
  return was;
}

}  // namespace mariner::node
