// The daemon's configuration. See node_control.h.
#include "server/node/config_desk.h"
#include "server/node/node_control.h"

namespace mariner::node {

void NodeControl::config_compare(const api::ConfigCompareRequest& request,
                                 admin::Answer<api::ConfigChanges> done) {
  done(compare_config(node_, node_.config_path_, request));
}

void NodeControl::config_reload(admin::Answer<api::ConfigChanges> done) {
  done(reload_config(node_, node_.config_path_, node_.log_));
}

}  // namespace mariner::node
