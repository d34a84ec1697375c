#include "tests/hammer/model.h"

#include <algorithm>

namespace mariner::hammer {

void State::apply(const Write& write) {
  const std::uint64_t first = std::max(write.first_cell, region_.first);
  const std::uint64_t end = std::min(write.end_cell(), region_.end());
  for (std::uint64_t cell = first; cell < end; ++cell) shown_[cell - region_.first] = &write;
}

State newest_state(CellRange region, std::span<const Write> writes) {
  State state(region);
  for (const Write& write : writes) {
    if (write.in_effect()) state.apply(write);
  }
  return state;
}

State state_at(CellRange region, std::span<const Settled> history, std::uint64_t sequence) {
  // From the end backwards: the writes after the last rollback, then those up to its target, ...
  std::vector<const Write*> newest_first;
  for (std::size_t i = history.size(); i-- > 0;) {
    const Settled& event = history[i];
    if (event.sequence > sequence) continue;
    if (event.write != nullptr) {
      newest_first.push_back(event.write);
    } else {
      sequence = event.rollback_target;
    }
  }
  State state(region);
  for (auto write = newest_first.rbegin(); write != newest_first.rend(); ++write) {
    state.apply(**write);
  }
  return state;
}

}  // namespace mariner::hammer
