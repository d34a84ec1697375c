// The self-tests of a logical unit (SPC-4 5.15): they read places that are spread evenly over the
// medium, all the way through the layer, and then flush it.
//
// One test at a time, one operation of it at a time, each bounded in number. Owner's thread only.
// What is under way keeps the object alive.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "server/scsi/sense.h"
#include "server/volume/layer.h"

namespace mariner::scsi {

// A clock that never steps back.
using MonotonicClock = std::function<std::chrono::nanoseconds()>;

class SelfTest : public std::enable_shared_from_this<SelfTest> {
 public:
  // The SELF-TEST CODE of SEND DIAGNOSTIC (SPC-4 6.42).
  enum class Kind : std::uint8_t {
    kDefault = 0,  // in the foreground, as short as can be; not logged: the log page has no code
                   // for it, and readers of that page take its zeros for the end
    kBackgroundShort = 1,
    kBackgroundExtended = 2,
    kForegroundShort = 5,
    kForegroundExtended = 6,
  };
  // SPC-4 table 413.
  enum class Outcome : std::uint8_t {
    kPassed = 0x0,
    kAbortedByCommand = 0x1,
    kAbortedOtherwise = 0x2,
    kNotCompleted = 0x3,  // the layer was too busy, or not this node's any more
    kReadingFailed = 0x5,
    kFlushingFailed = 0x6,
    kRunning = 0xF,
  };
  struct Report {
    Kind kind = Kind::kDefault;
    Outcome outcome = Outcome::kRunning;
    std::uint16_t hours = 0;  // since the unit was made: what came before is not known
    std::uint64_t first_failure = std::numeric_limits<std::uint64_t>::max();  // an LBA; or none
    Sense sense;
    std::optional<Error> lost;  // not completed because the unit is not to be had here
  };
  struct Options {
    std::shared_ptr<volume::Layer> layer;
    std::uint32_t block_bytes = 512;
    MonotonicClock clock;  // null: no hours are counted
    bool shared = false;   // other nodes serve the unit, too: that it is not to be had here
                           // (is_loss_of_access) is no failure of it
  };
  using Ended = UniqueFunction<void(const Report&)>;

  static constexpr std::size_t kReportsMax = 20;
  static constexpr std::uint64_t kShortPlaces = 4;
  static constexpr std::uint64_t kExtendedPlaces = 1024;
  // What the initiator is told that an extended test takes: more than 1,025 operations of 20 ms.
  static constexpr std::uint16_t kExtendedSeconds = 30;

  explicit SelfTest(Options options);

  // Requires that none is running. `ended` may run before this returns.
  void begin(Kind kind, Ended ended);
  // Ends the one that is running with this outcome; what its last operation returns is dropped.
  void abort(Outcome outcome);

  [[nodiscard]] bool running() const { return run_.has_value(); }
  [[nodiscard]] bool in_foreground() const;
  // How much is done, of 65,536; requires that one is running.
  [[nodiscard]] std::uint16_t progress() const;
  // The youngest first, one that is running among them.
  [[nodiscard]] std::deque<Report> reports() const;
  // Forgets the reports of those that have ended.
  void clear() { reports_.clear(); }

 private:
  struct Run {
    Kind kind;
    std::uint64_t number;  // tells its completions from those of an aborted one
    std::uint64_t places;
    std::uint64_t done = 0;  // places that were read
    bool waiting = false;
    Ended ended;
  };

  void go_on();
  void next();
  void completed(std::uint64_t number, const std::optional<Error>& error);
  void end(Report report);
  [[nodiscard]] ByteRange place() const;

  const std::shared_ptr<volume::Layer> layer_;
  const std::uint32_t block_bytes_;
  const MonotonicClock clock_;
  const bool shared_;
  const std::chrono::nanoseconds made_;
  std::optional<Run> run_;
  std::uint64_t runs_ = 0;
  bool going_on_ = false;
  std::deque<Report> reports_;
};

}  // namespace mariner::scsi
