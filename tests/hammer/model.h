// What a region of the volume must contain, by the hammer's own account.
//
// A state says for each cell which write it shows. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/hammer/journal.h"

namespace mariner::hammer {

struct CellRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  [[nodiscard]] std::uint64_t end() const { return first + count; }
};

class State {
 public:
  // Every cell of `region` was never written.
  explicit State(CellRange region) : region_(region), shown_(region.count, nullptr) {}

  // `write` must outlive the state. Cells outside the region are ignored.
  void apply(const Write& write);
  [[nodiscard]] const Write* shown(std::uint64_t cell) const {
    return shown_[cell - region_.first];
  }
  [[nodiscard]] CellRange region() const { return region_; }

 private:
  CellRange region_;
  std::vector<const Write*> shown_;
};

// The state after all writes in effect, in order.
State newest_state(CellRange region, std::span<const Write> writes);

// One settled event of the volume's history: a write, or a rollback to a sequence number.
struct Settled {
  std::uint64_t sequence = 0;
  const Write* write = nullptr;  // null: a rollback
  std::uint64_t rollback_target = 0;
};

// The state at `sequence`: writes up to it, where a rollback returns to the state at its target.
// `history` ascends by sequence.
State state_at(CellRange region, std::span<const Settled> history, std::uint64_t sequence);

}  // namespace mariner::hammer
