#include "server/iscsi/login.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "proto/check.h"
#include "proto/iscsi_name.h"

namespace mariner::iscsi {
namespace {

constexpr std::size_t kResponseTextBytesMax = 8192;  // before MaxRecvDataSegmentLength is known
constexpr std::string_view kDeclarations[] = {"InitiatorName", "TargetName", "SessionType"};

constexpr auto kSecurity = static_cast<std::uint8_t>(Stage::kSecurity);
constexpr auto kOperational = static_cast<std::uint8_t>(Stage::kOperational);
constexpr auto kFullFeature = static_cast<std::uint8_t>(Stage::kFullFeature);

bool is_declaration(std::string_view key) {
  return std::find(std::begin(kDeclarations), std::end(kDeclarations), key) !=
         std::end(kDeclarations);
}

LoginStatus status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound: return LoginStatus::kNotFound;
    case ErrorCode::kInvalidArgument: return LoginStatus::kAuthorizationFailure;
    case ErrorCode::kUnavailable: return LoginStatus::kServiceUnavailable;
    default: return LoginStatus::kTargetError;
  }
}

}  // namespace

Login::Reply Login::step(const LoginRequest& request, std::span<const std::byte> data) {
  CHECK(state_ == State::kInProgress);
  if (!(started_ ? check_continuity(request) : begin(request))) return failure(request);
  if (!check_stages(request)) return failure(request);

  Reply reply{
      .header = {.current_stage = stage_, .isid = request.isid, .tsih = 0, .itt = request.itt}};
  const auto collected = collector_.append(data);
  if (!collected) {
    refuse(LoginStatus::kInitiatorError, collected.error().message);
    return failure(request);
  }
  if (request.continues) return reply;

  const std::string text = collector_.take();
  const auto pairs = parse_text(text);
  if (!pairs) {
    refuse(LoginStatus::kInitiatorError, pairs.error().message);
    return failure(request);
  }
  TextWriter answers;
  if (!handle_text(request, *pairs, answers)) return failure(request);
  // Authentication that takes another step keeps the login in its stage (RFC 7143 6.3.1).
  const bool may_leave = stage_ != kSecurity || authenticator_->satisfied();
  if (request.transit && may_leave && !transit(request, reply)) return failure(request);
  reply.text = answers.take();
  return reply;
}

bool Login::begin(const LoginRequest& request) {
  started_ = true;
  identity_.isid = request.isid;
  identity_.portal_group = environment_.portal_group;
  identity_.cid = request.cid;
  identity_.cmd_sn = request.cmd_sn;
  tsih_ = request.tsih;
  stage_ = request.current_stage;
  if (request.version_min != 0) {
    return refuse(LoginStatus::kUnsupportedVersion,
                  "Version-min: offered " + std::to_string(request.version_min) + ", required 0");
  }
  if (tsih_ != 0) {
    const auto session = environment_.admission.parameters_of(tsih_);
    if (!session) {
      return refuse(LoginStatus::kSessionDoesNotExist,
                    "TSIH " + std::to_string(tsih_) + " names no session");
    }
    identity_.parameters = parameters_of_joining(*session);
  }
  return true;
}

bool Login::check_continuity(const LoginRequest& request) {
  if (request.isid == identity_.isid && request.cid == identity_.cid && request.tsih == tsih_) {
    return true;
  }
  return refuse(LoginStatus::kInvalidDuringLogin, "ISID, CID or TSIH changed during the login");
}

bool Login::check_stages(const LoginRequest& request) {
  const auto stage_error = [&](std::string_view what) {
    return refuse(LoginStatus::kInitiatorError,
                  std::string(what) + " (CSG " + std::to_string(request.current_stage) + ", NSG " +
                      std::to_string(request.next_stage) + ")");
  };
  if (request.current_stage != stage_) return stage_error("the stage changed without transition");
  if (stage_ != kSecurity && stage_ != kOperational) return stage_error("no login stage");
  if (!request.transit) return true;
  if (request.continues) return stage_error("both T and C are set");
  if (request.next_stage <= stage_ || request.next_stage == 2) {
    return stage_error("transition to no later stage");
  }
  return true;
}

bool Login::handle_text(const LoginRequest& request, Pairs pairs, TextWriter& answers) {
  if (!identified_ && !identify(pairs, answers)) return false;
  const auto authenticated = authenticator_->step(pairs, answers);
  if (!authenticated) {
    return refuse(LoginStatus::kAuthenticationFailure, authenticated.error().message);
  }
  if (stage_ != kSecurity && !authenticator_->satisfied()) {
    return refuse(LoginStatus::kAuthenticationFailure,
                  "AuthMethod: not offered, required CHAP: the login skipped the security stage");
  }
  if (!negotiate_operational(pairs, answers)) return false;
  const bool last = request.transit && request.next_stage == kFullFeature;
  if (!declared_ && (stage_ == kOperational || last)) {
    declared_ = true;
    const std::uint32_t bytes = environment_.limits.receive_segment_bytes_max;
    answers.add("MaxRecvDataSegmentLength", bytes);
    identity_.parameters.receive_segment_bytes_max = bytes;
  }
  if (answers.text().size() > kResponseTextBytesMax) {
    return refuse(LoginStatus::kInitiatorError, "too many keys to answer");
  }
  return true;
}

