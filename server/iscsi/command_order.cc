#include "server/iscsi/command_order.h"

#include <algorithm>
#include <utility>

namespace mariner::iscsi {

void CommandOrder::park(Parked parked) {
  const auto place = std::find_if(parked_.begin(), parked_.end(), [&](const Parked& other) {
    return serial_before(parked.cmd_sn, other.cmd_sn) ||
           (parked.cmd_sn == other.cmd_sn && !parked.after && other.after);
  });
  parked_.insert(place, std::move(parked));
}

void CommandOrder::run_ready() {
  if (std::exchange(running_, true)) return;  // what runs may bring more of them
  while (!parked_.empty() && serial_before(parked_.front().cmd_sn, window_.exp_cmd_sn())) {
    UniqueFunction<void()> act = std::move(parked_.front().act);
    parked_.erase(parked_.begin());
    act();
  }
  running_ = false;
}

void CommandOrder::drop(std::uint32_t connection) {
  std::erase_if(parked_, [&](const Parked& parked) { return parked.connection == connection; });
}

}  // namespace mariner::iscsi
