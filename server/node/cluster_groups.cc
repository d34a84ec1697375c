#include "server/node/cluster_groups.h"

namespace mariner::node {
namespace {

// Their members would be coordinated by different nodes, each with a clock of its own.
Error no_groups_yet() {
  return {ErrorCode::kInvalidArgument,
          "groups of volumes are not possible in a cluster yet; a standalone server has them"};
}

}  // namespace

void ClusterGroups::list(admin::Answer<api::GroupList> done) { done(no_groups_yet()); }
void ClusterGroups::show(const api::GroupRequest& /*request*/, admin::Answer<api::Group> done) {
  done(no_groups_yet());
}
void ClusterGroups::create(const api::GroupRequest& /*request*/, admin::Answer<api::Group> done) {
  done(no_groups_yet());
}
void ClusterGroups::add(const api::GroupRequest& /*request*/, admin::Answer<api::Group> done) {
  done(no_groups_yet());
}
void ClusterGroups::remove(const api::GroupRequest& /*request*/, admin::Answer<api::Group> done) {
  done(no_groups_yet());
}
void ClusterGroups::erase(const api::GroupRequest& /*request*/, admin::Answer<api::Group> done) {
  done(no_groups_yet());
}
void ClusterGroups::mark_add(const api::GroupMarkRequest& /*request*/,
                             admin::Answer<api::GroupMark> done) {
  done(no_groups_yet());
}
void ClusterGroups::mark_list(const api::GroupMarkRequest& /*request*/,
                              admin::Answer<api::GroupMarkList> done) {
  done(no_groups_yet());
}
void ClusterGroups::mark_remove(const api::GroupMarkRequest& /*request*/,
                                admin::Answer<api::GroupMark> done) {
  done(no_groups_yet());
}
void ClusterGroups::expose(const api::GroupExposeRequest& /*request*/,
                           admin::Answer<api::GroupView> done) {
  done(no_groups_yet());
}
void ClusterGroups::rollback(const api::GroupRollbackRequest& /*request*/,
                             admin::Answer<api::GroupRollbackAnswer> done) {
  done(no_groups_yet());
}

}  // namespace mariner::node
