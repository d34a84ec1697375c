// Where one session of a soak works after another: a region of a volume that outlives them.
//
// The session of a steady place stays. The others live for some seconds and are replaced: three in
// six log out; one is cut in the middle of its commands, and the next one comes as another session
// of the same host; one is cut, and the next one comes with the same ISID; and one is reinstated,
// which is that the next one logs in with the same ISID while it still works. Behind a
// reinstatement nothing of the old session may be executed any more (RFC 7143, 6.3.5), so that its
// blocks are read and written at once; behind the other cuts they are left alone for a while. Not
// thread-safe.
#pragma once

#include <poll.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/bench/soak_session.h"

namespace mariner::bench {

class SoakPlace {
 public:
  using Time = SoakCounts::Time;

  struct Options {
    std::uint32_t number = 0;  // less than 256
    SoakSession::Options session;
    SessionRegion::Options region;
    std::chrono::duration<double> life{4};  // on average, of sessions that go
  };
  enum class Phase {
    kFilling,  // each block is written once
    kMixed,
    kVerifying,  // each block is read once
    kEnding,     // all log out
  };

  SoakPlace(Options options, const StampedContents& contents, SoakCounts& counts);
  ~SoakPlace();
  SoakPlace(const SoakPlace&) = delete;
  SoakPlace& operator=(const SoakPlace&) = delete;

  void enter(Phase phase, Time now);
  // What is due.
  void act(Time now);
  // Every block was written, or read; in kFilling and kVerifying.
  [[nodiscard]] bool done() const;
  // All have logged out; in kEnding.
  [[nodiscard]] bool over() const { return !session_ && !old_; }
  [[nodiscard]] bool silent(Time now, SoakCounts::Clock::duration limit) const;
  // The connections, for poll(), and what it said of them, in their order.
  void add_events(std::vector<pollfd>& to) const;
  void serve(const pollfd* events);
  // Closes the connections; nothing more can be done here.
  void abandon(Time now);
  [[nodiscard]] const SessionRegion& region() const { return region_; }

 private:
  enum class Ending { kLogout, kCut, kCutSame, kReinstatement };

  static std::string name_of(Ending ending);

  void begin(Time now);
  void act_working(Time now);
  void work();
  void end_life(Time now);
  [[nodiscard]] SoakCounts::Clock::duration part_of(std::chrono::duration<double> most,
                                                    double least_part);

  const Options options_;
  SoakCounts& counts_;
  SessionRegion region_;
  std::mt19937_64 random_;
  Phase phase_ = Phase::kFilling;
  std::uint32_t life_ = 0;            // how many were before
  std::uint32_t serial_ = 0;          // in the ISID
  std::string origin_ = "the first";  // of the next session
  bool working_ = false;              // the session was told to
  Time begins_;                       // the next one, if there is none
  Time ends_;
  std::unique_ptr<SoakSession> session_;
  std::unique_ptr<SoakSession> old_;  // until the reinstatement's login is done
};

}  // namespace mariner::bench
