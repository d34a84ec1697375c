// What a connection does with whole PDUs.
#include <algorithm>
#include <utility>

#include "proto/check.h"
#include "server/iscsi/connection.h"
#include "server/iscsi/task_management.h"

namespace mariner::iscsi {
namespace {

PayloadSlice slice_of(const std::string& text) {
  if (text.empty()) return {};
  return {.payload = Payload::copy_of(as_byte_span(text)), .offset = 0, .length = text.size()};
}

}  // namespace

bool Connection::on_pdu(bool data_digest_good) {
  const bool goes_on = handle_pdu(data_digest_good);
  // What nobody has taken: it is not kept until the next PDU comes.
  arriving_.segment = {};
  arriving_.kept = {};
  return goes_on;
}

bool Connection::handle_pdu(bool data_digest_good) {
  if (closing()) return false;
  if (!data_digest_good) return handle_damaged();
  if (dropped_) return true;
  switch (static_cast<Opcode>(arriving_.header.opcode)) {
    case Opcode::kScsiCommand: session_->command_arrived(task_); return !closing();
    case Opcode::kDataOut: return handle_data_out();
    case Opcode::kLoginRequest: return handle_login();
    case Opcode::kSnackRequest: return handle_snack();
    default: return handle_in_order();
  }
}

// 7.8: a command that is damaged has not come, and is sent again; data is asked for again.
bool Connection::handle_damaged() {
  ++env_.registry.counters().data_digest_errors;
  send_reject(RejectReason::kDataDigestError);
  if (!unacknowledged_) {
    close(EndReason::kDataDigestError, "in a " + opcode_name(arriving_.header.opcode));
    return false;
  }
  if (dropped_) return true;
  const auto opcode = static_cast<Opcode>(arriving_.header.opcode);
  if (opcode == Opcode::kScsiCommand) session_->discard_command(task_);
  if (opcode == Opcode::kDataOut) {
    session_->data_out_arrived(task_, *parse_data_out(arriving_.bhs), arriving_.header.data_bytes,
                               false);
  }
  return !closing();
}

bool Connection::handle_data_out() {
  session_->data_out_arrived(task_, *parse_data_out(arriving_.bhs), arriving_.header.data_bytes,
                             true);
  return !closing();
}

// Requests with a CmdSN, when their turn comes.
bool Connection::handle_in_order() {
  if (arriving_.header.immediate) {
    handle(arriving_);
    return !closing();
  }
  const std::uint32_t cmd_sn = cmd_sn_of(arriving_.bhs);
  CommandWindow& window = session_->window();
  // Another connection may have brought the same number while this one's data came.
  if (window.look(cmd_sn) == CommandWindow::Verdict::kOutside) return true;
  session_->order().deliver(cmd_sn, attachment_,
                            [this, cmd_sn, request = std::move(arriving_)]() mutable {
                              session_->window().release(cmd_sn);
                              handle(request);
                            });
  return !closing();
}

void Connection::handle(Request& request) {
  switch (static_cast<Opcode>(request.header.opcode)) {
    case Opcode::kNopOut: return handle_nop_out(request);
    case Opcode::kTextRequest: return handle_text(request);
    case Opcode::kTaskManagementRequest: return handle_task_management(request);
    case Opcode::kLogoutRequest: return handle_logout(request);
    default: break;
  }
  CHECK_MSG(false, "on_header() drops every other opcode");
}

bool Connection::handle_login() {
  const LoginRequest request = parse_login_request(arriving_.bhs);
  const Login::Reply reply = login_->step(request, arriving_.segment.bytes());
  if (login_->state() == Login::State::kDone) {
    sender_.set_window(session_->window());
  } else {
    // The numbers of a session that may come to be (11.13.4); ours has not begun to count.
    login_window_ = CommandWindow(request.cmd_sn, env_.options.command_window);
  }
  sender_.send(pack(reply.header), StatSn::kAdvance, slice_of(reply.text));
  switch (login_->state()) {
    case Login::State::kInProgress: return true;
    case Login::State::kDone: enter_full_feature(); return true;
    case Login::State::kFailed: break;
  }
  if (!login_->refusal().address.empty()) {
    ++env_.registry.counters().redirections;
    close(EndReason::kRedirected, login_->refusal().message);
    return false;
  }
  if (login_->refusal().status == LoginStatus::kAuthenticationFailure) {
    env_.registry.throttle().failed(env_.endpoints.address, now_);
  }
  close(EndReason::kLoginFailed, login_->refusal().message);
  return false;
}

std::chrono::nanoseconds Connection::authentication_wait() const {
  return env_.registry.throttle().wait(env_.endpoints.address, now_);
}

std::optional<SessionParameters> Connection::parameters_of(std::uint16_t tsih) const {
  const Session* const session = env_.registry.find(tsih);
  if (session == nullptr || session->identity().discovery) return std::nullopt;
  return session->parameters();
}

std::optional<std::uint16_t> Connection::admit(const LoginIdentity& identity, std::uint16_t tsih,
                                               LoginRefusal& refusal) {
  session_ = tsih == 0
                 ? env_.registry.open(identity, env_.endpoints, env_.executor.wall_time(), refusal)
                 : env_.registry.join(tsih, identity, env_.endpoints, refusal);
  if (!session_) return std::nullopt;
  cid_ = identity.cid;
  parameters_ = identity.parameters;
  if (parameters_.error_recovery_level > 0) unacknowledged_ = std::make_unique<Unacknowledged>();
  attachment_ = session_->attach({.cid = cid_,
                                  .link = this,
                                  .sender = &sender_,
                                  .parameters = &parameters_,
                                  .unacknowledged = unacknowledged_.get()});
  return session_->tsih();
}

void Connection::enter_full_feature() {
  phase_ = Phase::kFullFeature;
  started_ = now_;
  const LoginIdentity& identity = session_->identity();
  one_at_a_time_ = identity.discovery;
  receiver_.set_digests(parameters_.header_digest, parameters_.data_digest);
  sender_.set_digests(parameters_.header_digest, parameters_.data_digest);
  text_.emplace(TextExchange::Environment{.limits = env_.options.negotiation,
                                          .directory = env_.directory,
                                          .initiator = identity.initiator,
                                          .target = identity.target,
                                          .discovery = identity.discovery,
                                          .account = identity.account,
                                          .addresses = env_.portal_addresses});
  login_.reset();
  if (attachment_ == 1) {
    env_.observer.session_opened(session_->info());
  } else {
    env_.observer.connection_joined(session_->info(), env_.endpoints);
  }
}

void Connection::handle_nop_out(Request& request) {
  const auto pdu = parse_nop_out(request.bhs);
  if (!pdu) {
    protocol_error(RejectReason::kInvalidPduField, pdu.error().message);
    return;
  }
  // Without a task tag it answers our ping, or expects no answer (11.18.1).
  if (pdu->itt == kReservedTag) return;
  PayloadSlice echo = std::move(request.segment);
  // What the initiator takes may have become less since this one came.
  if (echo.length > parameters_.send_segment_bytes_max) {
    const auto echoed = echo.bytes().first(parameters_.send_segment_bytes_max);
    echo = {.payload = Payload::copy_of(echoed), .offset = 0, .length = echoed.size()};
  }
  send_status(pack(NopIn{.lun = pdu->lun, .itt = pdu->itt}), std::move(echo));
}

void Connection::handle_text(const Request& request) {
  const auto pdu = parse_text_request(request.bhs);
  if (!pdu) {
    protocol_error(RejectReason::kInvalidPduField, pdu.error().message);
    return;
  }
  const auto reply = text_->step(*pdu, request.segment.bytes(), parameters_);
  if (!reply) {
    protocol_error(RejectReason::kProtocolError, reply.error().message);
    return;
  }
  send_status(pack(reply->header), slice_of(reply->text));
}

void Connection::handle_task_management(const Request& request) {
  const auto pdu = parse_task_management(request.bhs);
  if (!pdu) {
    protocol_error(RejectReason::kInvalidPduField, pdu.error().message);
    return;
  }
  if (!session_->begin_management()) {
    return send_reject(RejectReason::kTooManyImmediateCommands, request.bhs);
  }
  manage_tasks(session_, attachment_, *pdu, env_.registry);
}

void Connection::handle_logout(const Request& request) {
  const auto pdu = parse_logout(request.bhs);
  if (!pdu) {
    protocol_error(RejectReason::kInvalidPduField, pdu.error().message);
    return;
  }
  const auto answer = [&](LogoutResponse::Outcome outcome) {
    send_status(pack(LogoutResponse{.outcome = outcome, .itt = pdu->itt}), {});
  };
  switch (pdu->reason) {
    case LogoutReason::kRemoveConnectionForRecovery:
      return answer(LogoutResponse::Outcome::kRecoveryNotSupported);
    case LogoutReason::kCloseSession:
      answer(LogoutResponse::Outcome::kClosed);
      return close(EndReason::kLogout, {});
    case LogoutReason::kCloseConnection: break;
  }
  SessionLink* const named = session_->find_connection(pdu->cid);
  if (named == nullptr) return answer(LogoutResponse::Outcome::kNoSuchCid);
  answer(LogoutResponse::Outcome::kClosed);
  named->leave(EndReason::kLogout, {});
}

// 11.16.
bool Connection::handle_snack() {
  const auto snack = parse_snack(arriving_.bhs);
  if (!snack) return protocol_error(RejectReason::kInvalidPduField, snack.error().message);
  const bool of_write =
      snack->type == SnackRequest::Type::kDataOrR2t && !unacknowledged_->answered(snack->itt);
  if (of_write && session_->repeat_r2t(attachment_, *snack)) return true;
  const auto refused = unacknowledged_->repeat(*snack, parameters_, sender_);
  if (refused) send_reject(*refused);
  return true;
}

}  // namespace mariner::iscsi
