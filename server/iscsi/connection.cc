#include "server/iscsi/connection.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "proto/check.h"
#include "server/iscsi/task_management.h"

namespace mariner::iscsi {
namespace {

constexpr std::uint32_t kLoginSegmentBytesMax = 8192;  // MaxRecvDataSegmentLength's default
// Extended CDBs (260 bytes) and the bidirectional read length; no more is defined (11.2.2).
constexpr std::size_t kAhsBytesAccepted = 512;
constexpr std::uint8_t kExtendedCdbAhs = 0x01;

// CDBs of variable length begin with one of these (SPC-4, 4.3.3 and 4.3.4).
bool variable_length(std::uint8_t operation_code) {
  return operation_code == 0x7e || operation_code == 0x7f;
}

bool has_extended_cdb(std::span<const std::byte> ahs) {
  while (ahs.size() >= 4) {
    if (std::to_integer<std::uint8_t>(ahs[2]) == kExtendedCdbAhs) return true;
    // AHSLength counts what follows its type byte; segments are padded to words.
    const std::size_t length = load_be<std::uint16_t>(ahs.data());
    ahs = ahs.subspan(std::min(ahs.size(), (length + 3 + 3) / 4 * 4));
  }
  return false;
}

std::string excess(std::string_view what, std::uint64_t allowed, std::uint64_t found) {
  return std::string(what) + ": allowed " + std::to_string(allowed) + ", found " +
         std::to_string(found);
}

}  // namespace

Connection::Connection(Environment environment)
    : env_(std::move(environment)),
      login_window_(0, 1),
      sender_(login_window_),
      now_(env_.executor.monotonic_time()),
      started_(now_),
      last_received_(now_) {
  login_ =
      std::make_unique<Login>(Login::Environment{.limits = env_.options.negotiation,
                                                 .portal_group_tag = env_.options.portal_group_tag,
                                                 .directory = env_.directory,
                                                 .admission = *this});
  ++env_.registry.counters().connections;
}

Connection::~Connection() { CHECK_MSG(closing(), "a connection ends before it is destroyed"); }

bool Connection::wants_input() const { return !closing() && !output_full(); }

bool Connection::output_full() const {
  return sender_.queued_pdus() >= env_.options.output_pdus_max ||
         sender_.queued_bytes() >= env_.options.payload_bytes_max;
}

bool Connection::overdue() const {
  return closing() &&
         env_.executor.monotonic_time() - closing_since_ > env_.options.closing_time_max;
}

void Connection::received(std::size_t bytes) {
  if (closing()) return;
  now_ = env_.executor.monotonic_time();
  last_received_ = now_;
  pinged_.reset();
  receiver_.received(bytes, *this);
  if (has_output()) env_.host.output_ready();
}

void Connection::sent(std::size_t bytes) {
  sender_.sent(bytes);
  if (session_) session_->output_drained();
}

void Connection::tick() {
  now_ = env_.executor.monotonic_time();
  const Options& options = env_.options;
  if (phase_ == Phase::kLogin) {
    if (now_ - started_ > options.login_time_max) close(EndReason::kLoginTimeout, {});
    return;
  }
  if (phase_ != Phase::kFullFeature) return;
  if (pinged_ && now_ - *pinged_ > options.ping_time_max) {
    close(EndReason::kSilent,
          "nothing was received for " +
              std::to_string((now_ - last_received_) / std::chrono::seconds(1)) + " s");
  } else if (!pinged_ && now_ - last_received_ > options.ping_interval) {
    ping();
  }
}

void Connection::ping() {
  pinged_ = now_;
  if (++ping_ttt_ == kReservedTag) ping_ttt_ = 1;
  sender_.send(pack(NopIn{.ttt = ping_ttt_}), StatSn::kTell);
  env_.host.output_ready();
}

void Connection::close(EndReason reason, std::string detail) {
  if (closing()) return;
  phase_ = Phase::kClosing;
  closing_since_ = env_.executor.monotonic_time();
  report(reason, std::move(detail));
  if (session_) {
    session_->detach();
    env_.registry.remove(*session_);
    // The session lives on while the device has tasks of it; its window numbers our last words.
  }
  env_.host.output_ready();
}

void Connection::report(EndReason reason, std::string detail) {
  ServerCounters& counters = env_.registry.counters();
  if (reason == EndReason::kProtocolError) ++counters.protocol_errors;
  if (reason == EndReason::kLoginFailed || reason == EndReason::kLoginTimeout) {
    ++counters.login_failures;
  }
  ConnectionEnd end{.reason = reason,
                    .detail = std::move(detail),
                    .endpoints = env_.endpoints,
                    .initiator = {},
                    .target = {},
                    .session_id = 0};
  const LoginIdentity* const identity = session_ ? &session_->identity()
                                        : login_ ? &login_->identity()
                                                 : nullptr;
  if (identity != nullptr) {
    end.initiator = identity->initiator;
    end.target = identity->target;
  }
  if (session_) end.session_id = session_->id();
  env_.observer.connection_ended(end);
}

void Connection::request_logout(std::uint16_t seconds) {
  if (phase_ != Phase::kFullFeature) return;
  sender_.send(
      pack(AsyncMessage{.event = AsyncMessage::Event::kRequestLogout, .parameter3 = seconds}),
      StatSn::kAdvance);
  env_.host.output_ready();
}

void Connection::output_ready() { env_.host.output_ready(); }

// --- Headers ------------------------------------------------------------------------------

// Only a login is expected before the login, and no additional headers beyond our bound ever.
bool Connection::on_basic_header(const Bhs& bhs) {
  if (closing()) return false;
  bhs_ = bhs;
  header_ = parse_common(bhs);
  const std::size_t ahs_bytes = std::to_integer<std::size_t>(bhs[4]) * 4;
  if (ahs_bytes > kAhsBytesAccepted) {
    return protocol_error(RejectReason::kInvalidPduField,
                          excess("TotalAHSLength", kAhsBytesAccepted, ahs_bytes));
  }
  return phase_ != Phase::kLogin || check_login_header();
}

bool Connection::on_header(const Bhs& bhs, std::span<const std::byte> ahs, Placement& place) {
  // A reset, a reinstatement or an administrator may have ended us amid what was received.
  if (closing()) return false;
  bhs_ = bhs;
  header_ = parse_common(bhs);
  segment_ = {};
  task_ = {};
  dropped_ = false;
  if (ahs.size() > kAhsBytesAccepted) {
    return protocol_error(RejectReason::kInvalidPduField,
                          excess("TotalAHSLength", kAhsBytesAccepted, ahs.size()));
  }
  const std::uint32_t bytes_max =
      session_ ? session_->parameters().receive_segment_bytes_max : kLoginSegmentBytesMax;
  if (header_.data_bytes > bytes_max) {
    return protocol_error(RejectReason::kProtocolError,
                          excess("DataSegmentLength", bytes_max, header_.data_bytes));
  }
  const bool good =
      phase_ == Phase::kLogin ? check_login_header() : check_full_feature_header(ahs, place);
  if (!good) return false;
  // What no task takes is kept whole until on_pdu().
  const bool kept = !dropped_ && place.length == 0 && header_.data_bytes > 0 &&
                    header_.opcode != static_cast<std::uint8_t>(Opcode::kScsiCommand) &&
                    header_.opcode != static_cast<std::uint8_t>(Opcode::kDataOut);
  if (kept) {
    segment_ = {.payload = Payload::allocate(header_.data_bytes),
                .offset = 0,
                .length = header_.data_bytes};
    place = {.payload = segment_.payload, .offset = 0, .length = header_.data_bytes};
  }
  return true;
}

bool Connection::check_login_header() {
  if (header_.opcode == static_cast<std::uint8_t>(Opcode::kLoginRequest)) return true;
  return protocol_error(RejectReason::kProtocolError,
                        "expected Login Request, found " + opcode_name(header_.opcode));
}

bool Connection::check_full_feature_header(std::span<const std::byte> ahs, Placement& place) {
  const auto opcode = static_cast<Opcode>(header_.opcode);
  const bool scsi = opcode == Opcode::kScsiCommand || opcode == Opcode::kDataOut ||
                    opcode == Opcode::kTaskManagementRequest;
  if (scsi && session_->device() == nullptr) {
    return protocol_error(RejectReason::kProtocolError,
                          opcode_name(header_.opcode) + " in a discovery session");
  }
  switch (opcode) {
    case Opcode::kScsiCommand: return begin_scsi_command(ahs, place);
    case Opcode::kDataOut: return begin_data_out(place);
    case Opcode::kNopOut:
    case Opcode::kTaskManagementRequest:
    case Opcode::kTextRequest:
    case Opcode::kLogoutRequest: return begin_request();
    case Opcode::kLoginRequest:
      return protocol_error(RejectReason::kProtocolError, "Login Request after the login");
    case Opcode::kSnackRequest:
      // Not at error recovery level 0 (11.16).
      dropped_ = true;
      send_reject(RejectReason::kSnackReject);
      return true;
    default:
      dropped_ = true;
      send_reject(RejectReason::kCommandNotSupported);
      return true;
  }
}

Connection::Verdict Connection::accept_cmd_sn(std::uint32_t cmd_sn, bool immediate) {
  if (immediate) return Verdict::kGo;
  switch (session_->window().accept(cmd_sn)) {
    case CommandWindow::Verdict::kAccepted: return Verdict::kGo;
    case CommandWindow::Verdict::kOutside: dropped_ = true; return Verdict::kIgnore;
    case CommandWindow::Verdict::kGap: break;
  }
  protocol_error(RejectReason::kProtocolError, "CmdSN: expected " +
                                                   std::to_string(session_->window().exp_cmd_sn()) +
                                                   ", found " + std::to_string(cmd_sn));
  return Verdict::kClosing;
}

// NOP-Out, Task Management, Text and Logout: their place in the window now, the rest in on_pdu().
bool Connection::begin_request() {
  // At the same place in all of them; a NOP-Out that answers a ping is always immediate.
  const std::uint32_t cmd_sn = load_be<std::uint32_t>(&bhs_[24]);
  return accept_cmd_sn(cmd_sn, header_.immediate) != Verdict::kClosing;
}

bool Connection::begin_scsi_command(std::span<const std::byte> ahs, Placement& place) {
  const auto command = parse_scsi_command(bhs_);
  if (!command) return protocol_error(RejectReason::kInvalidPduField, command.error().message);
  if (has_extended_cdb(ahs) && !variable_length(command->cdb[0])) {
    return protocol_error(RejectReason::kInvalidPduField,
                          "SCSI Command: extended CDB for a command that has none");
  }
  switch (accept_cmd_sn(command->cmd_sn, command->immediate)) {
    case Verdict::kClosing: return false;
    case Verdict::kIgnore: return true;
    case Verdict::kGo: break;
  }
  return take(session_->begin_command(*command, header_.data_bytes, now_), place);
}

bool Connection::begin_data_out(Placement& place) {
  const auto pdu = parse_data_out(bhs_);
  if (!pdu) return protocol_error(RejectReason::kInvalidPduField, pdu.error().message);
  return take(session_->begin_data_out(*pdu, header_.data_bytes), place);
}

bool Connection::take(const Result<Session::Start>& start, Placement& place) {
  if (!start) return protocol_error(RejectReason::kProtocolError, start.error().message);
  if (start->reject) {
    dropped_ = true;
    send_reject(*start->reject);
    return true;
  }
  task_ = start->task;
  place = start->place;
  return true;
}

void Connection::on_header_digest_error() {
  ++env_.registry.counters().header_digest_errors;
  // Where the next PDU begins cannot be known any more (7.7).
  close(EndReason::kHeaderDigestError, {});
}

// --- Whole PDUs ---------------------------------------------------------------------------

bool Connection::on_pdu(bool data_digest_good) {
  if (closing()) return false;
  if (!data_digest_good) {
    ++env_.registry.counters().data_digest_errors;
    send_reject(RejectReason::kDataDigestError);
    close(EndReason::kDataDigestError, "in a " + opcode_name(header_.opcode));
    return false;
  }
  if (dropped_) return true;
  switch (static_cast<Opcode>(header_.opcode)) {
    case Opcode::kScsiCommand:
    case Opcode::kDataOut: session_->data_arrived(task_); return true;
    case Opcode::kLoginRequest: return handle_login();
    case Opcode::kNopOut: return handle_nop_out();
    case Opcode::kTextRequest: return handle_text();
    case Opcode::kTaskManagementRequest: return handle_task_management();
    case Opcode::kLogoutRequest: return handle_logout();
    default: break;
  }
  CHECK_MSG(false, "on_header() drops every other opcode");
  return false;
}

bool Connection::handle_login() {
  const LoginRequest request = parse_login_request(bhs_);
  const Login::Reply reply = login_->step(request, segment_.bytes());
  if (login_->state() == Login::State::kDone) {
    sender_.set_window(session_->window());
  } else {
    // The numbers of a session that may come to be (11.13.4); ours has not begun to count.
    login_window_ = CommandWindow(request.cmd_sn, env_.options.command_window);
  }
  const auto text = as_byte_span(reply.text);
  sender_.send(pack(reply.header), StatSn::kAdvance,
               {.payload = text.empty() ? Payload{} : Payload::copy_of(text),
                .offset = 0,
                .length = text.size()});
  switch (login_->state()) {
    case Login::State::kInProgress: return true;
    case Login::State::kDone: enter_full_feature(); return true;
    case Login::State::kFailed: break;
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

std::optional<std::uint16_t> Connection::admit(const LoginIdentity& identity,
                                               LoginRefusal& refusal) {
  session_ = env_.registry.open(identity, env_.endpoints, env_.executor.wall_time(), refusal);
  if (!session_) return std::nullopt;
  session_->attach(*this, sender_);
  return session_->tsih();
}

void Connection::enter_full_feature() {
  phase_ = Phase::kFullFeature;
  const LoginIdentity& identity = session_->identity();
  const SessionParameters& parameters = identity.parameters;
  receiver_.set_digests(parameters.header_digest, parameters.data_digest);
  sender_.set_digests(parameters.header_digest, parameters.data_digest);
  text_.emplace(TextExchange::Environment{.limits = env_.options.negotiation,
                                          .directory = env_.directory,
                                          .initiator = identity.initiator,
                                          .target = identity.target,
                                          .discovery = identity.discovery,
                                          .addresses = env_.portal_addresses,
                                          .portal_group_tag = env_.options.portal_group_tag});
  login_.reset();
  env_.observer.session_opened(session_->info());
}

void Connection::release_cmd_sn() {
  if (!header_.immediate) session_->window().release();
}

bool Connection::handle_nop_out() {
  release_cmd_sn();
  const auto pdu = parse_nop_out(bhs_);
  if (!pdu) return protocol_error(RejectReason::kInvalidPduField, pdu.error().message);
  // Without a task tag it answers our ping, or expects no answer (11.18.1).
  if (pdu->itt == kReservedTag) return true;
  const std::size_t echoed =
      std::min<std::size_t>(segment_.length, session_->parameters().send_segment_bytes_max);
  sender_.send(pack(NopIn{.lun = pdu->lun, .itt = pdu->itt}), StatSn::kAdvance,
               {.payload = std::move(segment_.payload), .offset = 0, .length = echoed});
  return true;
}

bool Connection::handle_text() {
  release_cmd_sn();
  const auto pdu = parse_text_request(bhs_);
  if (!pdu) return protocol_error(RejectReason::kInvalidPduField, pdu.error().message);
  const auto reply = text_->step(*pdu, segment_.bytes(), session_->parameters());
  if (!reply) return protocol_error(RejectReason::kProtocolError, reply.error().message);
  const auto text = as_byte_span(reply->text);
  sender_.send(pack(reply->header), StatSn::kAdvance,
               {.payload = text.empty() ? Payload{} : Payload::copy_of(text),
                .offset = 0,
                .length = text.size()});
  return true;
}

bool Connection::handle_task_management() {
  release_cmd_sn();
  const auto pdu = parse_task_management(bhs_);
  if (!pdu) return protocol_error(RejectReason::kInvalidPduField, pdu.error().message);
  if (!session_->begin_management()) {
    send_reject(RejectReason::kTooManyImmediateCommands);
    return true;
  }
  manage_tasks(session_, *pdu, env_.registry);
  return true;
}

bool Connection::handle_logout() {
  release_cmd_sn();
  const auto pdu = parse_logout(bhs_);
  if (!pdu) return protocol_error(RejectReason::kInvalidPduField, pdu.error().message);
  const auto answer = [&](LogoutResponse::Outcome outcome) {
    sender_.send(pack(LogoutResponse{.outcome = outcome, .itt = pdu->itt}), StatSn::kAdvance);
  };
  if (pdu->reason == LogoutReason::kRemoveConnectionForRecovery) {
    answer(LogoutResponse::Outcome::kRecoveryNotSupported);
    return true;
  }
  if (pdu->reason == LogoutReason::kCloseConnection && pdu->cid != session_->identity().cid) {
    answer(LogoutResponse::Outcome::kNoSuchCid);
    return true;
  }
  answer(LogoutResponse::Outcome::kClosed);
  close(EndReason::kLogout, {});
  return false;
}

void Connection::send_reject(RejectReason reason) {
  sender_.send(pack_reject(reason), StatSn::kAdvance,
               {.payload = Payload::copy_of(bhs_), .offset = 0, .length = bhs_.size()});
}

bool Connection::protocol_error(RejectReason reason, std::string detail) {
  // During the login there is nothing to say to one who does not speak iSCSI.
  if (phase_ == Phase::kFullFeature) send_reject(reason);
  close(EndReason::kProtocolError, std::move(detail));
  return false;
}

}  // namespace mariner::iscsi
