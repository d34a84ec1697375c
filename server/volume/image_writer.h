// What is done to an image, in order, on the worker thread: the blocking half of applying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "logging/disk.h"
#include "proto/payload.h"
#include "proto/units.h"

namespace mariner::volume {

// One change of an image.
struct ImageChange {
  BlockRange range;
  Payload payload;  // from `offset`; none: zeros
  std::size_t offset = 0;
  bool repeated = false;  // one stored block for all of the range
};

// How many writes to an image a device has at a time. What else it is to do, the log's writes first
// of all, waits behind them: few, as long as the image keeps up. And what waits for this core may
// wait for no longer than one of them takes.
enum class Begin : std::uint8_t { kFewAndYield, kFew, kMany };

// Applies the changes, which are in address order and do not overlap: neighbours go out in one
// write, zeros become holes. Not durable until the image is flushed. Blocking.
Result<void> write_image(logging::Disk& image, const std::vector<ImageChange>& changes);
// The same, and the device begins with them some at a time, so that little is left for the flush.
// Long pieces that only overwrite go past the page cache.
Result<void> write_image_and_begin(logging::Disk& image, const std::vector<ImageChange>& changes,
                                   Begin begin);
// As write_image, but that the page cache keeps nothing of it, and all writes go out together.
Result<void> write_image_past_cache(logging::Disk& image, const std::vector<ImageChange>& changes);

}  // namespace mariner::volume
