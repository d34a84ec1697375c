// Where a node's current contents of a volume are asked for by the coordinator, on another node.
#pragma once

#include "server/cluster/history_wire.h"
#include "server/volume/layer.h"

namespace mariner::cluster {

class CurrentSource {
 public:
  virtual ~CurrentSource() = default;
  // `done` once, maybe from within, with whole blocks that must not be changed. kUnavailable: not
  // now, or not for this coordinator; another storage node may have an answer.
  virtual void read(const CurrentQuestion& question, volume::ReadDone done) = 0;
};

}  // namespace mariner::cluster
