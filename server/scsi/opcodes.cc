#include "server/scsi/opcodes.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace mariner::scsi {
namespace {

using enum Operation;

// Bits of byte 1. DPO and FUA are accepted and change nothing: every write is on stable storage
// before it is acknowledged, and there is no cache whose retention could be advised.
constexpr std::uint8_t kDpo = 0x10;
constexpr std::uint8_t kFua = 0x08;
constexpr std::uint8_t kFuaNv = 0x02;
constexpr std::uint8_t kIo = kDpo | kFua | kFuaNv;
constexpr std::uint8_t kByteCheck = 0x06;
constexpr std::uint8_t kImmediate = 0x02;  // PRE-FETCH, SYNCHRONIZE CACHE
constexpr std::uint8_t kSyncNv = 0x04;
constexpr std::uint8_t kUnmapBit = 0x08;
constexpr std::uint8_t kNdob = 0x01;
constexpr std::uint8_t kGroup = 0x1F;
constexpr std::uint8_t kPageFormat = 0x10;
constexpr std::uint8_t kNoBlockDescriptors = 0x08;
constexpr std::uint8_t kLongLba = 0x10;

using Usage = std::array<std::uint8_t, 16>;

// The CDBs that name an extent of blocks differ in their flags only.
constexpr Usage extent6(std::uint8_t opcode) { return {opcode, 0x1F, 0xFF, 0xFF, 0xFF, 0}; }
constexpr Usage extent10(std::uint8_t opcode, std::uint8_t flags) {
  return {opcode, flags, 0xFF, 0xFF, 0xFF, 0xFF, kGroup, 0xFF, 0xFF, 0};
}
constexpr Usage extent12(std::uint8_t opcode, std::uint8_t flags) {
  return {opcode, flags, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, kGroup, 0};
}
constexpr Usage extent16(std::uint8_t opcode, std::uint8_t flags) {
  return {opcode, flags, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,   0xFF,
          0xFF,   0xFF,  0xFF, 0xFF, 0xFF, 0xFF, kGroup, 0};
}
// CDBs of SERVICE ACTION IN(16): an LBA, where it is used, and an allocation length.
constexpr Usage service16(std::uint8_t action, std::uint8_t lba) {
  return {0x9E, action, lba, lba, lba, lba, lba, lba, lba, lba, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0};
}

constexpr auto kNoAction = std::nullopt;

constexpr OpcodeInfo reserve_in(std::uint8_t action, const char* name) {
  return {kPersistentReserveIn, name, 0x5E, action, 10, {0x5E, action, 0, 0, 0, 0, 0, 0xFF, 0xFF}};
}
constexpr OpcodeInfo reserve_out(std::uint8_t action, const char* name) {
  return {kPersistentReserveOut,
          name,
          0x5F,
          action,
          10,
          {0x5F, action, 0xFF, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF}};
}

constexpr OpcodeInfo sanitize(std::uint8_t action, const char* name) {
  constexpr std::uint8_t kImmediately = 0x80;
  constexpr std::uint8_t kUnrestrictedExit = 0x20;
  return {kSanitize,
          name,
          0x48,
          action,
          10,
          {0x48, static_cast<std::uint8_t>(kImmediately | kUnrestrictedExit | action), 0, 0, 0, 0,
           0, 0xFF, 0xFF}};
}
// THIRD-PARTY COPY OUT and IN with list identifiers of 32 bits, at different places.
constexpr OpcodeInfo token_out(Operation operation, std::uint8_t action, const char* name) {
  return {operation,
          name,
          0x83,
          action,
          16,
          {0x83, action, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, kGroup}};
}
constexpr OpcodeInfo copy_in(Operation operation, std::uint8_t action, std::uint8_t identifier,
                             const char* name) {
  return {operation,
          name,
          0x84,
          action,
          16,
          {0x84, action, identifier, identifier, identifier, identifier, 0, 0, 0, 0, 0xFF, 0xFF,
           0xFF, 0xFF}};
}

constexpr OpcodeInfo kTable[] = {
    {kTestUnitReady, "TEST UNIT READY", 0x00, kNoAction, 6, {0x00}},
    {kRequestSense, "REQUEST SENSE", 0x03, kNoAction, 6, {0x03, 0x01, 0, 0, 0xFF}},
    // Protection information is not to be had; vendor specific and obsolete bytes are not used.
    {kFormatUnit, "FORMAT UNIT", 0x04, kNoAction, 6, {0x04, 0x3F}},
    {kRead, "READ(6)", 0x08, kNoAction, 6, extent6(0x08)},
    {kWrite, "WRITE(6)", 0x0A, kNoAction, 6, extent6(0x0A)},
    {kInquiry, "INQUIRY", 0x12, kNoAction, 6, {0x12, 0x01, 0xFF, 0xFF, 0xFF}},
    {kModeSelect, "MODE SELECT(6)", 0x15, kNoAction, 6, {0x15, kPageFormat, 0, 0, 0xFF}},
    {kReserve6, "RESERVE(6)", 0x16, kNoAction, 6, {0x16, 0, 0xFF}},
    {kRelease6, "RELEASE(6)", 0x17, kNoAction, 6, {0x17, 0, 0xFF}},
    {kModeSense,
     "MODE SENSE(6)",
     0x1A,
     kNoAction,
     6,
     {0x1A, kNoBlockDescriptors, 0xFF, 0xFF, 0xFF}},
    {kStartStopUnit,
     "START STOP UNIT",
     kStartStopOpcode,
     kNoAction,
     6,
     {kStartStopOpcode, 0x01, 0, 0, 0xF7}},
    {kReceiveDiagnostic,
     "RECEIVE DIAGNOSTIC RESULTS",
     0x1C,
     kNoAction,
     6,
     {0x1C, 0x01, 0xFF, 0xFF, 0xFF}},
    {kSendDiagnostic, "SEND DIAGNOSTIC", 0x1D, kNoAction, 6, {0x1D, 0xF7, 0, 0xFF, 0xFF}},
    {kPreventAllow, "PREVENT ALLOW MEDIUM REMOVAL", 0x1E, kNoAction, 6, {0x1E, 0, 0, 0, 0x01}},
    {kReadCapacity, "READ CAPACITY(10)", 0x25, kNoAction, 10, {0x25}},
    {kRead, "READ(10)", 0x28, kNoAction, 10, extent10(0x28, kIo)},
    {kWrite, "WRITE(10)", 0x2A, kNoAction, 10, extent10(0x2A, kIo)},
    {kWriteAndVerify, "WRITE AND VERIFY(10)", 0x2E, kNoAction, 10,
     extent10(0x2E, kDpo | kByteCheck)},
    {kVerify, "VERIFY(10)", 0x2F, kNoAction, 10, extent10(0x2F, kDpo | kByteCheck)},
    {kPrefetch, "PRE-FETCH(10)", 0x34, kNoAction, 10, extent10(0x34, kImmediate)},
    {kSynchronizeCache, "SYNCHRONIZE CACHE(10)", 0x35, kNoAction, 10,
     extent10(0x35, kImmediate | kSyncNv)},
    {kReadDefectData,
     "READ DEFECT DATA(10)",
     0x37,
     kNoAction,
     10,
     {0x37, 0, 0x1F, 0, 0, 0, 0, 0xFF, 0xFF}},
    {kWriteBuffer,
     "WRITE BUFFER",
     0x3B,
     kNoAction,
     10,
     {0x3B, 0x1F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}},
    {kReadBuffer,
     "READ BUFFER",
     0x3C,
     kNoAction,
     10,
     {0x3C, 0x1F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}},
    {kWriteSame, "WRITE SAME(10)", 0x41, kNoAction, 10, extent10(0x41, kUnmapBit)},
    {kUnmap, "UNMAP", 0x42, kNoAction, 10, {0x42, 0, 0, 0, 0, 0, kGroup, 0xFF, 0xFF}},
    sanitize(0x01, "SANITIZE, OVERWRITE"),
    sanitize(0x02, "SANITIZE, BLOCK ERASE"),
    sanitize(0x1F, "SANITIZE, EXIT FAILURE MODE"),
    {kLogSelect, "LOG SELECT", 0x4C, kNoAction, 10, {0x4C, 0x02, 0xFF, 0xFF, 0, 0, 0, 0xFF, 0xFF}},
    {kLogSense, "LOG SENSE", 0x4D, kNoAction, 10, {0x4D, 0, 0xFF, 0xFF, 0, 0xFF, 0xFF, 0xFF, 0xFF}},
    {kModeSelect,
     "MODE SELECT(10)",
     0x55,
     kNoAction,
     10,
     {0x55, kPageFormat, 0, 0, 0, 0, 0, 0xFF, 0xFF}},
    {kModeSense,
     "MODE SENSE(10)",
     0x5A,
     kNoAction,
     10,
     {0x5A, kNoBlockDescriptors | kLongLba, 0xFF, 0xFF, 0, 0, 0, 0xFF, 0xFF}},
    reserve_in(0, "READ KEYS"),
    reserve_in(1, "READ RESERVATION"),
    reserve_in(2, "REPORT CAPABILITIES"),
    reserve_in(3, "READ FULL STATUS"),
    reserve_out(0, "REGISTER"),
    reserve_out(1, "RESERVE"),
    reserve_out(2, "RELEASE"),
    reserve_out(3, "CLEAR"),
    reserve_out(4, "PREEMPT"),
    reserve_out(5, "PREEMPT AND ABORT"),
    reserve_out(6, "REGISTER AND IGNORE EXISTING KEY"),
    reserve_out(7, "REGISTER AND MOVE"),
    {kExtendedCopy,
     "EXTENDED COPY(LID1)",
     0x83,
     0x00,
     16,
     {0x83, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF}},
    token_out(kPopulateToken, 0x10, "POPULATE TOKEN"),
    token_out(kWriteUsingToken, 0x11, "WRITE USING TOKEN"),
    {kCopyOperationAbort,
     "COPY OPERATION ABORT",
     0x83,
     0x1C,
     16,
     {0x83, 0x1C, 0xFF, 0xFF, 0xFF, 0xFF}},
    {kReceiveCopyResults,
     "RECEIVE COPY STATUS(LID1)",
     0x84,
     0x00,
     16,
     {0x84, 0, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF}},
    {kReceiveCopyResults,
     "RECEIVE COPY OPERATING PARAMETERS",
     0x84,
     0x03,
     16,
     {0x84, 0x03, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF}},
    {kReceiveCopyResults,
     "RECEIVE COPY FAILURE DETAILS(LID1)",
     0x84,
     0x04,
     16,
     {0x84, 0x04, 0xFF, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF}},
    copy_in(kReceiveCopyStatus, 0x05, 0xFF, "RECEIVE COPY STATUS(LID4)"),
    copy_in(kReceiveRodTokens, 0x07, 0xFF, "RECEIVE ROD TOKEN INFORMATION"),
    copy_in(kReportRodTokens, 0x08, 0, "REPORT ALL ROD TOKENS"),
    {kRead, "READ(16)", 0x88, kNoAction, 16, extent16(0x88, kIo)},
    {kCompareAndWrite,
     "COMPARE AND WRITE",
     0x89,
     kNoAction,
     16,
     {0x89, kIo, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0xFF, kGroup}},
    {kWrite, "WRITE(16)", 0x8A, kNoAction, 16, extent16(0x8A, kIo)},
    {kOrWrite, "ORWRITE(16)", 0x8B, kNoAction, 16, extent16(0x8B, kIo)},
    {kWriteAndVerify, "WRITE AND VERIFY(16)", 0x8E, kNoAction, 16,
     extent16(0x8E, kDpo | kByteCheck)},
    {kVerify, "VERIFY(16)", 0x8F, kNoAction, 16, extent16(0x8F, kDpo | kByteCheck)},
    {kPrefetch, "PRE-FETCH(16)", 0x90, kNoAction, 16, extent16(0x90, kImmediate)},
    {kSynchronizeCache, "SYNCHRONIZE CACHE(16)", 0x91, kNoAction, 16,
     extent16(0x91, kImmediate | kSyncNv)},
    {kWriteSame, "WRITE SAME(16)", 0x93, kNoAction, 16, extent16(0x93, kUnmapBit | kNdob)},
    {kWriteAtomic,
     "WRITE ATOMIC(16)",
     0x9C,
     kNoAction,
     16,
     {0x9C, kDpo | kFua, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
      kGroup}},
    {kReadCapacity, "READ CAPACITY(16)", 0x9E, 0x10, 16, service16(0x10, 0)},
    {kGetLbaStatus, "GET LBA STATUS", 0x9E, 0x12, 16, service16(0x12, 0xFF)},
    {kReportLuns,
     "REPORT LUNS",
     0xA0,
     kNoAction,
     12,
     {0xA0, 0, 0xFF, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF}},
    {kReportPortGroups,
     "REPORT TARGET PORT GROUPS",
     0xA3,
     0x0A,
     12,
     {0xA3, 0xEA, 0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF}},
    {kReportOpcodes,
     "REPORT SUPPORTED OPERATION CODES",
     0xA3,
     0x0C,
     12,
     {0xA3, 0x0C, 0x87, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}},
    {kReportTaskManagement,
     "REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS",
     0xA3,
     0x0D,
     12,
     {0xA3, 0x0D, 0x80, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF}},
    {kRead, "READ(12)", 0xA8, kNoAction, 12, extent12(0xA8, kIo)},
    {kWrite, "WRITE(12)", 0xAA, kNoAction, 12, extent12(0xAA, kIo)},
    {kWriteAndVerify, "WRITE AND VERIFY(12)", 0xAE, kNoAction, 12,
     extent12(0xAE, kDpo | kByteCheck)},
    {kVerify, "VERIFY(12)", 0xAF, kNoAction, 12, extent12(0xAF, kDpo | kByteCheck)},
    {kReadDefectData,
     "READ DEFECT DATA(12)",
     0xB7,
     kNoAction,
     12,
     {0xB7, 0x1F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF}},
};
constexpr std::size_t kTableSize = std::size(kTable);
static_assert(kTableSize < std::numeric_limits<std::uint8_t>::max());
static_assert(std::ranges::is_sorted(kTable, [](const OpcodeInfo& a, const OpcodeInfo& b) {
  return a.opcode != b.opcode ? a.opcode < b.opcode : a.service_action < b.service_action;
}));

// For each opcode, its first entry: kFirst[op] to kFirst[op + 1] are its entries.
constexpr auto kFirst = [] {
  std::array<std::uint8_t, 257> first{};
  std::uint8_t entry = 0;
  for (std::size_t opcode = 0; opcode < first.size(); ++opcode) {
    while (entry < kTableSize && kTable[entry].opcode < opcode) ++entry;
    first[opcode] = entry;
  }
  return first;
}();
static_assert(kFirst[256] == kTableSize);

}  // namespace

