// Blocks that make a moment of a volume a sound file system, a few at a time.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "proto/error.h"
#include "proto/payload.h"
#include "proto/units.h"

namespace mariner::volume {

struct RepairedRun {
  BlockRange extent;
  PayloadSlice bytes;  // of all of it
};

class RepairSource {
 public:
  static constexpr std::size_t kBlocksMax = 256;  // 1 MiB, that next() returns

  virtual ~RepairSource() = default;
  // The next of them, within the volume, no block twice; none: that was all. Owner's thread.
  [[nodiscard]] virtual Result<std::vector<RepairedRun>> next() = 0;

  // Why they were not all written, told by who wrote them; nothing: they were.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  void fail(Error why) { failure_ = std::move(why); }

 private:
  std::optional<Error> failure_;
};

}  // namespace mariner::volume
