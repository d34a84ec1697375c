// What an administrator can ask about groups of volumes: admin::GroupControl over the groups of a
// node. Loop's thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "server/admin/group_control.h"
#include "server/iscsi/session.h"
#include "server/node/group_moment.h"
#include "server/node/group_set.h"

namespace mariner::node {

class GroupDesk final : public admin::GroupControl {
 public:
  struct Parts {  // all outlive it
    GroupSet& groups;
    VolumeSet& volumes;
    ViewSet& views;
    MetaStore& store;
    Executor& executor;
    Log& log;
  };
  // What it needs of whoever serves hosts.
  struct Front {
    std::function<std::vector<iscsi::SessionInfo>(const std::string& iqn)> sessions_of;
    std::function<api::Session(const iscsi::SessionInfo& session)> session_answer;
    std::function<api::View(const ServedView& view)> view_answer;
  };
  GroupDesk(const Parts& parts, Front front) : parts_(parts), front_(std::move(front)) {}

  void list(admin::Answer<api::GroupList> done) override;
  void show(const api::GroupRequest& request, admin::Answer<api::Group> done) override;
  void create(const api::GroupRequest& request, admin::Answer<api::Group> done) override;
  void add(const api::GroupRequest& request, admin::Answer<api::Group> done) override;
  void remove(const api::GroupRequest& request, admin::Answer<api::Group> done) override;
  void erase(const api::GroupRequest& request, admin::Answer<api::Group> done) override;
  void mark_add(const api::GroupMarkRequest& request, admin::Answer<api::GroupMark> done) override;
  void mark_list(const api::GroupMarkRequest& request,
                 admin::Answer<api::GroupMarkList> done) override;
  void mark_remove(const api::GroupMarkRequest& request,
                   admin::Answer<api::GroupMark> done) override;
  void expose(const api::GroupExposeRequest& request, admin::Answer<api::GroupView> done) override;
  void rollback(const api::GroupRollbackRequest& request,
                admin::Answer<api::GroupRollbackAnswer> done) override;

 private:
  // A moment, and what it was found in.
  struct Found {
    GroupMoments of;
    GroupMoment moment;
  };

  [[nodiscard]] api::Group to_api(const meta::Group& meta) const;
  [[nodiscard]] api::GroupMark to_api(const meta::GroupMark& mark) const;
  [[nodiscard]] api::GroupMember to_api(const meta::Group::Member& member) const;
  void answer(const char* what, const Result<meta::Group>& group, bool dry_run,
              admin::Answer<api::Group> done) const;
  // The moment before the group's newest rollback, with `undo`.
  void resolve(const std::string& group, const api::MomentSpec& at, bool undo,
               UniqueFunction<void(Result<Found>)> then);
  void expose_at(const api::GroupExposeRequest& request, const Found& found,
                 admin::Answer<api::GroupView> done);
  void plan(const api::GroupRollbackRequest& request, const Found& found,
            admin::Answer<api::GroupRollbackAnswer> done);
  void apply(const api::GroupRollbackRequest& request, const std::vector<meta::GroupPart>& targets,
             api::GroupRollbackAnswer answer, admin::Answer<api::GroupRollbackAnswer> done);
  void finish(const meta::GroupRollback& record, api::GroupRollbackAnswer answer,
              admin::Answer<api::GroupRollbackAnswer> done);

  const Parts parts_;
  const Front front_;
};

}  // namespace mariner::node
