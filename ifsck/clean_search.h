// The newest moment whose file system needs no repair.
//
// The answer can only change where metadata or the journal is written: so much is known of each
// moment that is looked at, and the next one is that before the last such write. Moments that a
// pause follows are looked at first, to have an answer soon; then all that are newer than it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "ifsck/known_states.h"
#include "ifsck/moment_check.h"
#include "ifsck/past.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::ifsck {

struct CleanSearch {
  struct Options {
    std::uint8_t level = 1;
    std::uint64_t looks_max = 5000;
    // Is told of each moment that was looked at.
    std::function<void(const MomentReport& report)> looked;
  };

  std::optional<SequenceNumber> found;
  // Some between it and the newest were not looked at, because there were too many.
  bool some_skipped = false;
  std::uint64_t looks = 0;
  SequenceNumber oldest;  // that was looked at

  // At `before` or earlier. Errors: as check_moment() has them, of `before`.
  [[nodiscard]] static Result<CleanSearch> run(Past& past, SequenceNumber before,
                                               KnownStates& states, const Options& options);
};

}  // namespace mariner::ifsck
