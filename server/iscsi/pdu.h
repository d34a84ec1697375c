// The PDUs of iSCSI (RFC 7143, chapter 11) as checked types: parsed once when a header arrives,
// packed once when one leaves.
//
// What initiators send has a parse function, what targets send a pack function. Reserved fields
// are ignored on receipt and zero when sent. No state, no I/O; callable from any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "proto/bytes.h"
#include "proto/error.h"

namespace mariner::iscsi {

// The basic header segment.
inline constexpr std::size_t kBhsBytes = 48;
// The largest additional header segments that TotalAHSLength (one byte, in words) can announce.
inline constexpr std::size_t kAhsBytesMax = 255 * 4;
inline constexpr std::size_t kDigestBytes = 4;

using Bhs = std::array<std::byte, kBhsBytes>;
using Isid = std::array<std::uint8_t, 6>;

// A tag or field that names nothing: no task (ITT), no reply expected (TTT).
inline constexpr std::uint32_t kReservedTag = 0xffffffff;

enum class Opcode : std::uint8_t {
  kNopOut = 0x00,
  kScsiCommand = 0x01,
  kTaskManagementRequest = 0x02,
  kLoginRequest = 0x03,
  kTextRequest = 0x04,
  kDataOut = 0x05,
  kLogoutRequest = 0x06,
  kSnackRequest = 0x10,
  kNopIn = 0x20,
  kScsiResponse = 0x21,
  kTaskManagementResponse = 0x22,
  kLoginResponse = 0x23,
  kTextResponse = 0x24,
  kDataIn = 0x25,
  kLogoutResponse = 0x26,
  kR2t = 0x31,
  kAsyncMessage = 0x32,
  kReject = 0x3f,
};

// What every PDU has (11.2.1).
struct CommonHeader {
  std::uint8_t opcode = 0;  // of the initiator's, not yet known to be one of Opcode
  bool immediate = false;
  std::uint32_t ahs_bytes = 0;
  std::uint32_t data_bytes = 0;  // without padding
  std::uint32_t itt = 0;

