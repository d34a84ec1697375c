// Takes several volumes back at one point: none of them, or all, whatever happens in between.
//
// Members are held up (nobody reads or writes) before the first of them has a record of the
// rollback, and go on when all have one. In between, what is to happen stands in the node's store.
// That it stands there decides: from then on the rollback happens. A start that finds it there
// holds the members up before anybody is served, logs what is missing, and only then lets them go.
//
// The records have version times of their own. No moment of the group between them may be opened:
// who asks for one gets the moment before (meta::GroupRollback: begun_ns, ended_ns).
//
// Loop's thread only. It keeps itself while anything is under way.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/executor.h"
#include "proto/meta.pb.h"
#include "server/node/log.h"
#include "server/node/meta_store.h"
#include "server/volume/volume.h"

namespace mariner::node {

class GroupRollback : public std::enable_shared_from_this<GroupRollback> {
 public:
  struct Member {
    std::string name;
    std::shared_ptr<volume::Volume> volume;
    index::IndexMoment target;
  };
  struct Parts {  // all outlive it, but for `stopping`, which it shares
    MetaStore& store;
    Executor& executor;
    Log& log;
    std::shared_ptr<const bool> stopping;
  };
  // The record, of which all is known then. kUnavailable: the server is stopping, and the rollback
  // is completed at the next start. After every other error nothing has happened.
  using Ended = UniqueFunction<void(Result<meta::GroupRollback>)>;

  // `record` has the group's name and a number. Of the rollbacks `forgotten` nothing is known when
  // it is done. The members' version times come from one clock.
  GroupRollback(Parts parts, meta::GroupRollback record, std::vector<Member> members,
                std::vector<std::uint64_t> forgotten);

  // kOutsideWindow when a member's target is before its horizon.
  void run(Ended done);
  // Completes the one that `record` tells of: begun, and not done. Members are held up when this
  // returns, if nothing is under way in them.
  void resume(Ended done);

 private:
  struct Part {
    Member member;
    volume::LiveVolume::RollbackSteps steps;
    index::IndexMoment before{};
    VersionTime recorded{};  // 0: it has no record yet
  };
  using Step = std::function<void(Part&, volume::Done)>;

  // Does the same with all parts; the first error has the member's name.
  void each(const Step& step, volume::Done then);
  void look_up(volume::Done then);
  void hold_up(UniqueFunction<void()> then);
  void decide();
  void find_recorded(volume::Done then);
  void log();
  void not_logged(const Error& error);
  void take_back(const Error& error);
  void try_again(const Error& error);
  void finish();
  void end(Result<meta::GroupRollback> result);

  const Parts parts_;
  meta::GroupRollback record_;
  std::vector<Part> members_;
  const std::vector<std::uint64_t> forgotten_;
  bool resumed_ = false;
  bool warned_ = false;
  Ended done_;
};

// Where a volume is at a moment of its group.
[[nodiscard]] meta::GroupPart part_of(VolumeId volume, const index::IndexMoment& at);
[[nodiscard]] index::IndexMoment moment_of(const meta::GroupPart& part);

// The mark on the moment before a rollback that is done.
[[nodiscard]] meta::GroupMark mark_before(const meta::GroupRollback& record, VersionTime now);

}  // namespace mariner::node
