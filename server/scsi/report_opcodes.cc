#include "server/scsi/report_opcodes.h"

#include "proto/bytes.h"

namespace mariner::scsi {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Option = ReportOpcodes::Option;

constexpr std::size_t kTimeoutsBytes = 12;

// In seconds (SPC-4 6.36.4): what a command takes while all is well, and when its initiator may
// think that it is lost.
struct CommandTime {
  std::uint32_t nominal;
  std::uint32_t recommended;
};
// Answered from memory, or from the node's store.
constexpr CommandTime kFromMemory{1, 10};
// A log disk that hangs costs 5 s before its batch goes elsewhere, an overloaded one more.
constexpr CommandTime kOnTheMedium{2, 30};
// A self-test in the foreground; a copy moves up to 64 segments of many MiB each.
constexpr CommandTime kLong{SelfTest::kExtendedSeconds, 120};

CommandTime time_of(Operation operation) {
  switch (operation) {
    case Operation::kTestUnitReady:
    case Operation::kRequestSense:
    case Operation::kInquiry:
    case Operation::kModeSelect:
    case Operation::kModeSense:
    case Operation::kPreventAllow:
    case Operation::kReadCapacity:
    case Operation::kReportLuns:
    case Operation::kReportOpcodes:
    case Operation::kReportTaskManagement:
    case Operation::kReserve6:
    case Operation::kRelease6:
    case Operation::kPersistentReserveIn:
    case Operation::kPersistentReserveOut:
    case Operation::kReadDefectData:
    case Operation::kReceiveCopyResults:
    case Operation::kLogSelect:
    case Operation::kLogSense:
    case Operation::kReceiveDiagnostic:
    case Operation::kReadBuffer:
    case Operation::kWriteBuffer: return kFromMemory;
    case Operation::kExtendedCopy:
    case Operation::kSendDiagnostic: return kLong;
    default: return kOnTheMedium;
  }
}

void append_timeouts(Bytes& data, Operation operation) {
  const CommandTime time = time_of(operation);
  const std::size_t at = data.size();
  data.resize(at + kTimeoutsBytes);
  store_be(&data[at], static_cast<std::uint16_t>(kTimeoutsBytes - 2));
  store_be(&data[at + 4], time.nominal);
  store_be(&data[at + 8], time.recommended);
}

// Command descriptors, one for each entry of the table (SPC-4 6.36.2).
Bytes all_commands(bool timeouts, bool sanitize) {
  Bytes data(4);
  for (const OpcodeInfo& info : opcode_table()) {
    if (info.opcode == kSanitizeOpcode && !sanitize) continue;
    const std::size_t at = data.size();
    data.resize(at + 8);
    data[at] = info.opcode;
    store_be(&data[at + 2], std::uint16_t{info.service_action.value_or(0)});
    data[at + 5] =
        static_cast<std::uint8_t>((timeouts ? 0x02 : 0) | (info.service_action ? 0x01 : 0));
    store_be(&data[at + 6], std::uint16_t{info.cdb_bytes});
    if (timeouts) append_timeouts(data, info.operation);
  }
  store_be(&data[0], static_cast<std::uint32_t>(data.size() - 4));
  return data;
}

// The one-command parameter data (SPC-4 6.36.3).
Bytes one_command(const OpcodeInfo* info, bool timeouts, const Geometry& geometry) {
  constexpr std::uint8_t kNotSupported = 0x01;
  constexpr std::uint8_t kAsInStandard = 0x03;
  constexpr std::uint8_t kTimeoutsPresent = 0x80;
  Bytes data(4);
  if (info == nullptr) {
    data[1] = kNotSupported;
    return data;
  }
  data[1] = static_cast<std::uint8_t>(kAsInStandard | (timeouts ? kTimeoutsPresent : 0));
  store_be(&data[2], std::uint16_t{info->cdb_bytes});
  data.insert(data.end(), info->usage.begin(), info->usage.begin() + info->cdb_bytes);
  if (info->opcode == kStartStopOpcode && !geometry.removable) {
    data[4 + 4] &= static_cast<std::uint8_t>(~kLoadEject);
  }
  if (timeouts) append_timeouts(data, info->operation);
  return data;
}

}  // namespace

std::variant<Sense, std::vector<std::uint8_t>> report_opcodes(const ReportOpcodes& command,
                                                              const Geometry& geometry) {
  if (command.option == Option::kAll) return all_commands(command.timeouts, geometry.sanitize);
  // Of what is not known there are no service actions either.
  if (command.opcode == kSanitizeOpcode && !geometry.sanitize) {
    return one_command(nullptr, command.timeouts, geometry);
  }

  const auto entries = entries_of(command.opcode);
  const OpcodeInfo* info = find_opcode(command.opcode, command.service_action);
  const bool has_actions = !entries.empty() && entries.front().service_action.has_value();
  switch (command.option) {
    case Option::kAll: break;
    case Option::kOpcode:
      if (has_actions) return invalid_field_in_cdb(2, std::uint8_t{2});
      break;
    case Option::kServiceAction:
      if (!entries.empty() && !has_actions) return invalid_field_in_cdb(2, std::uint8_t{2});
      break;
    case Option::kEither:
      // A command without service actions is meant by the service action 0 only.
      if (!has_actions && command.service_action != 0) info = nullptr;
      break;
  }
  return one_command(info, command.timeouts, geometry);
}

std::vector<std::uint8_t> report_task_management(const ReportTaskManagement& command) {
  // ABORT TASK, ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET, TARGET RESET.
  constexpr std::uint8_t kSupported = 0x80 | 0x40 | 0x10 | 0x08 | 0x02;
  constexpr std::uint8_t kTimeoutsValid = 0x01;  // TMFTMOV
  // Each of them may take the long time, those that the standard still names.
  constexpr std::uint8_t kLongTimeouts = 0x80 | 0x40 | 0x10 | 0x08;
  constexpr std::uint32_t kLongTenths = 300;  // until what was begun is settled
  constexpr std::uint32_t kShortTenths = 100;
  Bytes data(command.extended ? 16 : 4);
  data[0] = kSupported;
  if (!command.extended) return data;
  data[3] = 12;
  data[4] = kTimeoutsValid;
  data[6] = kLongTimeouts;
  store_be(&data[8], kLongTenths);
  store_be(&data[12], kShortTenths);
  return data;
}

}  // namespace mariner::scsi
