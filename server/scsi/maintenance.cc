#include "server/scsi/maintenance.h"

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::scsi {
namespace {

constexpr std::uint8_t kModeMask = 0x1F;
constexpr std::uint8_t kModeHighBit = 4;

LogSense::Control control_of(CdbBytes cdb) { return static_cast<LogSense::Control>(cdb[2] >> 6); }
std::uint8_t page_of(CdbBytes cdb) { return cdb[2] & 0x3F; }

Maintenance decode_log_sense(CdbBytes cdb) {
  return LogSense{.control = control_of(cdb),
                  .page = page_of(cdb),
                  .subpage = cdb[3],
                  .parameter_pointer = load_be<std::uint16_t>(&cdb[5]),
                  .allocation_bytes = load_be<std::uint16_t>(&cdb[7])};
}

Maintenance decode_log_select(CdbBytes cdb) {
  if (load_be<std::uint16_t>(&cdb[7]) != 0) return invalid_field_in_cdb(7);
  return LogSelect{.reset = (cdb[1] & 0x02) != 0,
                   .control = control_of(cdb),
                   .page = page_of(cdb),
                   .subpage = cdb[3]};
}

// DEVOFFL and UNITOFFL allow more than a test here does: they are not looked at.
Maintenance decode_send_diagnostic(CdbBytes cdb) {
  const auto code = static_cast<std::uint8_t>(cdb[1] >> 5);
  const bool page_format = (cdb[1] & 0x10) != 0;
  const bool default_test = (cdb[1] & 0x04) != 0;
  SendDiagnostic command{.parameter_bytes = load_be<std::uint16_t>(&cdb[3])};
  if (default_test && code != 0) return invalid_field_in_cdb(1, std::uint8_t{7});
  switch (code) {
    case 0:
      if (default_test) command.test = SelfTest::Kind::kDefault;
      break;
    case 1:
    case 2:
    case 5:
    case 6: command.test = static_cast<SelfTest::Kind>(code); break;
    case 4: command.abort = true; break;
    default: return invalid_field_in_cdb(1, std::uint8_t{7});
  }
  if (command.parameter_bytes != 0) {
    if (command.test || command.abort) return invalid_field_in_cdb(3);
    // A list in a vendor's own format: there is none.
    if (!page_format) return invalid_field_in_cdb(1, std::uint8_t{4});
  }
  return command;
}

// Without PCV the page is that of the last SEND DIAGNOSTIC: there is but one.
Maintenance decode_receive_diagnostic(CdbBytes cdb) {
  const bool page_valid = (cdb[1] & 0x01) != 0;
  if (page_valid && cdb[2] != 0) return invalid_field_in_cdb(2);
  return ReceiveDiagnostic{load_be<std::uint16_t>(&cdb[3])};
}

Maintenance decode_read_buffer(CdbBytes cdb) {
  const auto mode = static_cast<ReadBuffer::Mode>(cdb[1] & kModeMask);
  switch (mode) {
    case ReadBuffer::Mode::kEcho:
    case ReadBuffer::Mode::kEchoDescriptor: return ReadBuffer{mode, load_be24(&cdb[6])};
  }
  return invalid_field_in_cdb(1, kModeHighBit);
}

Maintenance decode_write_buffer(CdbBytes cdb) {
  if ((cdb[1] & kModeMask) != static_cast<std::uint8_t>(ReadBuffer::Mode::kEcho)) {
    return invalid_field_in_cdb(1, kModeHighBit);
  }
  const std::uint32_t bytes = load_be24(&cdb[6]);
  if (bytes > kEchoBytesMax) return invalid_field_in_cdb(6);
  return WriteBuffer{bytes};
}

}  // namespace

Maintenance decode_maintenance(CdbBytes cdb, Operation operation) {
  switch (operation) {
    case Operation::kLogSense: return decode_log_sense(cdb);
    case Operation::kLogSelect: return decode_log_select(cdb);
    case Operation::kSendDiagnostic: return decode_send_diagnostic(cdb);
    case Operation::kReceiveDiagnostic: return decode_receive_diagnostic(cdb);
    case Operation::kReadBuffer: return decode_read_buffer(cdb);
    case Operation::kWriteBuffer: return decode_write_buffer(cdb);
    default: break;
  }
  CHECK_MSG(false, "not a maintenance command");
}

}  // namespace mariner::scsi
