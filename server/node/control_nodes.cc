// Nodes of the cluster. See node_control.h.
#include "server/node/node_control.h"

namespace mariner::node {

void NodeControl::node_invite(const api::InviteRequest& request,
                              admin::Answer<api::Invitation> done) {
  done(node_.enrolment_desk_->invite(request.node(), request.dry_run()));
}

void NodeControl::node_promote(const api::PromoteRequest& /*request*/,
                               admin::Answer<api::Promotion> done) {
  done(Error{ErrorCode::kInvalidArgument,
             "this is a standalone server: nobody else could serve its volumes (roles in " +
                 node_.config_path_ + ")"});
}

void NodeControl::cluster_status(admin::Answer<api::ClusterStatus> done) {
  done(Error{ErrorCode::kInvalidArgument,
             "this is a standalone server: it knows no other nodes (roles in " +
                 node_.config_path_ + ")"});
}

}  // namespace mariner::node
