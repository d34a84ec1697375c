#include "server/node/session_answer.h"

#include <algorithm>

namespace mariner::node {
namespace {

std::string hex(const iscsi::Isid& isid) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const std::uint8_t byte : isid) {
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

}  // namespace

api::Session session_answer(const iscsi::SessionInfo& session, const Executor& executor) {
  api::Session out;
  out.set_id(session.id);
  out.set_initiator(session.initiator);
  out.set_target(session.target);
  out.set_address(session.endpoints.address);
  out.set_portal(session.endpoints.portal);
  out.set_isid(hex(session.isid));
  out.set_tsih(session.tsih);
  out.set_since_ns(session.since.ns);
  out.set_commands(session.commands);
  out.set_bytes_read(session.bytes_read);
  out.set_bytes_written(session.bytes_written);
  out.set_outstanding(session.outstanding);
  out.set_header_digest(session.header_digest);
  out.set_data_digest(session.data_digest);
  out.set_discovery(session.discovery);
  if (session.last_io.count() != 0) {
    const auto ago = executor.monotonic_time() - session.last_io;
    out.set_last_io_ns(executor.wall_time().ns - static_cast<std::uint64_t>(ago.count()));
  }
  return out;
}

bool in_use(const std::vector<iscsi::SessionInfo>& sessions, std::chrono::nanoseconds now) {
  constexpr auto kRecentUse = std::chrono::seconds(10);
  return std::ranges::any_of(sessions, [&](const iscsi::SessionInfo& session) {
    return session.outstanding > 0 ||
           (session.last_io.count() != 0 && now - session.last_io < kRecentUse);
  });
}

}  // namespace mariner::node
