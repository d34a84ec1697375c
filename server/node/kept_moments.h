// Moments that a history holds while it is said in the shared store what keeps them from then on,
// a mark or a view: until the logger has surely heard, or until that is taken back. (A log that is
// small has no room for what nobody asks for.)
//
// Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "proto/executor.h"
#include "server/volume/history.h"

namespace mariner::node {

// Who holds a lease may not have heard of a change of the store for so long: what it watches the
// store by may hang, with a server that does, and is begun anew when it was silent for a time,
// while the lease is renewed by other connections.
[[nodiscard]] constexpr std::chrono::nanoseconds time_to_hear(
    std::chrono::nanoseconds lease, std::chrono::nanoseconds watch_silence) {
  return 2 * (lease + watch_silence);
}

class KeptMoments {
 public:
  // The logger has heard what was said `heard_after` ago. `executor` outlives what was said().
  KeptMoments(Executor& executor, std::chrono::nanoseconds heard_after)
      : executor_(executor), heard_after_(heard_after) {}

  // Holds a moment for `what`, which is not said yet; its number, which ascends.
  std::uint64_t keep(std::string what, volume::History::Hold hold) {
    (*kept_)[++last_] = {std::move(what), std::move(hold)};
    return last_;
  }
  // It is said, or could not be.
  void said(std::uint64_t number) {
    executor_.after(heard_after_, [kept = kept_, number] { kept->erase(number); });
  }
  // What is kept for it up to this number: not what was said anew meanwhile.
  void taken_back(const std::string& what, std::uint64_t last) {
    std::erase_if(*kept_,
                  [&](const auto& each) { return each.first <= last && each.second.what == what; });
  }
  // The number of the youngest.
  [[nodiscard]] std::uint64_t last() const { return last_; }

 private:
  struct Kept {
    std::string what;
    volume::History::Hold hold;
  };
  Executor& executor_;
  const std::chrono::nanoseconds heard_after_;
  // Those that wait to be forgotten have it, too.
  const std::shared_ptr<std::map<std::uint64_t, Kept>> kept_ =
      std::make_shared<std::map<std::uint64_t, Kept>>();
  std::uint64_t last_ = 0;
};

}  // namespace mariner::node
