// Slows hosts' writes as `on_full` says: by what the windows need, or when the log has run out of
// room.
//
// "throttle" has the former (write_throttle.h), "shorten-window" the latter (room_pace.h): with
// "stop-writes" room comes only as the windows move on. Not on a cluster, whose log is on another
// node than the hosts.
//
// Owner's thread only.
#pragma once

#include <memory>
#include <optional>

#include "server/node/config.h"
#include "server/node/log.h"
#include "server/node/log_space.h"
#include "server/node/log_stack.h"
#include "server/node/room_pace.h"
#include "server/node/volume_set.h"
#include "server/node/window_forecast.h"
#include "server/node/write_throttle.h"

namespace mariner::node {

class HostPace {
 public:
  struct Parts {  // all outlive it
    const LogStack& log_stack;
    LogSpace& log_space;
    VolumeSet& volumes;
    Executor& executor;
    Log& log;
  };

  HostPace(Parts parts, OnFull on_full);
  ~HostPace();
  HostPace(const HostPace&) = delete;
  HostPace& operator=(const HostPace&) = delete;

  // From now on. Whoever was slowed is not, but as it says.
  void set_on_full(OnFull on_full);
  // About once a second. The forecast has been told of all that was written.
  void look(const WindowForecast& forecast);
  // Nobody is slowed any more.
  void stop();

  // Bytes a second that hosts may write to the volume for the windows' sake; nothing: whatever
  // comes.
  [[nodiscard]] std::optional<double> pace_of(VolumeId volume) const;
  // Hosts have what is left of the log's room.
  [[nodiscard]] bool short_of_room() const { return room_ != nullptr && room_->slows(); }

 private:
  [[nodiscard]] std::unique_ptr<RoomPace> make_room_pace();
  void let_go();

  const Parts parts_;
  std::unique_ptr<WriteThrottle> throttle_;  // one of the two, or none
  std::unique_ptr<RoomPace> room_;
};

}  // namespace mariner::node
