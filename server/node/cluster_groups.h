// Groups of volumes on a node of a cluster, where there are none yet: everything is refused, with a
// message that says so. Loop's thread.
#pragma once

#include "server/admin/group_control.h"

namespace mariner::node {

class ClusterGroups final : public admin::GroupControl {
 public:
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
};

}  // namespace mariner::node
