// Text negotiation in the full feature phase (RFC 7143, 11.10-11 and appendix C): SendTargets, and
// the few parameters that may change on a running session. Long answers go out in several Text
// Responses.
//
// One per connection, one exchange at a time. Sans I/O; Executor's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/iscsi/negotiation.h"
#include "server/iscsi/pdu.h"
#include "server/iscsi/target_directory.h"
#include "server/iscsi/text.h"

namespace mariner::iscsi {

class TextExchange {
 public:
  struct Environment {
    const NegotiationLimits& limits;
    TargetDirectory& directory;
    std::string initiator;
    std::string target;  // of a normal session
    bool discovery = false;
    std::string account;                   // that has logged in; empty if none had to
    std::vector<PortalAddress> addresses;  // where the targets can be reached
  };

  struct Reply {
    TextResponse header;
    std::string text;
  };

  explicit TextExchange(Environment environment) : environment_(std::move(environment)) {}

  // Handles one Text Request. May change `parameters`. kProtocol, kLimit: the request breaks the
  // rules; the exchange is over.
  [[nodiscard]] Result<Reply> step(const TextRequest& request, std::span<const std::byte> data,
                                   SessionParameters& parameters);

 private:
  [[nodiscard]] Result<void> answer(std::string_view text, SessionParameters& parameters);
  void send_targets(std::string_view which, TextWriter& answers) const;
  [[nodiscard]] std::vector<std::string> discoverable() const;
  void add_target(std::string_view name, TextWriter& answers) const;
  [[nodiscard]] Reply next_part(const TextRequest& request, std::uint32_t bytes_max);

  Environment environment_;
  TextCollector collector_;
  std::string unsent_;  // the rest of an answer
  std::uint32_t next_ttt_ = 1;
  std::uint32_t ttt_ = kReservedTag;  // of the exchange under way
};

}  // namespace mariner::iscsi
