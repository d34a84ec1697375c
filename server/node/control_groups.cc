// Groups of volumes. See node_control.h, and group_desk.h for what is done.
#include "server/node/node_control.h"

namespace mariner::node {

// The parts that it works with are there once the node has started.
GroupDesk& NodeControl::groups() {
  if (groups_ == nullptr) {
    groups_ = std::make_unique<GroupDesk>(
        GroupDesk::Parts{*node_.groups_, *node_.volumes_, *node_.views_, *node_.store_, node_.loop_,
                         node_.log_},
        GroupDesk::Front{[this](const std::string& iqn) { return sessions_of(iqn); },
                         [this](const iscsi::SessionInfo& session) { return to_api(session); },
                         [this](const ServedView& view) { return to_api(view); }});
  }
  return *groups_;
}

}  // namespace mariner::node
