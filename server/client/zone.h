// A time zone: how far local clocks are ahead of UTC at a moment.
#pragma once

#include <cstdint>
#include <vector>

namespace mariner {

class Zone {
 public:
  virtual ~Zone() = default;

  // Seconds to add to UTC for local time, at `utc_s` seconds since the epoch.
  [[nodiscard]] virtual std::int64_t offset_s(std::int64_t utc_s) const = 0;

  // Every moment (UTC seconds, rising) at which local clocks show `local_s`, which is a local
  // date and time counted as if it were UTC. None: the clocks skip it. Two: they show it twice.
  [[nodiscard]] std::vector<std::int64_t> moments_of(std::int64_t local_s) const;
};

// The zone of this process: TZ, else /etc/localtime. Any thread.
class SystemZone final : public Zone {
 public:
  [[nodiscard]] std::int64_t offset_s(std::int64_t utc_s) const override;
};

}  // namespace mariner
