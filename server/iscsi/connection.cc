#include "server/iscsi/connection.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "proto/check.h"

namespace mariner::iscsi {
namespace {

constexpr std::uint32_t kLoginSegmentBytesMax = 8192;  // MaxRecvDataSegmentLength's default
// Extended CDBs (260 bytes) and the bidirectional read length; no more is defined (11.2.2).
constexpr std::size_t kAhsBytesAccepted = 512;
constexpr std::uint8_t kExtendedCdbAhs = 0x01;

// Ends that come from this side: the initiator is told of them.
bool announced(EndReason reason) {
  switch (reason) {
    case EndReason::kKicked:
    case EndReason::kRedirected:
    case EndReason::kForbidden:
    case EndReason::kTargetClosed:
    case EndReason::kShutdown: return true;
    default: return false;
  }
}

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
  login_ = std::make_unique<Login>(Login::Environment{.limits = env_.options.negotiation,
                                                      .portal_group = env_.portal_group,
                                                      .portal = env_.endpoints.portal,
                                                      .directory = env_.directory,
                                                      .admission = *this});
  ++env_.registry.counters().connections;
}

Connection::~Connection() { CHECK_MSG(closing(), "a connection ends before it is destroyed"); }

bool Connection::wants_input() const { return !closing() && !output_full(); }

bool Connection::output_full() const {
  if (one_at_a_time_) return has_output();
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
  traffic_.bytes += bytes;
  receiver_.received(bytes, *this);
  if (has_output()) env_.host->output_ready();
}

void Connection::sent(std::size_t bytes) {
  const std::size_t queued = sender_.queued_pdus();
  sender_.sent(bytes);
  traffic_.bytes += bytes;
  traffic_.pdus += queued - sender_.queued_pdus();
  if (session_) session_->output_drained();
  if (closing() || !receiver_.holds_back() || output_full()) return;
  now_ = env_.executor.monotonic_time();
  receiver_.go_on(*this);
}

void Connection::tick() {
  now_ = env_.executor.monotonic_time();
  const Options& options = env_.options;
  if (phase_ == Phase::kLogin) {
    if (now_ - started_ > options.login_time_max) close(EndReason::kLoginTimeout, {});
    return;
  }
  if (phase_ != Phase::kFullFeature) return;
  if (session_->identity().discovery && now_ - started_ > options.discovery_time_max) {
    return close(EndReason::kDiscoveryOver, {});
  }
  if (leaving_ && now_ >= leaving_->until) return close(leaving_->reason, "it did not log out");
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
  env_.host->output_ready();
}

void Connection::close(EndReason reason, std::string detail) {
  if (closing()) return;
  const std::shared_ptr<Session> session = session_;
  leave(reason, std::move(detail));
  // Below error recovery level 2 nothing takes over what was under way here (7.1.4).
  if (session) session->close(reason, "with another connection of the session");
}

void Connection::leave(EndReason reason, std::string detail) {
  if (closing()) return;
  if (phase_ == Phase::kFullFeature && announced(reason)) announce_drop();
  phase_ = Phase::kClosing;
  closing_since_ = env_.executor.monotonic_time();
  report(reason, std::move(detail));
  if (session_) {
    session_->detach(attachment_);
    if (session_->connections() == 0) env_.registry.remove(*session_);
    // The session lives on while the device has tasks of it; its window numbers our last words.
  }
  env_.host->output_ready();
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

// 11.9.1, event 3: the session is gone with this connection, and none of its tasks is kept.
void Connection::announce_drop() {
  send_status(pack(AsyncMessage{.event = AsyncMessage::Event::kDropsSession,
                                .parameter2 = env_.options.drop_time2wait_s,
                                .parameter3 = 0}),
              {});
}

void Connection::request_logout(std::uint16_t seconds, EndReason reason) {
  if (phase_ != Phase::kFullFeature || leaving_) return;
  leaving_ = {env_.executor.monotonic_time() + std::chrono::seconds(seconds), reason};
  send_status(
      pack(AsyncMessage{.event = AsyncMessage::Event::kRequestLogout, .parameter3 = seconds}), {});
  env_.host->output_ready();
}

void Connection::output_ready() { env_.host->output_ready(); }

void Connection::ask_for_acknowledgement() {
  if (phase_ == Phase::kFullFeature && !pinged_) ping();
}

// --- Headers ------------------------------------------------------------------------------

// Only a login is expected before the login, and no additional headers beyond our bound ever.
bool Connection::on_basic_header(const Bhs& bhs) {
  if (closing()) return false;
  arriving_.bhs = bhs;
  arriving_.header = parse_common(bhs);
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
  ++traffic_.pdus;
  arriving_ = {.bhs = bhs, .header = parse_common(bhs), .segment = {}, .kept = {}};
  task_ = {};
  dropped_ = false;
  if (ahs.size() > kAhsBytesAccepted) {
    return protocol_error(RejectReason::kInvalidPduField,
                          excess("TotalAHSLength", kAhsBytesAccepted, ahs.size()));
  }
  const std::uint32_t bytes_max =
      session_ ? parameters_.receive_segment_bytes_max : kLoginSegmentBytesMax;
  if (arriving_.header.data_bytes > bytes_max) {
    return protocol_error(RejectReason::kProtocolError,
                          excess("DataSegmentLength", bytes_max, arriving_.header.data_bytes));
  }
  if (unacknowledged_ && !take_acknowledgement()) return false;
  const bool good =
      phase_ == Phase::kLogin ? check_login_header() : check_full_feature_header(ahs, place);
  if (!good) return false;
  if (!dropped_) keep_segment(place);
  return true;
}

// The data of what is no task's is kept until on_pdu(), and as long as its request waits.
void Connection::keep_segment(Placement& place) {
  const std::uint32_t bytes = useful_bytes();
  if (bytes == 0) return;
  if (early()) {
    auto kept = session_->keep(bytes);
    if (!kept) return refuse_request(RejectReason::kOutOfResources);
    arriving_.kept = *std::move(kept);
  }
  arriving_.segment = {.payload = Payload::allocate(bytes), .offset = 0, .length = bytes};
  place = {.payload = arriving_.segment.payload, .offset = 0, .length = bytes};
}

// How much of its data is: a text, or what a NOP-Out has echoed. The others have no use for any.
std::uint32_t Connection::useful_bytes() const {
  const CommonHeader& header = arriving_.header;
  switch (static_cast<Opcode>(header.opcode)) {
    case Opcode::kLoginRequest:
    case Opcode::kTextRequest: return header.data_bytes;
    case Opcode::kNopOut:
      return header.itt == kReservedTag
                 ? 0
                 : std::min(header.data_bytes, parameters_.send_segment_bytes_max);
    default: return 0;
  }
}

// It waits for requests before it, most likely.
bool Connection::early() const {
  return phase_ == Phase::kFullFeature && !arriving_.header.immediate &&
         session_->window().look(cmd_sn_of(arriving_.bhs)) == CommandWindow::Verdict::kAhead;
}

void Connection::refuse_request(RejectReason reason) {
  dropped_ = true;
  if (!arriving_.header.immediate) session_->pass_over(attachment_, cmd_sn_of(arriving_.bhs));
  send_reject(reason);
}

bool Connection::check_login_header() {
  if (arriving_.header.opcode == static_cast<std::uint8_t>(Opcode::kLoginRequest)) return true;
  return protocol_error(RejectReason::kProtocolError,
                        "expected Login Request, found " + opcode_name(arriving_.header.opcode));
}

bool Connection::check_full_feature_header(std::span<const std::byte> ahs, Placement& place) {
  const auto opcode = static_cast<Opcode>(arriving_.header.opcode);
  const bool scsi = opcode == Opcode::kScsiCommand || opcode == Opcode::kDataOut ||
                    opcode == Opcode::kTaskManagementRequest;
  if (scsi && session_->device() == nullptr) {
    return protocol_error(RejectReason::kProtocolError,
                          opcode_name(arriving_.header.opcode) + " in a discovery session");
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
      if (unacknowledged_) return true;
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

// What the initiator says that it has need not be kept any longer.
bool Connection::take_acknowledgement() {
  unacknowledged_->acknowledge(exp_stat_sn_of(arriving_.bhs));
  session_->output_drained();
  const Options& options = env_.options;
  if (unacknowledged_->size() > options.output_pdus_max) {
    return protocol_error(RejectReason::kProtocolError,
                          excess("PDUs that ExpStatSN does not acknowledge",
                                 options.output_pdus_max, unacknowledged_->size()));
  }
  // Answers to commands are bounded before they begin.
  if (unacknowledged_->other_bytes() > options.payload_bytes_max) {
    return protocol_error(RejectReason::kProtocolError,
                          excess("bytes that ExpStatSN does not acknowledge, without commands'",
                                 options.payload_bytes_max, unacknowledged_->other_bytes()));
  }
  return true;
}

Connection::Verdict Connection::check_cmd_sn(std::uint32_t cmd_sn, bool immediate) {
  if (immediate) return Verdict::kGo;
  switch (session_->window().look(cmd_sn)) {
    case CommandWindow::Verdict::kNext: return Verdict::kGo;
    case CommandWindow::Verdict::kOutside: dropped_ = true; return Verdict::kIgnore;
    case CommandWindow::Verdict::kAhead: break;
  }
  if (session_->gaps_may_fill()) return Verdict::kGo;
  protocol_error(RejectReason::kProtocolError, "CmdSN: expected " +
                                                   std::to_string(session_->window().exp_cmd_sn()) +
                                                   ", found " + std::to_string(cmd_sn));
  return Verdict::kClosing;
}

// NOP-Out, Task Management, Text and Logout: all but their number in on_pdu().
bool Connection::begin_request() {
  // At the same place in all of them; a NOP-Out that answers a ping is always immediate.
  switch (check_cmd_sn(cmd_sn_of(arriving_.bhs), arriving_.header.immediate)) {
    case Verdict::kClosing: return false;
    case Verdict::kIgnore: return true;
    case Verdict::kGo: break;
  }
  const CommonHeader& header = arriving_.header;
  if (header.opcode == static_cast<std::uint8_t>(Opcode::kTextRequest) &&
      header.data_bytes > kTextBytesMax) {
    return protocol_error(RejectReason::kProtocolError,
                          excess("bytes of text", kTextBytesMax, header.data_bytes));
  }
  // A discovery session is for Text and Logout (4.3), and for the answers to our pings.
  const bool asks =
      header.opcode == static_cast<std::uint8_t>(Opcode::kNopOut) && header.itt != kReservedTag;
  if (asks && session_->identity().discovery) refuse_request(RejectReason::kCommandNotSupported);
  return true;
}

bool Connection::begin_scsi_command(std::span<const std::byte> ahs, Placement& place) {
  const auto command = parse_scsi_command(arriving_.bhs);
  if (!command) return protocol_error(RejectReason::kInvalidPduField, command.error().message);
  if (has_extended_cdb(ahs) && !variable_length(command->cdb[0])) {
    return protocol_error(RejectReason::kInvalidPduField,
                          "SCSI Command: extended CDB for a command that has none");
  }
  switch (check_cmd_sn(command->cmd_sn, command->immediate)) {
    case Verdict::kClosing: return false;
    case Verdict::kIgnore: return true;
    case Verdict::kGo: break;
  }
  return take(session_->begin_command(attachment_, *command, arriving_.header.data_bytes, now_),
              place);
}

bool Connection::begin_data_out(Placement& place) {
  const auto pdu = parse_data_out(arriving_.bhs);
  if (!pdu) return protocol_error(RejectReason::kInvalidPduField, pdu.error().message);
  return take(session_->begin_data_out(attachment_, *pdu, arriving_.header.data_bytes), place);
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

void Connection::send_status(const Bhs& bhs, PayloadSlice data) {
  if (unacknowledged_) unacknowledged_->keep(sender_.next_stat_sn(), bhs, data);
  sender_.send(bhs, StatSn::kAdvance, std::move(data));
  session_->output_queued();
}

void Connection::send_reject(RejectReason reason, const Bhs& bhs) {
  send_status(pack_reject(reason),
              {.payload = Payload::copy_of(bhs), .offset = 0, .length = bhs.size()});
}

bool Connection::protocol_error(RejectReason reason, std::string detail) {
  // During the login there is nothing to say to one who does not speak iSCSI.
  if (phase_ == Phase::kFullFeature) send_reject(reason);
  close(EndReason::kProtocolError, std::move(detail));
  return false;
}

}  // namespace mariner::iscsi
