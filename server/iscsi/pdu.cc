#include "server/iscsi/pdu.h"

#include <cstdio>
#include <cstring>

namespace mariner::iscsi {
namespace {

// Byte 0.
constexpr std::uint8_t kImmediateBit = 0x40;
constexpr std::uint8_t kOpcodeMask = 0x3f;
// Byte 1, where a PDU has them.
constexpr std::uint8_t kFinalBit = 0x80;  // and T of a login
constexpr std::uint8_t kContinueBit = 0x40;
constexpr std::uint8_t kReadBit = 0x40;
constexpr std::uint8_t kWriteBit = 0x20;
constexpr std::uint8_t kAttributeMask = 0x07;
constexpr std::uint8_t kOverflowBit = 0x04;
constexpr std::uint8_t kUnderflowBit = 0x02;
constexpr std::uint8_t kStatusBit = 0x01;

std::uint8_t u8(const Bhs& bhs, std::size_t at) { return std::to_integer<std::uint8_t>(bhs[at]); }
std::uint16_t u16(const Bhs& bhs, std::size_t at) { return load_be<std::uint16_t>(&bhs[at]); }
std::uint32_t u32(const Bhs& bhs, std::size_t at) { return load_be<std::uint32_t>(&bhs[at]); }
std::uint64_t u64(const Bhs& bhs, std::size_t at) { return load_be<std::uint64_t>(&bhs[at]); }
bool flag(const Bhs& bhs, std::uint8_t bit) { return (u8(bhs, 1) & bit) != 0; }
bool is_immediate(const Bhs& bhs) { return (u8(bhs, 0) & kImmediateBit) != 0; }

Bhs start(Opcode opcode, std::uint8_t flags, std::uint32_t itt) {
  Bhs bhs{};
  bhs[0] = std::byte{static_cast<std::uint8_t>(opcode)};
  bhs[1] = std::byte{flags};
  store_be(&bhs[16], itt);
  return bhs;
}

std::uint8_t residual_flags(const Residual& residual) {
  switch (residual.kind) {
    case Residual::Kind::kNone: return 0;
    case Residual::Kind::kUnderflow: return kUnderflowBit;
    case Residual::Kind::kOverflow: return kOverflowBit;
  }
  return 0;
}

Error field_error(std::string_view pdu, std::string_view what) {
  return Error{ErrorCode::kProtocol, std::string(pdu) + ": " + std::string(what)};
}

}  // namespace

CommonHeader parse_common(const Bhs& bhs) {
  return {.opcode = static_cast<std::uint8_t>(u8(bhs, 0) & kOpcodeMask),
          .immediate = is_immediate(bhs),
          .ahs_bytes = u8(bhs, 4) * 4u,
          .data_bytes = load_be24(&bhs[5]),
          .itt = u32(bhs, 16)};
}

Result<ScsiCommand> parse_scsi_command(const Bhs& bhs) {
  ScsiCommand pdu{.immediate = is_immediate(bhs),
                  .final = flag(bhs, kFinalBit),
                  .read = flag(bhs, kReadBit),
                  .write = flag(bhs, kWriteBit),
                  .attribute = static_cast<TaskAttribute>(u8(bhs, 1) & kAttributeMask),
                  .lun = u64(bhs, 8),
                  .itt = u32(bhs, 16),
                  .expected_bytes = u32(bhs, 20),
                  .cmd_sn = u32(bhs, 24),
                  .exp_stat_sn = u32(bhs, 28)};
  std::memcpy(pdu.cdb.data(), &bhs[32], pdu.cdb.size());
  if (pdu.itt == kReservedTag) return field_error("SCSI Command", "reserved initiator task tag");
  if (pdu.attribute > TaskAttribute::kAca) {
    return field_error("SCSI Command", "reserved task attribute");
  }
  if (!pdu.final && !pdu.write) return field_error("SCSI Command", "F=0 without W=1");
  return pdu;
}

Result<TaskManagementRequest> parse_task_management(const Bhs& bhs) {
  TaskManagementRequest pdu{.immediate = is_immediate(bhs),
                            .function = static_cast<std::uint8_t>(u8(bhs, 1) & 0x7f),
                            .lun = u64(bhs, 8),
                            .itt = u32(bhs, 16),
                            .referenced_itt = u32(bhs, 20),
                            .cmd_sn = u32(bhs, 24),
                            .exp_stat_sn = u32(bhs, 28),
                            .ref_cmd_sn = u32(bhs, 32)};
  if (pdu.itt == kReservedTag) {
    return field_error("Task Management Request", "reserved initiator task tag");
  }
  return pdu;
}

Result<DataOut> parse_data_out(const Bhs& bhs) {
  DataOut pdu{.final = flag(bhs, kFinalBit),
              .lun = u64(bhs, 8),
              .itt = u32(bhs, 16),
              .ttt = u32(bhs, 20),
              .exp_stat_sn = u32(bhs, 28),
              .data_sn = u32(bhs, 36),
              .offset = u32(bhs, 40)};
  if (pdu.itt == kReservedTag) return field_error("SCSI Data-Out", "reserved initiator task tag");
  return pdu;
}

Result<TextRequest> parse_text_request(const Bhs& bhs) {
  TextRequest pdu{.immediate = is_immediate(bhs),
                  .final = flag(bhs, kFinalBit),
                  .continues = flag(bhs, kContinueBit),
                  .lun = u64(bhs, 8),
                  .itt = u32(bhs, 16),
                  .ttt = u32(bhs, 20),
                  .cmd_sn = u32(bhs, 24),
                  .exp_stat_sn = u32(bhs, 28)};
  if (pdu.itt == kReservedTag) return field_error("Text Request", "reserved initiator task tag");
  if (pdu.final && pdu.continues) return field_error("Text Request", "both F and C are set");
  return pdu;
}

LoginRequest parse_login_request(const Bhs& bhs) {
  LoginRequest pdu{.transit = flag(bhs, kFinalBit),
                   .continues = flag(bhs, kContinueBit),
                   .current_stage = static_cast<std::uint8_t>((u8(bhs, 1) >> 2) & 3),
                   .next_stage = static_cast<std::uint8_t>(u8(bhs, 1) & 3),
                   .version_max = u8(bhs, 2),
                   .version_min = u8(bhs, 3),
                   .tsih = u16(bhs, 14),
                   .itt = u32(bhs, 16),
                   .cid = u16(bhs, 20),
                   .cmd_sn = u32(bhs, 24),
                   .exp_stat_sn = u32(bhs, 28)};
  std::memcpy(pdu.isid.data(), &bhs[8], pdu.isid.size());
  return pdu;
}

Result<LogoutRequest> parse_logout(const Bhs& bhs) {
  const auto reason = static_cast<std::uint8_t>(u8(bhs, 1) & 0x7f);
  LogoutRequest pdu{.immediate = is_immediate(bhs),
                    .reason = static_cast<LogoutReason>(reason),
                    .itt = u32(bhs, 16),
                    .cid = u16(bhs, 20),
                    .cmd_sn = u32(bhs, 24),
                    .exp_stat_sn = u32(bhs, 28)};
  if (reason > static_cast<std::uint8_t>(LogoutReason::kRemoveConnectionForRecovery)) {
    return field_error("Logout Request", "unknown reason code " + std::to_string(reason));
  }
  if (pdu.itt == kReservedTag) return field_error("Logout Request", "reserved initiator task tag");
  return pdu;
}

Result<NopOut> parse_nop_out(const Bhs& bhs) {
  NopOut pdu{.immediate = is_immediate(bhs),
             .lun = u64(bhs, 8),
             .itt = u32(bhs, 16),
             .ttt = u32(bhs, 20),
             .cmd_sn = u32(bhs, 24),
             .exp_stat_sn = u32(bhs, 28)};
  if (pdu.itt == kReservedTag && !pdu.immediate) {
    return field_error("NOP-Out", "reserved initiator task tag without the immediate bit");
  }
  return pdu;
}

Result<SnackRequest> parse_snack(const Bhs& bhs) {
  constexpr std::uint8_t kTypeMask = 0x0f;
  const auto type = static_cast<std::uint8_t>(std::to_integer<std::uint8_t>(bhs[1]) & kTypeMask);
  if (type > static_cast<std::uint8_t>(SnackRequest::Type::kRData)) {
    return field_error("SNACK", "unknown type " + std::to_string(type));
  }
  return SnackRequest{.type = static_cast<SnackRequest::Type>(type),
                      .lun = u64(bhs, 8),
                      .itt = u32(bhs, 16),
                      .tag = u32(bhs, 20),
                      .exp_stat_sn = u32(bhs, 28),
                      .first = u32(bhs, 40),
                      .count = u32(bhs, 44)};
}

std::uint32_t exp_stat_sn_of(const Bhs& bhs) { return u32(bhs, 28); }

std::uint32_t cmd_sn_of(const Bhs& bhs) { return u32(bhs, 24); }

Bhs pack(const ScsiResponse& pdu) {
  const auto flags = static_cast<std::uint8_t>(kFinalBit | residual_flags(pdu.residual));
  Bhs bhs = start(Opcode::kScsiResponse, flags, pdu.itt);
  bhs[3] = std::byte{pdu.status};  // byte 2, the response: command completed at target
  store_be(&bhs[20], pdu.snack_tag);
  store_be(&bhs[36], pdu.exp_data_sn);
  store_be(&bhs[44], pdu.residual.count);
  return bhs;
}

Bhs pack(const DataIn& pdu) {
  std::uint8_t flags = pdu.final ? kFinalBit : 0;
  if (pdu.status) flags |= static_cast<std::uint8_t>(kStatusBit | residual_flags(pdu.residual));
  Bhs bhs = start(Opcode::kDataIn, flags, pdu.itt);
  bhs[3] = std::byte{pdu.status.value_or(0)};
  store_be(&bhs[20], kReservedTag);
  store_be(&bhs[36], pdu.data_sn);
  store_be(&bhs[40], pdu.offset);
  store_be(&bhs[44], pdu.status ? pdu.residual.count : 0);
  return bhs;
}

Bhs pack(const R2t& pdu) {
  Bhs bhs = start(Opcode::kR2t, kFinalBit, pdu.itt);
  store_be(&bhs[8], pdu.lun);
  store_be(&bhs[20], pdu.ttt);
  store_be(&bhs[36], pdu.r2t_sn);
  store_be(&bhs[40], pdu.offset);
  store_be(&bhs[44], pdu.desired_bytes);
  return bhs;
}

Bhs pack(const TaskManagementResponse& pdu) {
  Bhs bhs = start(Opcode::kTaskManagementResponse, kFinalBit, pdu.itt);
  bhs[2] = static_cast<std::byte>(pdu.outcome);
  return bhs;
}

Bhs pack(const TextResponse& pdu) {
  const auto flags =
      static_cast<std::uint8_t>((pdu.final ? kFinalBit : 0) | (pdu.continues ? kContinueBit : 0));
  Bhs bhs = start(Opcode::kTextResponse, flags, pdu.itt);
  store_be(&bhs[8], pdu.lun);
  store_be(&bhs[20], pdu.ttt);
  return bhs;
}

Bhs pack(const LoginResponse& pdu) {
  const auto flags = static_cast<std::uint8_t>(
      (pdu.transit ? kFinalBit : 0) | (pdu.continues ? kContinueBit : 0) |
      ((pdu.current_stage & 3) << 2) | (pdu.transit ? pdu.next_stage & 3 : 0));
  Bhs bhs = start(Opcode::kLoginResponse, flags, pdu.itt);
  // Bytes 2 and 3, Version-max and Version-active, are 0: the only version there is.
  std::memcpy(&bhs[8], pdu.isid.data(), pdu.isid.size());
  store_be(&bhs[14], pdu.tsih);
  store_be(&bhs[36], static_cast<std::uint16_t>(pdu.status));
  return bhs;
}

Bhs pack(const LogoutResponse& pdu) {
  Bhs bhs = start(Opcode::kLogoutResponse, kFinalBit, pdu.itt);
  bhs[2] = static_cast<std::byte>(pdu.outcome);
  return bhs;
}

Bhs pack(const AsyncMessage& pdu) {
  Bhs bhs = start(Opcode::kAsyncMessage, kFinalBit, kReservedTag);
  bhs[36] = static_cast<std::byte>(pdu.event);
  store_be(&bhs[38], pdu.parameter1);
  store_be(&bhs[40], pdu.parameter2);
  store_be(&bhs[42], pdu.parameter3);
  return bhs;
}

Bhs pack_reject(RejectReason reason) {
  Bhs bhs = start(Opcode::kReject, kFinalBit, kReservedTag);
  bhs[2] = static_cast<std::byte>(reason);
  return bhs;
}

Bhs pack(const NopIn& pdu) {
  Bhs bhs = start(Opcode::kNopIn, kFinalBit, pdu.itt);
  store_be(&bhs[8], pdu.lun);
  store_be(&bhs[20], pdu.ttt);
  return bhs;
}

void stamp_sequence(Bhs& bhs, const SequenceNumbers& numbers) {
  store_be(&bhs[24], numbers.stat_sn);
  store_be(&bhs[28], numbers.exp_cmd_sn);
  store_be(&bhs[32], numbers.max_cmd_sn);
}

void stamp_data_bytes(Bhs& bhs, std::uint32_t data_bytes) { store_be24(&bhs[5], data_bytes); }

std::string opcode_name(std::uint8_t opcode) {
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::kNopOut: return "NOP-Out";
    case Opcode::kScsiCommand: return "SCSI Command";
    case Opcode::kTaskManagementRequest: return "Task Management Request";
    case Opcode::kLoginRequest: return "Login Request";
    case Opcode::kTextRequest: return "Text Request";
    case Opcode::kDataOut: return "SCSI Data-Out";
    case Opcode::kLogoutRequest: return "Logout Request";
    case Opcode::kSnackRequest: return "SNACK Request";
    default: break;
  }
  char text[16];
  std::snprintf(text, sizeof text, "opcode 0x%02x", opcode);
  return text;
}

}  // namespace mariner::iscsi
