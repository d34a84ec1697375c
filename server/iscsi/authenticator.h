// The authentication of a login's security stage (RFC 7143, chapter 12): one step for each request
// of that stage. A login has an authenticator of its own.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "server/iscsi/text.h"

namespace mariner::iscsi {

class Authenticator {
 public:
  virtual ~Authenticator() = default;

  // Handles those of `pairs` that belong to authentication and writes the answers. kProtocol: the
  // initiator failed (login status 0x0201); the message says what was offered and required.
  [[nodiscard]] virtual Result<void> step(std::span<const TextPair> pairs, TextWriter& answers) = 0;

  // True if `key` is one of those that step() handles.
  [[nodiscard]] virtual bool handles(std::string_view key) const = 0;

  // True when the initiator may leave the security stage, or skip it.
  [[nodiscard]] virtual bool satisfied() const = 0;

  // The name of the account that has logged in; empty if none had to.
  [[nodiscard]] virtual std::string_view account() const { return {}; }
};

// AuthMethod=None: anyone may enter whom the target's access list lets in.
class NoAuthentication final : public Authenticator {
 public:
  [[nodiscard]] Result<void> step(std::span<const TextPair> pairs, TextWriter& answers) override;
  [[nodiscard]] bool handles(std::string_view key) const override { return key == "AuthMethod"; }
  [[nodiscard]] bool satisfied() const override { return true; }
};

}  // namespace mariner::iscsi
