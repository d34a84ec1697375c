// The groups of a node: volumes that share one time line, so that a moment is one of all of them.
//
// The members of a group stamp their writes by one clock (replication::VersionClock): of two
// writes, to whichever of them, the one that was answered before the other one was sent has the
// lower version time. So whoever takes, of each member, the last write at or before one time, sees
// no write without those that it may have depended on. That holds from when a volume has joined
// on; a volume is in one group at most. Loop's thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/meta.pb.h"
#include "replication/version_clock.h"
#include "server/node/group_rollback.h"
#include "server/node/log.h"
#include "server/node/meta_store.h"
#include "server/node/view_set.h"
#include "server/node/volume_set.h"

namespace mariner::node {

struct ServedGroup {
  meta::Group meta;
  std::shared_ptr<replication::VersionClock> clock;
  std::vector<meta::GroupRollback> rollbacks;  // that are done, in their order
  bool rolling_back = false;                   // one is under way
};

class GroupSet {
 public:
  static constexpr std::size_t kGroupsMax = 256;
  static constexpr int kMembersMax = 64;
  // That a group remembers, in its members' windows.
  static constexpr std::size_t kRollbacksMax = 4096;

  struct Parts {  // all outlive it
    VolumeSet& volumes;
    const ViewSet& views;
    MetaStore& store;
    Executor& executor;
    Log& log;
  };
  explicit GroupSet(const Parts& parts) : parts_(parts) {}

  // After the volumes have started and before anybody is served. Members of which a crash has
  // interrupted a rollback are held up until it is done.
  Result<void> start();
  // What is under way ends as it is: the next start completes it.
  void stop() { *stopping_ = true; }

  using Names = std::vector<std::string>;
  // Each answers with the group as it is then, or in a dry run would be. kNotFound, kAlreadyExists,
  // kInvalidArgument, kLimit; kUnavailable: it is being rolled back; kBusy: a view or a locked mark
  // of the group is in the way.
  Result<meta::Group> create(const std::string& name, const Names& volumes, bool dry_run);
  Result<meta::Group> add(const std::string& name, const Names& volumes, bool dry_run);
  Result<meta::Group> remove(const std::string& name, const std::string& volume, bool dry_run);
  // With its marks. Its volumes stay. Answers with it as it was.
  Result<meta::Group> erase(const std::string& name, bool dry_run);

  // kNotFound.
  [[nodiscard]] Result<ServedGroup*> find(const std::string& name);
  [[nodiscard]] const std::map<std::string, ServedGroup>& all() const { return groups_; }
  // Null: the volume is in none.
  [[nodiscard]] const ServedGroup* group_of(std::uint32_t volume) const;
  // In the order of the group's. kOutsideWindow, with its name, when one is gone: there is no
  // moment of all of them.
  [[nodiscard]] Result<std::vector<ServedVolume*>> members(const ServedGroup& group);
  // The newest moment.
  [[nodiscard]] VersionTime now(const ServedGroup& group) const;
  [[nodiscard]] std::size_t views_of(const std::string& group) const;

  // Takes the members back to a settled moment of each, at one point. `done` with the record, which
  // is durable. kLimit; kUnavailable: one is under way; kAborted: the group has other members by
  // now; otherwise as GroupRollback::run().
  void roll_back(const std::string& name, const std::vector<meta::GroupPart>& targets,
                 GroupRollback::Ended done);
  // Whether these are of all of its members, in their order.
  [[nodiscard]] Result<void> check_parts(const ServedGroup& group,
                                         const std::vector<meta::GroupPart>& parts) const;

 private:
  Result<void> load(const meta::Group& meta);
  Result<void> resume(ServedGroup& group, const meta::GroupRollback& interrupted);
  Result<meta::Group> grow(ServedGroup group, const Names& volumes, bool dry_run);
  void leave(std::uint32_t volume);
  [[nodiscard]] Result<void> check_joining(const meta::Group& group, const Names& volumes) const;
  [[nodiscard]] Result<ServedGroup*> find_changeable(const std::string& name);
  [[nodiscard]] Result<void> check_unlocked(const std::string& group);
  [[nodiscard]] std::vector<std::uint64_t> forgettable(const ServedGroup& group);
  void ended(const std::string& name, const Result<meta::GroupRollback>& record,
             const std::vector<std::uint64_t>& forgotten);
  [[nodiscard]] std::shared_ptr<GroupRollback> make_rollback(
      const meta::GroupRollback& record, std::vector<GroupRollback::Member> members,
      const std::vector<std::uint64_t>& forgotten);

  const Parts parts_;
  std::map<std::string, ServedGroup> groups_;
  const std::shared_ptr<bool> stopping_ = std::make_shared<bool>(false);
};

}  // namespace mariner::node
