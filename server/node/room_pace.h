// Slows hosts' writes evenly when the log has run out of room, instead of stopping them whenever
// there is none and letting them go whenever some was made.
//
// Room is made in portions: tracks are cleaned several at once, a window is shortened after some
// patience. From the moment at which a write has waited for room until there is enough
// (LogSpace::pressed), hosts get what is left as if it were to last kDrainTime: so they come to
// write at the rate at which room is made, whatever that is, and no portion is gone before the next
// one. Who makes room has to go on meanwhile, though the log is never quite full.
// Nothing is measured for that: less room is a lower rate. Volumes share it fairly (fair_share.h).
//
// Before that, and with a log that never runs out, nobody is slowed and nothing runs. Where
// `on_full` is "throttle", write_throttle.h slows hosts long before it comes to this.
//
// Owner's thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "proto/executor.h"
#include "proto/units.h"
#include "server/node/log_stack.h"
#include "server/volume/paced.h"

namespace mariner::node {

class RoomPace {
 public:
  using Duration = std::chrono::nanoseconds;
  static constexpr Duration kTurn = std::chrono::milliseconds(10);
  static constexpr Duration kDrainTime = std::chrono::milliseconds(500);
  static constexpr Duration kTurnMax = std::chrono::milliseconds(100);  // a late turn gives no more
  // One write of a volume is let in after so long, whatever there is: what the log does with it,
  // the log decides.
  static constexpr Duration kHeldMax = std::chrono::seconds(1);

  // Bytes that hosts' writes may take of the log that they share, now; nothing: nobody is to be
  // slowed any more.
  using Room = std::optional<std::uint64_t>;
  [[nodiscard]] static std::uint64_t room_of(const LogStack& log);
  struct Host {
    VolumeId id;
    std::weak_ptr<volume::Paced> volume;
  };

  // `executor` outlives it.
  RoomPace(Executor& executor, UniqueFunction<Room()> room,
           UniqueFunction<std::vector<Host>()> hosts)
      : executor_(executor), room_(std::move(room)), hosts_(std::move(hosts)) {}
  ~RoomPace() { *alive_ = false; }
  RoomPace(const RoomPace&) = delete;
  RoomPace& operator=(const RoomPace&) = delete;

  // A write waits for room. May be called for each.
  void ran_out();
  // Nobody is slowed any more, until the next one waits.
  void let_go();
  [[nodiscard]] bool slows() const { return active_; }

 private:
  struct Paced {
    std::weak_ptr<volume::Paced> volume;
    std::uint64_t stamped_bytes = 0;  // at the last turn
    double granted_bytes = 0;
    Duration moved{0};  // when one was last let in, or none was held
  };
  void turn_later();
  void turn();
  void meet_hosts();
  void share(double bytes);

  Executor& executor_;
  UniqueFunction<Room()> room_;
  UniqueFunction<std::vector<Host>()> hosts_;
  std::map<VolumeId, Paced> paced_;
  bool active_ = false;
  bool timer_set_ = false;
  Duration turned_{0};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace mariner::node
