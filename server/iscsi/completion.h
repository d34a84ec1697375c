// How a SCSI command ends on the wire: its Data-In PDUs, its status, and its residual counts
// (RFC 7143, 11.4 and 11.7).
#pragma once

#include <cstdint>

#include "server/iscsi/negotiation.h"
#include "server/iscsi/pdu_sender.h"
#include "server/scsi/target_device.h"

namespace mariner::iscsi {

// What the initiator said about a command, and what its CDB said.
struct CommandTransfer {
  std::uint32_t itt = 0;
  bool read = false;
  bool write = false;
  std::uint32_t expected_bytes = 0;  // Expected Data Transfer Length
  scsi::Transfer asked;              // by the CDB
};

// Bytes that the command could not move for want of expected length (overflow), or that were
// expected and not moved (underflow). `data_in_bytes`: what the device returned.
[[nodiscard]] Residual residual_of(const CommandTransfer& transfer, std::uint64_t data_in_bytes);

// Sends what a command's response makes: Data-In PDUs within the session's limits, the last of them
// with the status (phase collapse), or a SCSI Response where there is no data or there is sense.
// Returns the bytes of data sent.
std::uint64_t send_completion(const CommandTransfer& transfer, const scsi::Response& response,
                              const SessionParameters& parameters, PduSender& sender);

// The answer to a command as it was sent, for as long as parts of it may have to be sent again.
struct SentCompletion {
  CommandTransfer transfer;
  scsi::Response response;
  std::uint32_t stat_sn = 0;
  std::uint32_t segment_bytes_max = 0;  // the initiator's then
};

// Which parts of it to send again: Data-In PDUs by DataSN, and the PDU that carries the status.
struct Repetition {
  std::uint32_t first = 0;
  std::uint32_t end = 0;  // behind the last one; at most what there is is sent
  bool status = false;
};
// Sends PDUs again as they were (11.16).
void resend_completion(const SentCompletion& sent, const SessionParameters& parameters,
                       Repetition parts, PduSender& sender);
// Sends all of it again, within the limits that hold now, with the SNACK tag in its response
// (11.16.3).
void resend_completion_anew(const SentCompletion& sent, const SessionParameters& parameters,
                            std::uint32_t snack_tag, PduSender& sender);

// CHECK CONDITION with fixed-format sense data (SPC-4, 4.5.3), for what the session itself refuses.
struct SenseCode {
  std::uint8_t key = 0;
  std::uint8_t asc = 0;
  std::uint8_t ascq = 0;
};
inline constexpr SenseCode kInvalidFieldInCdb{.key = 0x05, .asc = 0x24, .ascq = 0x00};
// ABORTED COMMAND, PROTOCOL SERVICE CRC ERROR: what lost data-out amounts to (RFC 7143, 7.8 and
// 11.4.7.2).
inline constexpr SenseCode kDataLost{.key = 0x0b, .asc = 0x47, .ascq = 0x05};
// Of the ACA attribute without an ACA condition: INVALID MESSAGE ERROR (SAM-5 8.6.5).
inline constexpr SenseCode kInvalidMessage{.key = 0x05, .asc = 0x49, .ascq = 0x00};

[[nodiscard]] scsi::Response check_condition(SenseCode code);

}  // namespace mariner::iscsi