bool Login::identify(Pairs pairs, TextWriter& answers) {
  for (const TextPair& pair : pairs) {
    if (is_declaration(pair.key) && !take_identity_key(pair)) return false;
  }
  if (identity_.initiator.empty()) {
    return refuse(LoginStatus::kMissingParameter, "InitiatorName: not offered, required");
  }
  identified_ = true;
  if (identity_.discovery) {
    identity_.target.clear();
    return choose_authenticator();
  }
  if (identity_.target.empty()) {
    return refuse(LoginStatus::kMissingParameter, "TargetName: not offered, required");
  }
  if (!find_target() || !check_redirection() || !choose_authenticator()) return false;
  answers.add("TargetPortalGroupTag", environment_.portal_group);
  return true;
}

bool Login::take_identity_key(const TextPair& pair) {
  if (pair.key == "SessionType") {
    identity_.discovery = pair.value == "Discovery";
    if (identity_.discovery || pair.value == "Normal") return true;
    return refuse(LoginStatus::kSessionTypeNotSupported,
                  "SessionType: neither Normal nor Discovery was offered");
  }
  auto name = normalized_iscsi_name(pair.value);
  if (!name) {
    return refuse(LoginStatus::kInitiatorError, std::string(pair.key) + ": no iSCSI name");
  }
  (pair.key == "InitiatorName" ? identity_.initiator : identity_.target) = std::move(*name);
  return true;
}

bool Login::find_target() {
  auto device = environment_.directory.open(identity_.target, identity_.initiator);
  if (!device) {
    return refuse(status_of(device.error().code),
                  "TargetName: offered " + identity_.target + ": " + device.error().message);
  }
  identity_.device = std::move(*device);
  return true;
}

// Before authentication, which the initiator then does where it is sent (RFC 7143 11.13.5).
bool Login::check_redirection() {
  auto elsewhere = environment_.directory.redirection(identity_.target, environment_.portal);
  if (!elsewhere || elsewhere->address == environment_.portal) return true;
  refusal_ = {.status = elsewhere->permanent ? LoginStatus::kMovedPermanently
                                             : LoginStatus::kMovedTemporarily,
              .message = "to " + elsewhere->address,
              .address = elsewhere->address};
  return false;
}

bool Login::choose_authenticator() {
  auto accounts = environment_.directory.accounts(identity_.target, identity_.initiator);
  if (!accounts) {
    return refuse(status_of(accounts.error().code), "CHAP: " + accounts.error().message);
  }
  if (accounts->empty()) {
    authenticator_ = std::make_unique<NoAuthentication>();
    return true;
  }
  if (const auto wait = environment_.admission.authentication_wait(); wait > wait.zero()) {
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
    return refuse(LoginStatus::kServiceUnavailable,
                  "CHAP: too many logins from this address failed; it may try again in " +
                      std::to_string(seconds) + " s");
  }
  authenticator_ = std::make_unique<ChapAuthenticator>(*std::move(accounts));
  return true;
}

bool Login::negotiate_operational(Pairs pairs, TextWriter& answers) {
  std::vector<TextPair> operational;
  for (const TextPair& pair : pairs) {
    if (!is_declaration(pair.key) && !authenticator_->handles(pair.key)) {
      operational.push_back(pair);
    }
  }
  const auto phase =
      identity_.discovery ? NegotiationPhase::kDiscoveryLogin : NegotiationPhase::kNormalLogin;
  const auto done =
      negotiate(operational, phase, environment_.limits, identity_.parameters, answers);
  return done ? true : refuse(LoginStatus::kInitiatorError, done.error().message);
}

bool Login::transit(const LoginRequest& request, Reply& reply) {
  reply.header.transit = true;
  reply.header.next_stage = request.next_stage;
  if (request.next_stage != kFullFeature) {
    stage_ = request.next_stage;
    return true;
  }
  identity_.account = authenticator_->account();
  const auto tsih = environment_.admission.admit(identity_, tsih_, refusal_);
  if (!tsih) return false;
  reply.header.tsih = *tsih;
  state_ = State::kDone;
  return true;
}

bool Login::refuse(LoginStatus status, std::string message) {
  refusal_ = {.status = status, .message = std::move(message), .address = {}};
  return false;
}

Login::Reply Login::failure(const LoginRequest& request) {
  state_ = State::kFailed;
  // Without a portal group tag: 13.8.
  TextWriter text;
  if (!refusal_.address.empty()) text.add("TargetAddress", refusal_.address);
  return {.header = {.current_stage = request.current_stage,
                     .isid = request.isid,
                     .tsih = request.tsih,
                     .itt = request.itt,
                     .status = refusal_.status},
          .text = text.take()};
}

}  // namespace mariner::iscsi
