// A connection of its own for each conversation: none waits for another one, and each breaks by
// itself. Messages travel as they are, without bytes.
#pragma once

#include <functional>

#include "tests/sim/cluster/sim_network.h"
#include "tests/sim/cluster/sim_ways.h"
#include "tests/sim/cluster/storage_part.h"

namespace mariner::test {

class ConnectionWays final : public SimWays {
 public:
  using Directories = std::function<const Directory&(VolumeId)>;

  // `node` and `network` outlive it, and all that it begins.
  ConnectionWays(SimNode& node, SimNetwork& network, Directories directories)
      : node_(node), network_(network), directories_(std::move(directories)) {}

  std::unique_ptr<SimConversation> begin(const With& with, Heard heard) override;
  void coordinates(VolumeId /*volume*/,
                   const std::vector<replication::NodeId>& /*others*/) override {}
  void rests(VolumeId /*volume*/) override {}

 private:
  SimNode& node_;
  SimNetwork& network_;
  const Directories directories_;
};

}  // namespace mariner::test
