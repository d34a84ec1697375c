#include "server/iscsi/session_registry.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::iscsi {
namespace {

// One TSIH is none, and one is free, so that a session may be reinstated.
constexpr std::size_t kSessionsMax = 65534;

bool is_discovery(const std::shared_ptr<Session>& session) { return session->identity().discovery; }

bool same_port(const LoginIdentity& a, const LoginIdentity& b) {
  return !a.discovery && !b.discovery && a.isid == b.isid && a.initiator == b.initiator &&
         a.target == b.target && a.portal_group == b.portal_group;
}

}  // namespace

std::shared_ptr<Session> SessionRegistry::open(const LoginIdentity& identity,
                                               const Endpoints& endpoints, VersionTime now,
                                               LoginRefusal& refusal) {
  if (draining_) {
    refusal = {.status = LoginStatus::kServiceUnavailable,
               .message = "the server is stopping",
               .address = {}};
    return nullptr;
  }
  if (identity.discovery) make_room_for_discovery();
  const auto old = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& session) {
    return same_port(session->identity(), identity);
  });
  if (old == sessions_.end()) {
    if (std::string why = crowded(identity); !why.empty()) {
      ++counters_.limit_refusals;
      refusal = {.status = LoginStatus::kOutOfResources, .message = std::move(why), .address = {}};
      return nullptr;
    }
  }
  // Who only discovers takes no memory from the initiator whose name he gives: all of them have one
  // budget of their own, under a name that no initiator has.
  const std::string payer = identity.discovery ? std::string() : identity.initiator;
  auto session = std::make_shared<Session>(Session::Setup{.id = ++last_id_,
                                                          .tsih = free_tsih(),
                                                          .identity = identity,
                                                          .endpoints = endpoints,
                                                          .since = now,
                                                          .budget = budgets_.of(payer)},
                                           options_);
  if (old != sessions_.end()) {
    const std::shared_ptr<Session> reinstated = *old;  // closing it takes it off the list
    reinstated->close(EndReason::kReinstated, "by a login from " + endpoints.address);
  }
  session->wait_for_earlier();
  sessions_.push_back(session);
  ++counters_.sessions;
  return session;
}

std::shared_ptr<Session> SessionRegistry::join(std::uint16_t tsih, const LoginIdentity& identity,
                                               const Endpoints& endpoints, LoginRefusal& refusal) {
  const auto refuse = [&](LoginStatus status, std::string message) {
    refusal = {.status = status, .message = std::move(message), .address = {}};
    return nullptr;
  };
  const std::string name = "TSIH " + std::to_string(tsih);
  if (draining_) return refuse(LoginStatus::kServiceUnavailable, "the server is stopping");
  const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                  [&](const auto& session) { return session->tsih() == tsih; });
  if (found == sessions_.end() || !same_port((*found)->identity(), identity)) {
    return refuse(LoginStatus::kSessionDoesNotExist,
                  name + " names no session of this initiator, ISID and target");
  }
  const std::shared_ptr<Session> session = *found;
  if (!same_session(session->parameters(), identity.parameters)) {
    return refuse(LoginStatus::kInitiatorError,
                  name +
                      ": what was negotiated for the session cannot be changed by another of "
                      "its connections");
  }
  SessionLink* const old = session->find_connection(identity.cid);
  if (old == nullptr && session->connections() >= session->parameters().connections_max) {
    return refuse(LoginStatus::kTooManyConnections, name + " has its " +
                                                        std::to_string(session->connections()) +
                                                        " connections (MaxConnections) already");
  }
  if (old != nullptr) {
    old->leave(EndReason::kReinstated, "by a login from " + endpoints.address);
    // If it was the only one, the session goes on nevertheless: the new one is attached next.
    if (!exists(tsih)) sessions_.push_back(session);
  }
  return session;
}

