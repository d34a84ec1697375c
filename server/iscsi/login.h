// The login phase of one connection (RFC 7143, chapters 6 and 11.12-13): Login Requests in, Login
// Responses out, until the connection is in the full feature phase or has failed.
//
// Sans I/O. One Login per connection, on the Executor's thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "server/iscsi/authenticator.h"
#include "server/iscsi/negotiation.h"
#include "server/iscsi/pdu.h"
#include "server/iscsi/target_directory.h"

namespace mariner::iscsi {

// Who has logged in, to what, under which terms.
struct LoginIdentity {
  std::string initiator;
  std::string target;  // empty in a discovery session
  bool discovery = false;
  Isid isid{};
  std::uint16_t portal_group = 1;  // its tag
  std::string account;             // that has logged in by CHAP; empty if none had to
  std::uint16_t cid = 0;
  std::uint32_t cmd_sn = 0;  // the first command's
  SessionParameters parameters;
  std::shared_ptr<scsi::TargetDevice> device;  // null in a discovery session
};

// Why a login failed, for the response and for the log.
struct LoginRefusal {
  LoginStatus status = LoginStatus::kSuccess;
  std::string message;  // the key, what was offered, what was required
  std::string address;  // of a redirection: where to
};

// Gives the session that a login asks for its identity. Implemented by the connection.
class LoginAdmission {
 public:
  virtual ~LoginAdmission() = default;

  // Called once, before the final Login Response; `tsih`: of the session to join, or 0. Returns the
  // session's TSIH, or writes `refusal`.
  [[nodiscard]] virtual std::optional<std::uint16_t> admit(const LoginIdentity& identity,
                                                           std::uint16_t tsih,
                                                           LoginRefusal& refusal) = 0;
  // What was agreed for the session with this TSIH; nothing if there is none.
  [[nodiscard]] virtual std::optional<SessionParameters> parameters_of(
      std::uint16_t tsih) const = 0;
  // How long this initiator's address has to wait before it may try to authenticate again; 0: not
  // at all.
  [[nodiscard]] virtual std::chrono::nanoseconds authentication_wait() const = 0;
};

class Login {
 public:
  enum class State : std::uint8_t { kInProgress, kDone, kFailed };

  struct Reply {
    LoginResponse header;
    std::string text;
  };

  struct Environment {
    const NegotiationLimits& limits;
    std::uint16_t portal_group;  // its tag
    std::string portal;          // where the initiator has reached us
    TargetDirectory& directory;
    LoginAdmission& admission;
  };

  explicit Login(Environment environment) : environment_(std::move(environment)) {}

  // Handles one Login Request; the reply is to be sent in any state. Not after kDone or kFailed.
  [[nodiscard]] Reply step(const LoginRequest& request, std::span<const std::byte> data);

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const LoginIdentity& identity() const { return identity_; }
  [[nodiscard]] const LoginRefusal& refusal() const { return refusal_; }

 private:
  using Pairs = std::span<const TextPair>;

  // Each returns false after having set refusal_.
  bool begin(const LoginRequest& request);
  bool check_stages(const LoginRequest& request);
  bool check_continuity(const LoginRequest& request);
  bool handle_text(const LoginRequest& request, Pairs pairs, TextWriter& answers);
  bool identify(Pairs pairs, TextWriter& answers);
  bool take_identity_key(const TextPair& pair);
  bool find_target();
  bool check_redirection();
  bool choose_authenticator();
  bool negotiate_operational(Pairs pairs, TextWriter& answers);
  bool transit(const LoginRequest& request, Reply& reply);
  bool refuse(LoginStatus status, std::string message);

  Reply failure(const LoginRequest& request);

  Environment environment_;
  std::unique_ptr<Authenticator> authenticator_;  // null before it is known who comes
  State state_ = State::kInProgress;
  bool started_ = false;
  bool identified_ = false;
  bool declared_ = false;  // our own parameters
  std::uint8_t stage_ = 0;
  std::uint16_t tsih_ = 0;
  TextCollector collector_;
  LoginIdentity identity_;
  LoginRefusal refusal_;
};

}  // namespace mariner::iscsi
