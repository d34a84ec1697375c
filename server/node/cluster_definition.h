// Whether what the shared store says of a volume can be one of the cluster's. Anybody who reaches
// the store may have written it; behind this it is relied on.
#pragma once

#include <functional>

#include "proto/error.h"
#include "proto/meta.pb.h"
#include "replication/cluster_messages.h"

namespace mariner::node {

// Who asks: a node, and the roles that its configuration gives it.
struct DefinitionReader {
  replication::NodeId self;
  bool logs = false;
  bool stores = false;
  bool serves = false;
  std::function<bool(replication::NodeId)> knows;  // of itself, too
};

// kCorrupt, with what was expected and what was found.
[[nodiscard]] Result<void> check_definition(const meta::Volume& meta,
                                            const DefinitionReader& reader);

}  // namespace mariner::node
