// The commands that a disk supports: one table, from which CDBs are decoded, transfers are sized
// and REPORT SUPPORTED OPERATION CODES is answered, so that these cannot disagree.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace mariner::scsi {

using CdbBytes = std::span<const std::uint8_t, 16>;

// What a command does, whatever the length of its CDB.
enum class Operation : std::uint8_t {
  kTestUnitReady,
  kRequestSense,
  kInquiry,
  kModeSelect,
  kModeSense,
  kStartStopUnit,
  kPreventAllow,
  kReadCapacity,
  kRead,
  kWrite,
  kWriteAndVerify,
  kVerify,
  kPrefetch,
  kSynchronizeCache,
  kWriteSame,
  kUnmap,
  kGetLbaStatus,
  kReportLuns,
  kReportPortGroups,
  kReportOpcodes,
  kReportTaskManagement,
  kReserve6,
  kRelease6,
  kPersistentReserveIn,
  kPersistentReserveOut,
  kCompareAndWrite,
  kOrWrite,
  kWriteAtomic,
  kReadDefectData,
  kExtendedCopy,
  kReceiveCopyResults,
  kLogSelect,
  kLogSense,
  kSendDiagnostic,
  kReceiveDiagnostic,
  kReadBuffer,
  kWriteBuffer,
  kPopulateToken,
  kWriteUsingToken,
  kCopyOperationAbort,
  kReceiveCopyStatus,
  kReceiveRodTokens,
  kReportRodTokens,
  kSanitize,
  kFormatUnit,
};

// What a command does, as far as reservations care (SPC-4 5.13.1, SBC-3 table 13): the rows of the
// tables of commands that are allowed in the presence of various reservations.
enum class ReservationAccess : std::uint8_t {
  kFree,    // allowed to everybody
  kReads,   // refused where access is exclusive
  kWrites,  // refused to all whom the reservation does not admit
};
[[nodiscard]] ReservationAccess reservation_access(Operation operation);

// Whether the command accesses the medium, and so is refused while the unit is stopped
// (SBC-3 4.20).
[[nodiscard]] bool accesses_medium(Operation operation);
// Whether somebody uses what is stored, rather than looks whether the unit is there, as those who
// watch their paths to it do all the time.
[[nodiscard]] bool is_use(Operation operation);
// Whether it is refused while there is no medium: these, and those that tell what a medium is.
[[nodiscard]] bool needs_medium(Operation operation);
// The bit of START STOP UNIT's byte 4 that units with a removable medium know.
inline constexpr std::uint8_t kLoadEject = 0x02;
inline constexpr std::uint8_t kStartStopOpcode = 0x1B;
// Known to units that permit it only: the table alone does not say so.
inline constexpr std::uint8_t kSanitizeOpcode = 0x48;

struct OpcodeInfo {
  Operation operation;
  const char* name;  // as in the standards, for people
  std::uint8_t opcode;
  std::optional<std::uint8_t> service_action;
  std::uint8_t cdb_bytes;
  // CDB usage data (SPC-4 6.36.3): the bits that are evaluated; a set bit outside them is refused.
  // Byte 0 is the opcode and the service action stands in its place. Bytes past the CDB's end are
  // unspecified: initiators leave anything in them.
  std::array<std::uint8_t, 16> usage;
};

// In order of opcode and service action.
[[nodiscard]] std::span<const OpcodeInfo> opcode_table();

// All entries with this opcode; more than one, or one with a service action, where the opcode has
// service actions; empty when it is not supported.
[[nodiscard]] std::span<const OpcodeInfo> entries_of(std::uint8_t opcode);

// The entry for this opcode and, where the opcode has them, service action; null when not
// supported.
[[nodiscard]] const OpcodeInfo* find_opcode(std::uint8_t opcode, std::uint16_t service_action);

// The entry for a CDB; null when not supported.
[[nodiscard]] inline const OpcodeInfo* find_opcode(CdbBytes cdb) {
  return find_opcode(cdb[0], static_cast<std::uint16_t>(cdb[1] & 0x1F));
}

}  // namespace mariner::scsi
