// A volume as whoever slows its hosts sees it.
//
// Owner's thread only.
#pragma once

#include <cstdint>

namespace mariner::volume {

class Paced {
 public:
  virtual ~Paced() = default;

  // Of all writes that were ever let in, by replication::lag_bytes().
  [[nodiscard]] virtual std::uint64_t stamped_bytes() const = 0;
  // Some have come and were not let in yet, for whatever reason.
  [[nodiscard]] virtual bool writes_wait() const = 0;
  // Writes are let in while they add up to less than this, besides what else bounds them.
  // WriteCoordinator::kUnlimited: nobody is slowed.
  virtual void pace(std::uint64_t bytes) = 0;
};

}  // namespace mariner::volume