ReservationAccess reservation_access(Operation operation) {
  switch (operation) {
    case kTestUnitReady:
    case kRequestSense:
    case kInquiry:
    case kReadCapacity:
    case kReportLuns:
    case kReportPortGroups:
    case kLogSense:
    case kPersistentReserveIn:
    case kPersistentReserveOut:  // the service action says
    case kReserve6:              // have rules of their own
    case kRelease6:
    case kCopyOperationAbort:  // whoever is fenced off may still end what it began, and ask
    case kReceiveCopyStatus:
    case kReceiveRodTokens:
    case kReportRodTokens: return ReservationAccess::kFree;
    case kModeSense:
    case kRead:
    case kVerify:
    case kPrefetch:
    case kGetLbaStatus:
    case kReportOpcodes:
    case kReportTaskManagement:
    case kReceiveDiagnostic:
    case kReadBuffer:
    case kPopulateToken:
    case kReadDefectData: return ReservationAccess::kReads;
    case kModeSelect:
    case kStartStopUnit:  // but START
    case kPreventAllow:   // but PREVENT = 0
    case kWrite:
    case kWriteAndVerify:
    case kSynchronizeCache:
    case kWriteSame:
    case kUnmap:
    case kCompareAndWrite:
    case kOrWrite:
    case kExtendedCopy:
    case kReceiveCopyResults:
    case kLogSelect:
    case kSendDiagnostic:
    case kWriteBuffer:
    case kWriteUsingToken:
    case kSanitize:
    case kFormatUnit:
    case kWriteAtomic: return ReservationAccess::kWrites;
  }
  return ReservationAccess::kWrites;
}

