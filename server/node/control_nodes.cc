// Nodes of the cluster. See node_control.h.
#include "server/node/node_control.h"

namespace mariner::node {

void NodeControl::node_invite(const api::InviteRequest& request,
                              admin::Answer<api::Invitation> done) {
  done(node_.enrolment_desk_->invite(request.node(), request.dry_run()));
}

}  // namespace mariner::node
