// What is done to an image, in order, on the worker thread: the blocking half of applying.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "logging/disk.h"
#include "proto/payload.h"
#include "proto/units.h"
#include "server/volume/history.h"

namespace mariner::volume {

// One change of an image. The blocks come from memory, from the past, or are zeros.
struct ImageChange {
  BlockRange range;
  Payload payload;  // in memory, from `offset`
  std::size_t offset = 0;
  bool repeated = false;                  // one stored block for all of the range
  std::shared_ptr<const PastBytes> past;  // else, if it is there
};

// Applies the changes, which are in address order and do not overlap: neighbours that lie in
// memory go out in one write, zeros become holes. Not durable until the image is flushed. Blocking.
Result<void> write_image(logging::Disk& image, std::vector<ImageChange>& changes);

}  // namespace mariner::volume
