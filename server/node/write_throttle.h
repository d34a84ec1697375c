// Slows hosts' writes so that the log holds every window (`on_full = "throttle"`).
//
// How much the log may be written, window_pace.h says, for the volume whose window asks for most.
// What hosts may write of that is what was measured of late: the log's bytes for one of theirs.
// Volumes share it fairly (fair_share.h): who writes less than an equal share is not slowed, what
// is left goes to the others. So over a window each volume may take as much of the log as any
// other, and more of what others do not use. What a writable view is written counts in what the
// log is written, but views are not slowed: they have a bound of their own.
//
// The rates are found once a second; in between, what may be let in grows with time
// (volume/write_pace.h), through the grant by which volumes are paced anyway. Nothing happens on
// the way of a write. While the log has room for a burst, hosts have no rate at all.
//
// Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/executor.h"
#include "server/node/log.h"
#include "server/node/log_stack.h"
#include "server/node/window_forecast.h"
#include "server/node/window_pace.h"
#include "server/volume/paced.h"
#include "server/volume/write_pace.h"

namespace mariner::node {

class WriteThrottle {
 public:
  static constexpr std::chrono::milliseconds kTurn{10};
  static constexpr std::chrono::milliseconds kIdleTurn{100};  // while no write waits
  // What leaves the window is not given up at once.
  static constexpr std::chrono::seconds kGivenUpWithin{10};

  // Of the log that they share.
  struct Space {
    std::uint64_t room_bytes = 0;     // that what is to be kept may take
    std::uint64_t written_bytes = 0;  // to it, ever since the start
  };
  // So much that tracks can be given up before writes wait.
  [[nodiscard]] static Space space_of(const LogStack& log);
  struct Volume {
    VolumeId id;
    std::chrono::seconds window{0};
    VersionTime oldest;  // that can be opened
    VersionTime newest;  // of its writes
    std::weak_ptr<volume::Paced> host;
  };

  // Both outlive it.
  WriteThrottle(Executor& executor, Log& log) : executor_(executor), log_(log) {}
  ~WriteThrottle() { *alive_ = false; }
  WriteThrottle(const WriteThrottle&) = delete;
  WriteThrottle& operator=(const WriteThrottle&) = delete;

  // Looks at the log, and at all volumes that it is of; about once a second. The forecast has been
  // told of all that was written.
  void look(const WindowForecast& forecast, const Space& space, const std::vector<Volume>& volumes);

  // Nobody is slowed any more; it is not used afterwards.
  void let_go();

  // Bytes a second that hosts may write to the volume; nothing: whatever comes.
  [[nodiscard]] std::optional<double> pace_of(VolumeId volume) const;

 private:
  struct Host {
    std::weak_ptr<volume::Paced> volume;
    WindowPace law;
    volume::WritePace pace;
    std::uint64_t stamped_bytes = 0;  // when it was last looked at
    double demand = 0;                // bytes a second, of late
    std::uint64_t granted_bytes = 0;
    unsigned turns = 0;  // since it was last looked at
    unsigned held = 0;   // of them, those at which writes waited for the pace
  };
  double allowed(const WindowForecast& forecast, const Space& space,
                 const std::vector<Volume>& volumes, const WindowPace::Since& since);
  void measure(double seconds, double log_bytes);
  [[nodiscard]] std::optional<double> level(double bytes_per_second) const;
  void tell(double bytes_per_second);
  void turn_later(std::chrono::nanoseconds delay);
  void turn();

  Executor& executor_;
  Log& log_;
  std::map<VolumeId, Host> hosts_;
  std::optional<std::chrono::nanoseconds> looked_;
  std::uint64_t written_bytes_ = 0;  // then
  double room_bytes_ = 0;
  double log_bytes_ = 0;   // decaying sums: what the log is written
  double host_bytes_ = 0;  // for a byte of hosts' is one by the other
  std::optional<std::chrono::nanoseconds> told_;
  bool timer_set_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::node
