// Watches whether the log is large enough for the windows that were asked for, and says so in time:
// once when it is foreseen that one will be short, and again when that comes closer.
//
// Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "proto/executor.h"
#include "proto/units.h"
#include "server/node/log.h"
#include "server/node/log_stack.h"
#include "server/node/window_forecast.h"

namespace mariner::node {

class WindowWatch {
 public:
  // Of the log that they share.
  struct Space {
    std::uint64_t used_bytes = 0;
    std::uint64_t room_bytes = 0;     // that can be used before writes wait
    std::uint64_t written_bytes = 0;  // to it, ever since the start
  };
  [[nodiscard]] static Space space_of(const LogStack& log);
  struct Volume {
    VolumeId id;
    std::string name;
    std::chrono::seconds window{0};
    VersionTime oldest;  // that can be opened
  };

  // Both outlive it.
  WindowWatch(Executor& executor, Log& log) : executor_(executor), log_(log) {}

  // Looks at the log, and at all volumes that it is of; now and then.
  void look(const Space& space, const std::vector<Volume>& volumes);
  // Nothing: no such volume, or the rate is not known yet.
  [[nodiscard]] std::optional<WindowForecast::Outlook> outlook(VolumeId volume) const;
  // What it knows of the log.
  [[nodiscard]] const WindowForecast& forecast() const { return forecast_; }

 private:
  void tell(const Volume& volume, const WindowForecast::Outlook& outlook);

  Executor& executor_;
  Log& log_;
  WindowForecast forecast_;
  bool begun_ = false;
  std::map<VolumeId, WindowForecast::Outlook> outlooks_;
  // How close it was when it was last told of.
  std::map<VolumeId, std::chrono::seconds> told_;
};

}  // namespace mariner::node
