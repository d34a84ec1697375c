// How the coordinators of a node reach participants on others, in the simulated cluster: by a
// connection for each conversation (connection_ways.h), or by the node's bus (sim_bus.h).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "replication/wire.h"
#include "server/cluster/history_wire.h"

namespace mariner::test {

// One conversation, as who has begun it sees it. What it says arrives in order, each once, or the
// conversation is lost.
class SimConversation {
 public:
  virtual ~SimConversation() = default;  // says nothing: its node is gone, or it is over
  virtual void tell(replication::FromCoordinator message) = 0;
  // A storage node, what it holds.
  virtual void ask(const cluster::HistoryFrame& question) = 0;
  // The other side hears of it behind what was said.
  virtual void close() = 0;
};

class SimWays {
 public:
  struct With {
    replication::NodeId node;
    VolumeId volume;
    bool logger = false;  // or a journal; else its storage
    bool asks = false;    // it is asked for what it holds, too
  };
  // What comes back, until it is closed or lost. Never from within a call.
  struct Heard {
    std::function<void(replication::ToCoordinator)> told;
    std::function<void(const cluster::HistoryFrame&)> answered;
    std::function<void()> lost;
  };

  virtual ~SimWays() = default;
  // Null: it cannot be reached now.
  virtual std::unique_ptr<SimConversation> begin(const With& with, Heard heard) = 0;
  // This node coordinates the volume, with participants on these other nodes; or does no more.
  virtual void coordinates(VolumeId volume, const std::vector<replication::NodeId>& others) = 0;
  virtual void rests(VolumeId volume) = 0;
};

}  // namespace mariner::test
