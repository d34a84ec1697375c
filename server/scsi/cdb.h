// Decoding of CDBs: sixteen bytes from a stranger become a checked command, or the sense that says
// exactly what is wrong with them.
//
// What decode() lets through needs no further checks against the CDB: extents lie inside the disk
// and within its limits, and enumerations have one of their values.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <variant>

#include "server/scsi/maintenance.h"
#include "server/scsi/opcodes.h"
#include "server/scsi/sense.h"
#include "server/scsi/target_device.h"

namespace mariner::scsi {

// What a CDB is checked against.
struct Geometry {
  std::uint32_t block_bytes = 512;  // a logical block: 512 or 4096
  std::uint64_t block_count = 0;
  std::uint32_t transfer_blocks_max = 0;  // MAXIMUM TRANSFER LENGTH
  bool sanitize = false;                  // whether SANITIZE is known
  bool removable = false;                 // whether START STOP UNIT moves the medium
};

// The longest WRITE SAME, in bytes. Any length would be one record; this one keeps hosts that fill
// a whole disk from holding it for long, and below 65,536 blocks clients do not take it for a
// licence to send as long a WRITE.
inline constexpr std::uint64_t kWriteSameBytesMax = 16 << 20;

// The longest COMPARE AND WRITE, in bytes that are written.
inline constexpr std::uint64_t kCompareAndWriteBytesMax = 64 << 10;

// Logical blocks [lba, lba + blocks).
struct Extent {
  std::uint64_t lba = 0;
  std::uint64_t blocks = 0;
};

[[nodiscard]] std::uint64_t compare_and_write_blocks_max(const Geometry& geometry);

// Why `extent` is not inside the disk: LOGICAL BLOCK ADDRESS OUT OF RANGE, about the first block
// that does not exist. Nothing if it is inside; an empty one may stand at the very end.
[[nodiscard]] std::optional<Sense> check_extent(const Extent& extent, const Geometry& geometry);

enum class PageControl : std::uint8_t { kCurrent = 0, kChangeable = 1, kDefault = 2, kSaved = 3 };

enum class ByteCheck : std::uint8_t {
  kNone = 0,      // the medium only; no data is transferred
  kAll = 1,       // against as many bytes of data
  kOneBlock = 3,  // each block against one block of data
};

struct TestUnitReady {};
struct RequestSense {
  SenseFormat format = SenseFormat::kFixed;
  std::uint32_t allocation_bytes = 0;
};
struct Inquiry {
  bool vital_product_data = false;
  std::uint8_t page = 0;
  std::uint32_t allocation_bytes = 0;
};
struct ModeSense {
  bool ten = false;  // the 10-byte form and its header
  bool block_descriptors = true;
  bool long_lba = false;
  PageControl control = PageControl::kCurrent;
  std::uint8_t page = 0;
  std::uint8_t subpage = 0;
  std::uint32_t allocation_bytes = 0;
};
struct ModeSelect {
  bool ten = false;
  std::uint32_t parameter_bytes = 0;
};
struct StartStopUnit {
  enum class Action : std::uint8_t {
    kStop,
    kStart,
    kEject,  // and stop
    kLoad,   // and start
    kPower,  // to the active, the idle or the standby power condition
    kKeep,   // no other power condition than it is in
  };
  Action action = Action::kStop;
  bool immediate = false;  // answered before it is done
  bool flush = true;       // before the unit is stopped
};
struct PreventAllow {
  bool prevent = false;
};
struct ReadCapacity {
  bool sixteen = false;
  std::uint32_t allocation_bytes = 0;
};
struct Read {
  Extent extent;
};
struct Write {
  Extent extent;
};
struct WriteAndVerify {
  Extent extent;
  ByteCheck check = ByteCheck::kNone;  // kNone or kAll
};
struct Verify {
  Extent extent;
  ByteCheck check = ByteCheck::kNone;
};
struct Prefetch {
  Extent extent;
};
struct SynchronizeCache {};
struct WriteSame {
  Extent extent;
  bool unmap = false;
  bool has_data = true;  // NDOB is zero
};
struct Unmap {
  std::uint32_t parameter_bytes = 0;
};
struct GetLbaStatus {
  std::uint64_t lba = 0;
  std::uint32_t allocation_bytes = 0;
};
struct ReportLuns {
  enum class Select : std::uint8_t { kAddressable = 0, kWellKnown = 1, kAll = 2 };
  Select select = Select::kAddressable;
  std::uint32_t allocation_bytes = 0;
};
struct ReportPortGroups {
  bool extended = false;  // the header that tells of transition times
  std::uint32_t allocation_bytes = 0;
};
struct ReportOpcodes {
  enum class Option : std::uint8_t { kAll = 0, kOpcode = 1, kServiceAction = 2, kEither = 3 };
  Option option = Option::kAll;
  bool timeouts = false;
  std::uint8_t opcode = 0;
  std::uint16_t service_action = 0;
  std::uint32_t allocation_bytes = 0;
};
struct ReportTaskManagement {
  bool extended = false;
  std::uint32_t allocation_bytes = 0;
};

struct Reserve6 {};
struct Release6 {};
struct PersistentReserveIn {
  enum class Action : std::uint8_t {
    kReadKeys = 0,
    kReadReservation = 1,
    kReportCapabilities = 2,
    kReadFullStatus = 3,
  };
  Action action = Action::kReadKeys;
  std::uint32_t allocation_bytes = 0;
};
struct PersistentReserveOut {
  enum class Action : std::uint8_t {
    kRegister = 0,
    kReserve = 1,
    kRelease = 2,
    kClear = 3,
    kPreempt = 4,
    kPreemptAndAbort = 5,
    kRegisterAndIgnoreExistingKey = 6,
    kRegisterAndMove = 7,
  };
  Action action = Action::kRegister;
  std::uint8_t scope = 0;
  std::uint8_t type = 0;
  std::uint32_t parameter_bytes = 0;
};
struct CompareAndWrite {  // data: what to compare with, then what to write
  Extent extent;
};
struct OrWrite {
  Extent extent;
};
struct ReadDefectData {
  bool twelve = false;
  std::uint8_t lists = 0;  // PLIST, GLIST and the format, as in the CDB
  std::uint32_t allocation_bytes = 0;
};

struct ExtendedCopy {
  std::uint32_t parameter_bytes = 0;
};
struct ReceiveCopyResults {
  enum class Kind : std::uint8_t {  // the service actions
    kStatus = 0x00,                 // of the copy `list_id`, as the failure's details are
    kOperatingParameters = 0x03,
    kFailureDetails = 0x04,
  };
  Kind kind = Kind::kStatus;
  std::uint8_t list_id = 0;
  std::uint32_t allocation_bytes = 0;
};

struct PopulateToken {
  std::uint32_t list_id = 0;
  std::uint32_t parameter_bytes = 0;
};
struct WriteUsingToken {
  std::uint32_t list_id = 0;
  std::uint32_t parameter_bytes = 0;
};
struct CopyOperationAbort {
  std::uint32_t list_id = 0;
};
struct ReceiveCopyInformation {
  bool tokens = false;  // RECEIVE ROD TOKEN INFORMATION; otherwise RECEIVE COPY STATUS(LID4)
  std::uint32_t list_id = 0;
  std::uint32_t allocation_bytes = 0;
};
struct ReportRodTokens {
  std::uint32_t allocation_bytes = 0;
};

struct Sanitize {
  enum class Action : std::uint8_t {
    kOverwrite = 0x01,
    kBlockErase = 0x02,
    kExitFailureMode = 0x1F,
  };
  Action action = Action::kBlockErase;
  bool immediate = false;
  bool unrestricted = false;  // AUSE
  std::uint32_t parameter_bytes = 0;
};

struct FormatUnit {
  bool has_list = false;  // FMTDATA
  bool long_header = false;
};

// A Sense when the CDB is refused.
using Decoded =
    std::variant<Sense, TestUnitReady, RequestSense, Inquiry, ModeSense, ModeSelect, StartStopUnit,
                 PreventAllow, ReadCapacity, Read, Write, WriteAndVerify, Verify, Prefetch,
                 SynchronizeCache, WriteSame, Unmap, GetLbaStatus, ReportLuns, ReportPortGroups,
                 ReportOpcodes, ReportTaskManagement, Reserve6, Release6, PersistentReserveIn,
                 PersistentReserveOut, CompareAndWrite, OrWrite, ReadDefectData, ExtendedCopy,
                 ReceiveCopyResults, LogSense, LogSelect, SendDiagnostic, ReceiveDiagnostic,
                 ReadBuffer, WriteBuffer, PopulateToken, WriteUsingToken, CopyOperationAbort,
                 ReceiveCopyInformation, ReportRodTokens, Sanitize, FormatUnit>;

// What the copy manager of a device answers (SPC-4 5.17).
template <typename T>
concept ThirdPartyCopy =
    std::same_as<T, ExtendedCopy> || std::same_as<T, ReceiveCopyResults> ||
    std::same_as<T, PopulateToken> || std::same_as<T, WriteUsingToken> ||
    std::same_as<T, CopyOperationAbort> || std::same_as<T, ReceiveCopyInformation> ||
    std::same_as<T, ReportRodTokens>;

[[nodiscard]] Decoded decode(CdbBytes cdb, const Geometry& geometry);

// What the command transfers; nothing for one that is refused. Bounded by transfer_blocks_max
// blocks for data, 64 KiB for parameter lists and the allocation length for answers.
[[nodiscard]] Transfer transfer_of(const Decoded& decoded, const Geometry& geometry);

}  // namespace mariner::scsi