// Which limit another session of this initiator would break; empty if none.
std::string SessionRegistry::crowded(const LoginIdentity& identity) const {
  const auto limit = [](std::string_view name, std::size_t value, std::string_view what) {
    return std::string(name) + ": allowed " + std::to_string(value) + ", which " +
           std::string(what) + " already";
  };
  if (sessions_.size() >= kSessionsMax) return limit("sessions", kSessionsMax, "there are");
  if (identity.discovery) return {};
  const auto count = [&](auto match) {
    return static_cast<std::size_t>(std::count_if(
        sessions_.begin(), sessions_.end(),
        [&](const auto& session) { return !is_discovery(session) && match(session->identity()); }));
  };
  if (count([](const LoginIdentity&) { return true; }) >= options_.sessions_max) {
    return limit("sessions_max", options_.sessions_max, "there are");
  }
  const auto own = [&](const LoginIdentity& other) {
    return other.initiator == identity.initiator;
  };
  if (count(own) >= options_.initiator_sessions_max) {
    return limit("sessions_per_initiator_max", options_.initiator_sessions_max,
                 "this initiator has");
  }
  return {};
}

// Who has had his session for longest has most likely had his answer.
void SessionRegistry::make_room_for_discovery() {
  const auto count = std::count_if(sessions_.begin(), sessions_.end(), is_discovery);
  if (static_cast<std::size_t>(count) < options_.discovery_sessions_max) return;
  const auto oldest = std::find_if(sessions_.begin(), sessions_.end(), is_discovery);
  if (oldest == sessions_.end()) return;
  const std::shared_ptr<Session> session = *oldest;  // closing it takes it off the list
  session->close(EndReason::kCrowdedOut, std::to_string(count) + " discovery sessions");
}

void SessionRegistry::remove(const Session& session) {
  const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                  [&](const auto& s) { return s.get() == &session; });
  CHECK(found != sessions_.end());
  sessions_.erase(found);
}

const Session* SessionRegistry::find(std::uint16_t tsih) const {
  for (const auto& session : sessions_) {
    if (session->tsih() == tsih) return session.get();
  }
  return nullptr;
}

std::vector<SessionInfo> SessionRegistry::list() const {
  std::vector<SessionInfo> infos;
  infos.reserve(sessions_.size());
  for (const auto& session : sessions_) infos.push_back(session->info());
  return infos;
}

std::vector<SessionInfo> SessionRegistry::list_of(std::string_view target) const {
  std::vector<SessionInfo> out = list();
  std::erase_if(out, [&](const SessionInfo& session) {
    return session.discovery || session.target != target;
  });
  return out;
}

std::size_t SessionRegistry::count_of(std::string_view target) const {
  return static_cast<std::size_t>(
      std::count_if(sessions_.begin(), sessions_.end(),
                    [&](const auto& session) { return session->identity().target == target; }));
}

// Closing removes the session from the list: from a copy, then.
template <typename Match>
void SessionRegistry::close_if(Match match, EndReason reason) {
  const auto sessions = sessions_;
  for (const auto& session : sessions) {
    if (match(*session)) session->close(reason, {});
  }
}

Result<SessionInfo> SessionRegistry::kick(std::uint64_t id, bool at_once) {
  const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                  [&](const auto& session) { return session->id() == id; });
  if (found == sessions_.end()) {
    return Error{ErrorCode::kNotFound, "there is no session " + std::to_string(id)};
  }
  SessionInfo info = (*found)->info();
  const std::shared_ptr<Session> session = *found;  // closing it takes it off the list
  if (at_once) {
    session->close(EndReason::kKicked, {});
  } else {
    session->request_logout(leave_seconds(), EndReason::kKicked);
  }
  return info;
}

void SessionRegistry::close_target(std::string_view target) {
  close_if([&](const Session& session) { return session.identity().target == target; },
           EndReason::kTargetClosed);
}

void SessionRegistry::close_device(const scsi::TargetDevice& device, EndReason reason) {
  close_if([&](const Session& session) { return session.device() == &device; }, reason);
}

void SessionRegistry::close_all(EndReason reason) {
  close_if([](const Session&) { return true; }, reason);
}

void SessionRegistry::drain(std::uint16_t seconds) {
  draining_ = true;
  for (const auto& session : sessions_) session->request_logout(seconds, EndReason::kShutdown);
}

std::uint16_t SessionRegistry::free_tsih() {
  CHECK(sessions_.size() < 65535);
  do {
    ++last_tsih_;
  } while (last_tsih_ == 0 || exists(last_tsih_));
  return last_tsih_;
}

}  // namespace mariner::iscsi
