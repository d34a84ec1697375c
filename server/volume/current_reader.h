// Reads the current contents of a volume: what has been committed by now.
#pragma once

#include "server/volume/layer.h"

namespace mariner::volume {

class CurrentReader {
 public:
  virtual ~CurrentReader() = default;
  // The blocks of `range`, whole, as a slice that must not be changed.
  virtual void read(BlockRange range, ReadDone done) = 0;
  // A hint, as Layer::prefetch().
  virtual void prefetch(BlockRange range) { static_cast<void>(range); }
};

}  // namespace mariner::volume