  // Bytes that pad the data segment to a multiple of four.
  [[nodiscard]] std::uint32_t padding_bytes() const { return (4 - data_bytes % 4) % 4; }
};
[[nodiscard]] CommonHeader parse_common(const Bhs& bhs);

// --- From the initiator -------------------------------------------------------------------

// 11.3
// 11.3.1
enum class TaskAttribute : std::uint8_t {
  kUntagged = 0,
  kSimple = 1,
  kOrdered = 2,
  kHeadOfQueue = 3,
  kAca = 4,
};

struct ScsiCommand {
  bool immediate = false;
  bool final = false;
  bool read = false;
  bool write = false;
  TaskAttribute attribute = TaskAttribute::kSimple;
  std::uint64_t lun = 0;
  std::uint32_t itt = 0;
  std::uint32_t expected_bytes = 0;
  std::uint32_t cmd_sn = 0;
  std::uint32_t exp_stat_sn = 0;
  std::array<std::uint8_t, 16> cdb{};
};
[[nodiscard]] Result<ScsiCommand> parse_scsi_command(const Bhs& bhs);

// 11.5.1
enum class TaskManagement : std::uint8_t {
  kAbortTask = 1,
  kAbortTaskSet = 2,
  kClearAca = 3,
  kClearTaskSet = 4,
  kLogicalUnitReset = 5,
  kTargetWarmReset = 6,
  kTargetColdReset = 7,
  kTaskReassign = 8,
};
struct TaskManagementRequest {
  bool immediate = false;
  std::uint8_t function = 0;  // any value: an unknown one is answered, not rejected
  std::uint64_t lun = 0;
  std::uint32_t itt = 0;
  std::uint32_t referenced_itt = 0;
  std::uint32_t cmd_sn = 0;
  std::uint32_t exp_stat_sn = 0;
  std::uint32_t ref_cmd_sn = 0;
};
[[nodiscard]] Result<TaskManagementRequest> parse_task_management(const Bhs& bhs);

// 11.7
struct DataOut {
  bool final = false;
  std::uint64_t lun = 0;
  std::uint32_t itt = 0;
  std::uint32_t ttt = 0;
  std::uint32_t exp_stat_sn = 0;
  std::uint32_t data_sn = 0;
  std::uint32_t offset = 0;
};
[[nodiscard]] Result<DataOut> parse_data_out(const Bhs& bhs);

// 11.10
struct TextRequest {
  bool immediate = false;
  bool final = false;
  bool continues = false;
  std::uint64_t lun = 0;
  std::uint32_t itt = 0;
  std::uint32_t ttt = 0;
  std::uint32_t cmd_sn = 0;
  std::uint32_t exp_stat_sn = 0;
};
[[nodiscard]] Result<TextRequest> parse_text_request(const Bhs& bhs);

// 11.12.3
enum class Stage : std::uint8_t { kSecurity = 0, kOperational = 1, kFullFeature = 3 };
struct LoginRequest {
  bool transit = false;
  bool continues = false;
  std::uint8_t current_stage = 0;  // as sent: the login decides what is valid when
  std::uint8_t next_stage = 0;
  std::uint8_t version_max = 0;
  std::uint8_t version_min = 0;
  Isid isid{};
  std::uint16_t tsih = 0;
  std::uint32_t itt = 0;
  std::uint16_t cid = 0;
  std::uint32_t cmd_sn = 0;
  std::uint32_t exp_stat_sn = 0;
};
[[nodiscard]] LoginRequest parse_login_request(const Bhs& bhs);

// 11.14.1
enum class LogoutReason : std::uint8_t {
  kCloseSession = 0,
  kCloseConnection = 1,
  kRemoveConnectionForRecovery = 2,
};
struct LogoutRequest {
  bool immediate = false;
  LogoutReason reason = LogoutReason::kCloseSession;
  std::uint32_t itt = 0;
  std::uint16_t cid = 0;
  std::uint32_t cmd_sn = 0;
  std::uint32_t exp_stat_sn = 0;
};
[[nodiscard]] Result<LogoutRequest> parse_logout(const Bhs& bhs);

// 11.18
struct NopOut {
  bool immediate = false;
  std::uint64_t lun = 0;
  std::uint32_t itt = 0;
  std::uint32_t ttt = 0;
  std::uint32_t cmd_sn = 0;
  std::uint32_t exp_stat_sn = 0;
};
[[nodiscard]] Result<NopOut> parse_nop_out(const Bhs& bhs);

// 11.16
struct SnackRequest {
  enum class Type : std::uint8_t { kDataOrR2t = 0, kStatus = 1, kDataAck = 2, kRData = 3 };
  Type type = Type::kDataOrR2t;
  std::uint64_t lun = 0;
  std::uint32_t itt = 0;
  std::uint32_t tag = 0;  // the target transfer tag of a data acknowledgement, or the SNACK tag
  std::uint32_t exp_stat_sn = 0;
  std::uint32_t first = 0;  // BegRun
  std::uint32_t count = 0;  // RunLength; 0: all from `first` on
};
[[nodiscard]] Result<SnackRequest> parse_snack(const Bhs& bhs);

// ExpStatSN, which stands at the same place in all of the above, and CmdSN, in all but Data-Out and
// SNACK.
[[nodiscard]] std::uint32_t exp_stat_sn_of(const Bhs& bhs);
[[nodiscard]] std::uint32_t cmd_sn_of(const Bhs& bhs);

// --- From the target ----------------------------------------------------------------------
// pack() leaves StatSN, ExpCmdSN and MaxCmdSN zero: PduSender stamps them, at stamp_sequence().

// What a command's final PDU says about bytes that were not, or could not be, moved (11.4.5).
struct Residual {
  enum class Kind : std::uint8_t { kNone, kUnderflow, kOverflow };
  Kind kind = Kind::kNone;
  std::uint32_t count = 0;
};

// 11.4
struct ScsiResponse {
  std::uint8_t status = 0;
  Residual residual;
  std::uint32_t itt = 0;
  std::uint32_t snack_tag = 0;
  std::uint32_t exp_data_sn = 0;
};
[[nodiscard]] Bhs pack(const ScsiResponse& pdu);

// 11.7. With `status`, the S bit: the command is complete.
struct DataIn {
  bool final = false;
  std::optional<std::uint8_t> status;
  Residual residual;
  std::uint32_t itt = 0;
  std::uint32_t data_sn = 0;
  std::uint32_t offset = 0;
};
[[nodiscard]] Bhs pack(const DataIn& pdu);

// 11.8
struct R2t {
  std::uint64_t lun = 0;
  std::uint32_t itt = 0;
  std::uint32_t ttt = 0;
  std::uint32_t r2t_sn = 0;
  std::uint32_t offset = 0;
  std::uint32_t desired_bytes = 0;
};
[[nodiscard]] Bhs pack(const R2t& pdu);

// 11.6.1
enum class TaskManagementOutcome : std::uint8_t {
  kComplete = 0,
  kNoSuchTask = 1,
  kNoSuchLun = 2,
  kReassignmentNotSupported = 4,
  kNotSupported = 5,
  kRejected = 255,
};
struct TaskManagementResponse {
  TaskManagementOutcome outcome = TaskManagementOutcome::kComplete;
  std::uint32_t itt = 0;
};
[[nodiscard]] Bhs pack(const TaskManagementResponse& pdu);

// 11.11
struct TextResponse {
  bool final = true;
  bool continues = false;
  std::uint64_t lun = 0;
  std::uint32_t itt = 0;
  std::uint32_t ttt = kReservedTag;
};
[[nodiscard]] Bhs pack(const TextResponse& pdu);

// 11.13.5: class in the high byte, detail in the low one.
enum class LoginStatus : std::uint16_t {
  kSuccess = 0x0000,
  kMovedTemporarily = 0x0101,
  kMovedPermanently = 0x0102,
  kInitiatorError = 0x0200,
  kAuthenticationFailure = 0x0201,
  kAuthorizationFailure = 0x0202,
  kNotFound = 0x0203,
  kUnsupportedVersion = 0x0205,
  kTooManyConnections = 0x0206,
  kMissingParameter = 0x0207,
  kSessionTypeNotSupported = 0x0209,
  kSessionDoesNotExist = 0x020a,
  kInvalidDuringLogin = 0x020b,
  kTargetError = 0x0300,
  kServiceUnavailable = 0x0301,
  kOutOfResources = 0x0302,
};
struct LoginResponse {
  bool transit = false;
  bool continues = false;
  std::uint8_t current_stage = 0;
  std::uint8_t next_stage = 0;
  Isid isid{};
  std::uint16_t tsih = 0;
  std::uint32_t itt = 0;
  LoginStatus status = LoginStatus::kSuccess;
};
[[nodiscard]] Bhs pack(const LoginResponse& pdu);

// 11.15
struct LogoutResponse {
  enum class Outcome : std::uint8_t { kClosed = 0, kNoSuchCid = 1, kRecoveryNotSupported = 2 };
  Outcome outcome = Outcome::kClosed;
  std::uint32_t itt = 0;
};
[[nodiscard]] Bhs pack(const LogoutResponse& pdu);

// 11.9.1
struct AsyncMessage {
  enum class Event : std::uint8_t { kRequestLogout = 1, kDropsConnection = 2, kDropsSession = 3 };
  Event event = Event::kRequestLogout;
  std::uint16_t parameter1 = 0;
  std::uint16_t parameter2 = 0;
  std::uint16_t parameter3 = 0;
};
[[nodiscard]] Bhs pack(const AsyncMessage& pdu);

// 11.17.1
enum class RejectReason : std::uint8_t {
  kDataDigestError = 0x02,
  kSnackReject = 0x03,
  kProtocolError = 0x04,
  kCommandNotSupported = 0x05,
  kTooManyImmediateCommands = 0x06,
  kTaskInProgress = 0x07,
  kInvalidDataAck = 0x08,
  kInvalidPduField = 0x09,
  kOutOfResources = 0x0a,
};
// Carries the rejected header as its data segment.
[[nodiscard]] Bhs pack_reject(RejectReason reason);

// 11.19. A ping has a TTT and no ITT; an answer has an ITT and no TTT.
struct NopIn {
  std::uint64_t lun = 0;
  std::uint32_t itt = kReservedTag;
  std::uint32_t ttt = kReservedTag;
};
[[nodiscard]] Bhs pack(const NopIn& pdu);

struct SequenceNumbers {
  std::uint32_t stat_sn = 0;
  std::uint32_t exp_cmd_sn = 0;
  std::uint32_t max_cmd_sn = 0;
};
void stamp_sequence(Bhs& bhs, const SequenceNumbers& numbers);
void stamp_data_bytes(Bhs& bhs, std::uint32_t data_bytes);

// For messages: "SCSI Command", "Login Request", or "opcode 0x1c".
[[nodiscard]] std::string opcode_name(std::uint8_t opcode);

}  // namespace mariner::iscsi
