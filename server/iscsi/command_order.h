// Hands over a session's requests in the order of their CmdSN, whichever connection brings them and
// when (RFC 7143, 4.2.2.1): one that is early waits for those before it.
//
// Bounded by the window. Executor's thread.
#pragma once

#include <cstdint>
#include <vector>

#include "proto/unique_function.h"
#include "server/iscsi/command_window.h"

namespace mariner::iscsi {

class CommandOrder {
 public:
  // No connection's number: what has it is not dropped with one.
  static constexpr std::uint32_t kNoConnection = 0;

  CommandOrder(std::uint32_t first_cmd_sn, std::uint32_t width) : window_(first_cmd_sn, width) {}

  [[nodiscard]] CommandWindow& window() { return window_; }
  [[nodiscard]] const CommandWindow& window() const { return window_; }

  // A numbered request has come, on the connection of this number, and is received from now on;
  // requires that the window does not say kOutside. `act` runs when its turn comes: mostly now.
  template <typename Act>
  void deliver(std::uint32_t cmd_sn, std::uint32_t connection, Act act) {
    const bool next = cmd_sn == window_.exp_cmd_sn();
    window_.receive(cmd_sn);
    if (!next) return park({cmd_sn, false, connection, std::move(act)});
    act();
    if (!parked_.empty()) run_ready();
  }

  // Runs `act` when every number before `cmd_sn` has come: mostly now.
  template <typename Act>
  void when_received(std::uint32_t cmd_sn, std::uint32_t connection, Act act) {
    const std::uint32_t exp = window_.exp_cmd_sn();
    // Beyond the window nothing may come, so there is nothing to wait for.
    const bool waits =
        serial_before(exp, cmd_sn) && !serial_before(window_.max_cmd_sn() + 1, cmd_sn);
    if (!waits) return act();
    park({cmd_sn - 1, true, connection, std::move(act)});
  }

  // Numbers were plugged: what waited for them goes on.
  void run_ready();

  // What has come on this connection and waits never runs.
  void drop(std::uint32_t connection);

 private:
  struct Parked {
    std::uint32_t cmd_sn;
    bool after;  // waits for it, and is not it
    std::uint32_t connection;
    UniqueFunction<void()> act;
  };
  void park(Parked parked);

  CommandWindow window_;
  std::vector<Parked> parked_;  // by number; of the same one itself first
  bool running_ = false;
};

}  // namespace mariner::iscsi
