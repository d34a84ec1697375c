// The sessions that live, by whom and to what: for login (reinstatement), task management across
// sessions, the administrator's list, and shutdown.
//
// Executor's thread. Shared, because a task management function that a device is still working on
// comes back to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "proto/error.h"
#include "proto/login_throttle.h"
#include "server/iscsi/session.h"

namespace mariner::iscsi {

// Counted since the start, for metrics.
struct ServerCounters {
  std::uint64_t connections = 0;
  std::uint64_t sessions = 0;
  std::uint64_t login_failures = 0;
  std::uint64_t limit_refusals = 0;  // of them, for too many sessions
  std::uint64_t redirections = 0;
  std::uint64_t header_digest_errors = 0;
  std::uint64_t data_digest_errors = 0;
  std::uint64_t protocol_errors = 0;
};

class SessionRegistry : public std::enable_shared_from_this<SessionRegistry> {
 public:
  explicit SessionRegistry(const Options& options)
      : options_(options), budgets_(options.initiator_payload_bytes_max) {}
  SessionRegistry(const SessionRegistry&) = delete;
  SessionRegistry& operator=(const SessionRegistry&) = delete;

  // A session for a login that is about to succeed. A session of the same initiator port to the
  // same target is reinstated: the new one takes its nexus over, the old one is closed
  // (RFC 7143, 6.3.5). Where there are too many discovery sessions, another one ends the oldest.
  // Null when there are too many others, or when draining; then `refusal` says so.
  [[nodiscard]] std::shared_ptr<Session> open(const LoginIdentity& identity,
                                              const Endpoints& endpoints, VersionTime now,
                                              LoginRefusal& refusal);
  // The session that a login with this TSIH adds its connection to (6.3.5 and 6.3.6: a connection
  // with the same CID makes way). Null when it may not; then `refusal` says why.
  [[nodiscard]] std::shared_ptr<Session> join(std::uint16_t tsih, const LoginIdentity& identity,
                                              const Endpoints& endpoints, LoginRefusal& refusal);
  // The session's last connection has ended.
  void remove(const Session& session);

  // Null if there is none.
  [[nodiscard]] const Session* find(std::uint16_t tsih) const;
  [[nodiscard]] bool exists(std::uint16_t tsih) const { return find(tsih) != nullptr; }
  [[nodiscard]] std::size_t size() const { return sessions_.size(); }
  [[nodiscard]] std::vector<SessionInfo> list() const;
  [[nodiscard]] std::vector<SessionInfo> list_of(std::string_view target) const;
  [[nodiscard]] std::size_t count_of(std::string_view target) const;

  // Asks one session to log out, and drops it if it does not; with `at_once`, drops it without
  // asking. Returns what it was. kNotFound.
  [[nodiscard]] Result<SessionInfo> kick(std::uint64_t id, bool at_once);
  // Asks those that `match` (const Session&) picks to log out, and drops those that do not
  // within Options::leave_time_max, for `reason`. Returns how many they are.
  template <typename Match>
  std::size_t ask_to_leave(Match match, EndReason reason) {
    std::size_t asked = 0;
    for (const auto& session : sessions_) {
      if (!match(*session)) continue;
      ++asked;
      session->request_logout(leave_seconds(), reason);
    }
    return asked;
  }
  // Lets commands go on that waited for their initiator's budget. When the events at hand have been
  // handled.
  void feed_starved() { budgets_.feed(); }
  // Closes all sessions of a target that goes away, or all of a device that is reset.
  void close_target(std::string_view target);
  void close_device(const scsi::TargetDevice& device, EndReason reason);

  // Refuses logins from now on and asks every initiator to log out within `seconds`.
  void drain(std::uint16_t seconds);
  [[nodiscard]] bool draining() const { return draining_; }
  void close_all(EndReason reason);

  // Calls `visit(Session&)` for each session of `device`. It must not open or close sessions.
  template <typename Visit>
  void for_each_of(const scsi::TargetDevice& device, Visit visit) {
    for (const auto& session : sessions_) {
      if (session->device() == &device) visit(*session);
    }
  }

  // A number for one task management function, never 0.
  [[nodiscard]] std::uint64_t next_ticket() { return ++last_ticket_; }

  [[nodiscard]] ServerCounters& counters() { return counters_; }
  [[nodiscard]] LoginThrottle& throttle() { return throttle_; }

 private:
  [[nodiscard]] std::uint16_t free_tsih();
  [[nodiscard]] std::string crowded(const LoginIdentity& identity) const;
  void make_room_for_discovery();
  [[nodiscard]] std::uint16_t leave_seconds() const {
    return static_cast<std::uint16_t>(options_.leave_time_max.count());
  }
  template <typename Match>
  void close_if(Match match, EndReason reason);

  const Options options_;
  PayloadBudgets budgets_;
  std::vector<std::shared_ptr<Session>> sessions_;
  bool draining_ = false;
  std::uint64_t last_id_ = 0;
  std::uint64_t last_ticket_ = 0;
  std::uint16_t last_tsih_ = 0;
  ServerCounters counters_;
  LoginThrottle throttle_;
};

}  // namespace mariner::iscsi
