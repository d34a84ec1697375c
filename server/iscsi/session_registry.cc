#include "server/iscsi/session_registry.h"

#include <algorithm>
#include <utility>

#include "proto/check.h"

namespace mariner::iscsi {
namespace {

bool same_port(const LoginIdentity& a, const LoginIdentity& b) {
  return !a.discovery && !b.discovery && a.isid == b.isid && a.initiator == b.initiator &&
         a.target == b.target;
}

}  // namespace

std::shared_ptr<Session> SessionRegistry::open(const LoginIdentity& identity,
                                               const Endpoints& endpoints, VersionTime now,
                                               LoginRefusal& refusal) {
  if (draining_) {
    refusal = {.status = LoginStatus::kServiceUnavailable, .message = "the server is stopping"};
    return nullptr;
  }
  const auto old = std::find_if(sessions_.begin(), sessions_.end(), [&](const auto& session) {
    return same_port(session->identity(), identity);
  });
  if (old == sessions_.end() && sessions_.size() >= options_.sessions_max) {
    refusal = {.status = LoginStatus::kOutOfResources,
               .message = "there are " + std::to_string(sessions_.size()) + " sessions already"};
    return nullptr;
  }
  auto session = std::make_shared<Session>(Session::Setup{.id = ++last_id_,
                                                          .tsih = free_tsih(),
                                                          .identity = identity,
                                                          .endpoints = endpoints,
                                                          .since = now},
                                           options_);
  if (old != sessions_.end()) {
    SessionLink* const link = (*old)->link();
    CHECK(link != nullptr);
    link->close(EndReason::kReinstated, "by a login from " + endpoints.address);
  }
  sessions_.push_back(session);
  ++counters_.sessions;
  return session;
}

void SessionRegistry::remove(const Session& session) {
  const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                  [&](const auto& s) { return s.get() == &session; });
  CHECK(found != sessions_.end());
  sessions_.erase(found);
}

bool SessionRegistry::exists(std::uint16_t tsih) const {
  return std::any_of(sessions_.begin(), sessions_.end(),
                     [&](const auto& session) { return session->tsih() == tsih; });
}

std::vector<SessionInfo> SessionRegistry::list() const {
  std::vector<SessionInfo> infos;
  infos.reserve(sessions_.size());
  for (const auto& session : sessions_) infos.push_back(session->info());
  return infos;
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
    if (match(*session) && session->link() != nullptr) session->link()->close(reason, {});
  }
}

Result<SessionInfo> SessionRegistry::kick(std::uint64_t id) {
  const auto found = std::find_if(sessions_.begin(), sessions_.end(),
                                  [&](const auto& session) { return session->id() == id; });
  if (found == sessions_.end()) {
    return Error{ErrorCode::kNotFound, "there is no session " + std::to_string(id)};
  }
  SessionInfo info = (*found)->info();
  close_if([&](const Session& session) { return session.id() == id; }, EndReason::kKicked);
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
  for (const auto& session : sessions_) {
    if (session->link() != nullptr) session->link()->request_logout(seconds);
  }
}

std::uint16_t SessionRegistry::free_tsih() {
  CHECK(sessions_.size() < 65535);
  do {
    ++last_tsih_;
  } while (last_tsih_ == 0 || exists(last_tsih_));
  return last_tsih_;
}

}  // namespace mariner::iscsi
