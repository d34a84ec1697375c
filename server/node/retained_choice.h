// Which moment stands for each time that a retention names: a sound one where one is known.
//
// A moment that a check found clean (ifsck), in the period that ends at that time, is worth more
// than the last write of that period, which may stand in the middle of whatever the host was
// doing. Of several the newest one counts. What was chosen stays chosen behind the window, where
// verdicts may go: there, the newest moment of the period that was kept stands for it.
//
// Pure values.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "index/version_index.h"
#include "server/client/retention.h"

namespace mariner::node {

struct RetainedChoice {
  RetainedTime asked;
  // Nothing: the last write at or before that time.
  std::optional<index::IndexMoment> moment{};
  bool clean = false;
  friend bool operator==(const RetainedChoice&, const RetainedChoice&) = default;
};

struct RetainedPast {
  index::IndexMoment oldest;                  // from here on every moment can be opened
  std::span<const index::KeptMoment> kept;    // before it, these; ascending
  std::span<const index::IndexMoment> clean;  // were found to be, ascending
};

// One for each of `times`, in their order.
[[nodiscard]] std::vector<RetainedChoice> choose_retained(const std::vector<RetainedTime>& times,
                                                          const RetainedPast& past);

// Whether that is why a moment is kept.
[[nodiscard]] bool stands_for(const index::KeptMoment& kept, const RetainedChoice& choice);

}  // namespace mariner::node
