#include "server/scsi/report_opcodes.h"

#include "proto/bytes.h"

namespace mariner::scsi {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Option = ReportOpcodes::Option;

// No command takes long here; this is when an initiator may give up on a target that is not well.
constexpr std::uint32_t kRecommendedTimeoutSeconds = 30;
constexpr std::size_t kTimeoutsBytes = 12;

void append_timeouts(Bytes& data) {  // SPC-4 6.36.4
  const std::size_t at = data.size();
  data.resize(at + kTimeoutsBytes);
  store_be(&data[at], static_cast<std::uint16_t>(kTimeoutsBytes - 2));
  store_be(&data[at + 8], kRecommendedTimeoutSeconds);
}

// Command descriptors, one for each entry of the table (SPC-4 6.36.2).
Bytes all_commands(bool timeouts) {
  Bytes data(4);
  for (const OpcodeInfo& info : opcode_table()) {
    const std::size_t at = data.size();
    data.resize(at + 8);
    data[at] = info.opcode;
    store_be(&data[at + 2], std::uint16_t{info.service_action.value_or(0)});
    data[at + 5] =
        static_cast<std::uint8_t>((timeouts ? 0x02 : 0) | (info.service_action ? 0x01 : 0));
    store_be(&data[at + 6], std::uint16_t{info.cdb_bytes});
    if (timeouts) append_timeouts(data);
  }
  store_be(&data[0], static_cast<std::uint32_t>(data.size() - 4));
  return data;
}

// The one-command parameter data (SPC-4 6.36.3).
Bytes one_command(const OpcodeInfo* info, bool timeouts) {
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
  if (timeouts) append_timeouts(data);
  return data;
}

}  // namespace

std::variant<Sense, std::vector<std::uint8_t>> report_opcodes(const ReportOpcodes& command) {
  if (command.option == Option::kAll) return all_commands(command.timeouts);

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
  return one_command(info, command.timeouts);
}

std::vector<std::uint8_t> report_task_management(const ReportTaskManagement& command) {
  // ABORT TASK, ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET, TARGET RESET.
  constexpr std::uint8_t kSupported = 0x80 | 0x40 | 0x10 | 0x08 | 0x02;
  Bytes data(command.extended ? 16 : 4);
  data[0] = kSupported;
  if (command.extended) data[3] = 12;
  return data;
}

}  // namespace mariner::scsi
