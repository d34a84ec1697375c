// One session of a soak, from its login to its end: a number of commands outstanding, whose blocks
// a region chooses and judges.
//
// Nothing blocks. A session is driven by serve(), ends by leave() (a logout, once its commands are
// answered) or by cut() (the connection is closed, whatever is outstanding), and is not deleted
// before. What is outstanding at a cut is told to the region as lost. Not thread-safe.
#pragma once

#include <poll.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"
#include "tests/bench/iscsi_unit.h"
#include "tests/bench/session_region.h"
#include "tests/bench/soak_counts.h"

struct scsi_iovec;

namespace mariner::bench {

class SoakSession {
 public:
  using Time = SoakCounts::Time;

  struct Options {
    IscsiUnit::Options unit;
    Lbn first;  // of the region, on the LUN
    BlockCount blocks;
    std::size_t depth = 1;
    std::optional<std::size_t> steady;  // its number as SoakCounts knows it
    std::string origin{};               // how it came, in words
    // How long the target may be busy with a command whose connection is gone.
    std::chrono::milliseconds afterlife{2000};
  };
  enum class Work {
    kFill,    // blocks that were never written
    kMix,     // reads and writes at random
    kVerify,  // each block once
  };
  enum class State {
    kLoggingIn,
    kWorking,
    kLeaving,
    kLeft,  // logged out
    kLost,  // the connection ended without being asked; to be cut
  };

  // The region and the counts live longer.
  SoakSession(Options options, SessionRegion& region, SoakCounts& counts);
  ~SoakSession();
  SoakSession(const SoakSession&) = delete;
  SoakSession& operator=(const SoakSession&) = delete;

  Result<void> begin();
  // Fills the queue. Until it leaves, each answer makes the next command.
  void work(Work work);
  void leave();
  void cut(SessionRegion::Loss loss);
  // The target will end the connection, and by then nothing of the session is executed any more.
  void expect_end(const std::string& why) { expected_ = why; }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] std::size_t outstanding() const { return outstanding_; }
  [[nodiscard]] bool silent(Time now, SoakCounts::Clock::duration limit) const {
    return (outstanding_ > 0 || state_ == State::kLoggingIn || state_ == State::kLeaving) &&
           now - progress_ > limit;
  }
  [[nodiscard]] pollfd events() const;
  void serve(short revents);

 private:
  struct Slot;

  static void completed(iscsi_context* context, int status, void* command_data, void* slot);
  void answered(Slot& slot, int status, const char* error);
  void send_more();
  [[nodiscard]] std::optional<SessionRegion::Command> next(Time now);
  [[nodiscard]] bool send(Slot& slot, Time now);
  void lose(const std::string& why);
  [[nodiscard]] std::string name() const {
    return options_.unit.initiator + " (" + options_.origin + ")";
  }

  const Options options_;
  SessionRegion& region_;
  SoakCounts& counts_;
  State state_ = State::kLoggingIn;
  Work work_ = Work::kMix;
  std::optional<std::string> expected_;  // the end, and why
  std::size_t outstanding_ = 0;
  Time progress_;
  std::optional<SessionRegion::Loss> cut_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> idle_;
  std::unique_ptr<IscsiUnit> unit_;
};

}  // namespace mariner::bench
