// A volume's newest moments, checked while it is written to: so that clean ones are known before
// anybody asks.
//
// Of a file system with a journal, those at which a transaction was complete (commit_search.h); of
// one without, those at which nothing had been written for a while. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "ifsck/known_states.h"
#include "ifsck/moment_check.h"
#include "ifsck/past.h"
#include "proto/error.h"
#include "proto/units.h"

namespace mariner::ifsck {

class Follower {
 public:
  struct Look {
    MomentReport report;
    // The transaction that was complete then; nothing: the volume rested.
    std::optional<std::uint32_t> transaction;
  };

  // Both outlive it. `now`: the time by the clock that versions have.
  Follower(Past& past, KnownStates& states, std::function<VersionTime()> now)
      : past_(past), states_(states), now_(std::move(now)) {}

  // The newest such moment since the last look; nothing: there is none. Nothing is written but to
  // the known states. Errors: as the past says; what is no file system is looked at again when more
  // was written.
  [[nodiscard]] Result<std::optional<Look>> look();

 private:
  struct Found {
    SequenceNumber at;
    std::optional<std::uint32_t> transaction;
  };
  Result<std::optional<Found>> find(const Past::Reach& reach);
  // Of a moment with which something is wrong.
  Result<Verdict> try_to_mend(SequenceNumber at);

  Past& past_;
  KnownStates& states_;
  const std::function<VersionTime()> now_;
  std::optional<SequenceNumber> last_;  // what came until then was looked at
  bool known_ = false;                  // a state is, from which others are checked
};

}  // namespace mariner::ifsck