bool accesses_medium(Operation operation) {
  switch (operation) {
    case kTestUnitReady:
    case kRead:
    case kWrite:
    case kWriteAndVerify:
    case kVerify:
    case kPrefetch:
    case kSynchronizeCache:
    case kWriteSame:
    case kUnmap:
    case kFormatUnit:
    case kGetLbaStatus:
    case kCompareAndWrite:
    case kOrWrite:
    case kWriteAtomic:
    case kPopulateToken:
    case kWriteUsingToken:
    case kExtendedCopy: return true;
    default: return false;
  }
}

bool is_use(Operation operation) {
  return operation == kSanitize || (operation != kTestUnitReady && accesses_medium(operation));
}

bool needs_medium(Operation operation) {
  switch (operation) {
    case kReadCapacity:
    case kReadDefectData:
    case kSanitize: return true;
    default: return accesses_medium(operation);
  }
}

std::span<const OpcodeInfo> opcode_table() { return kTable; }

std::span<const OpcodeInfo> entries_of(std::uint8_t opcode) {
  return {kTable + kFirst[opcode], kTable + kFirst[opcode + 1u]};
}

const OpcodeInfo* find_opcode(std::uint8_t opcode, std::uint16_t service_action) {
  for (const OpcodeInfo& entry : entries_of(opcode)) {
    if (!entry.service_action || *entry.service_action == service_action) return &entry;
  }
  return nullptr;
}

}  // namespace mariner::scsi
