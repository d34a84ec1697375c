#include "server/scsi/cdb.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "proto/bytes.h"

namespace mariner::scsi {
namespace {

// The first byte with bits that this command does not use, with the most significant of them.
std::optional<Sense> unused_bits(CdbBytes cdb, const OpcodeInfo& info) {
  for (std::uint16_t i = 1; i < info.cdb_bytes; ++i) {
    const auto excess = static_cast<std::uint8_t>(cdb[i] & ~info.usage[i]);
    if (excess != 0) {
      return invalid_field_in_cdb(i, static_cast<std::uint8_t>(std::bit_width(excess) - 1));
    }
  }
  return std::nullopt;
}

// Where a CDB of this length holds its number of blocks; its LBA ends before.
struct LengthField {
  std::uint8_t byte;
  std::uint64_t value;
};

LengthField length_field(CdbBytes cdb, std::uint8_t cdb_bytes) {
  switch (cdb_bytes) {
    case 6: return {4, cdb[4]};
    case 10: return {7, load_be<std::uint16_t>(&cdb[7])};
    case 12: return {6, load_be<std::uint32_t>(&cdb[6])};
    default: return {10, load_be<std::uint32_t>(&cdb[10])};
  }
}

std::uint64_t lba_field(CdbBytes cdb, std::uint8_t cdb_bytes) {
  switch (cdb_bytes) {
    case 6: return load_be24(&cdb[1]) & 0x1F'FFFF;
    case 16: return load_be<std::uint64_t>(&cdb[2]);
    default: return load_be<std::uint32_t>(&cdb[2]);
  }
}

struct ExtentOrSense {
  Extent extent;
  std::optional<Sense> sense;
};

// The extent of a READ, WRITE or VERIFY: inside the disk and no longer than one transfer may be.
ExtentOrSense transfer_extent(CdbBytes cdb, const OpcodeInfo& info, const Geometry& geometry) {
  LengthField length = length_field(cdb, info.cdb_bytes);
  // SBC-3 5.10: a 6-byte CDB that says 0 means 256.
  if (info.cdb_bytes == 6 && length.value == 0) length.value = 256;
  const Extent extent{lba_field(cdb, info.cdb_bytes), length.value};
  if (auto sense = check_extent(extent, geometry)) return {extent, std::move(sense)};
  if (length.value > geometry.transfer_blocks_max) {  // SBC-3 6.6.3, MAXIMUM TRANSFER LENGTH
    return {extent, invalid_field_in_cdb(length.byte)};
  }
  return {extent, std::nullopt};
}

// The extent of a command for which no blocks means all blocks to the end of the disk.
ExtentOrSense extent_to_end(CdbBytes cdb, const OpcodeInfo& info, const Geometry& geometry) {
  Extent extent{lba_field(cdb, info.cdb_bytes), length_field(cdb, info.cdb_bytes).value};
  const bool to_end = extent.blocks == 0;
  if (to_end) extent.blocks = 1;  // there must be a first block
  if (auto sense = check_extent(extent, geometry)) return {extent, std::move(sense)};
  if (to_end) extent.blocks = geometry.block_count - extent.lba;
  return {extent, std::nullopt};
}

// The length of the answer or of the parameter list, in the 6- and 10-byte forms of one command.
std::uint32_t parameter_length(CdbBytes cdb, bool ten) {
  if (ten) return load_be<std::uint16_t>(&cdb[7]);
  return cdb[4];
}

ByteCheck byte_check(CdbBytes cdb) { return static_cast<ByteCheck>((cdb[1] >> 1) & 3); }
constexpr auto kReservedByteCheck = static_cast<ByteCheck>(2);
constexpr std::uint8_t kByteCheckHighBit = 2;

Decoded decode_mode_sense(CdbBytes cdb, const OpcodeInfo& info) {
  const bool ten = info.cdb_bytes == 10;
  return ModeSense{.ten = ten,
                   .block_descriptors = (cdb[1] & 0x08) == 0,
                   .long_lba = (cdb[1] & 0x10) != 0,
                   .control = static_cast<PageControl>(cdb[2] >> 6),
                   .page = static_cast<std::uint8_t>(cdb[2] & 0x3F),
                   .subpage = cdb[3],
                   .allocation_bytes = parameter_length(cdb, ten)};
}

Decoded decode_mode_select(CdbBytes cdb, const OpcodeInfo& info) {
  // Without PF the pages would be in a vendor's own format, of which there is none.
  if ((cdb[1] & 0x10) == 0) return invalid_field_in_cdb(1, 4);
  const bool ten = info.cdb_bytes == 10;
  return ModeSelect{.ten = ten, .parameter_bytes = parameter_length(cdb, ten)};
}

Decoded decode_write_and_verify(CdbBytes cdb, const OpcodeInfo& info, const Geometry& geometry) {
  const ByteCheck check = byte_check(cdb);
  if (check != ByteCheck::kNone && check != ByteCheck::kAll) {
    return invalid_field_in_cdb(1, kByteCheckHighBit);
  }
  const auto [extent, sense] = transfer_extent(cdb, info, geometry);
  if (sense) return *sense;
  return WriteAndVerify{extent, check};
}

Decoded decode_verify(CdbBytes cdb, const OpcodeInfo& info, const Geometry& geometry) {
  const ByteCheck check = byte_check(cdb);
  if (check == kReservedByteCheck) return invalid_field_in_cdb(1, kByteCheckHighBit);
  const auto [extent, sense] = transfer_extent(cdb, info, geometry);
  if (sense) return *sense;
  return Verify{extent, check};
}

Decoded decode_write_same(CdbBytes cdb, const OpcodeInfo& info, const Geometry& geometry) {
  const LengthField length = length_field(cdb, info.cdb_bytes);
  const Extent extent{lba_field(cdb, info.cdb_bytes), length.value};
  if (auto sense = check_extent(extent, geometry)) return *std::move(sense);
  // WSNZ: no blocks would mean all to the end of the disk, which nobody should ask for by mistake.
  if (length.value == 0 || length.value > kWriteSameBytesMax / geometry.block_bytes) {
    return invalid_field_in_cdb(length.byte);
  }
  return WriteSame{extent, (cdb[1] & 0x08) != 0, (cdb[1] & 0x01) == 0};
}

// A parameter list longer than any that is taken.
constexpr std::uint32_t kParameterBytesMax = 64 << 10;

Decoded decode_reserve_out(CdbBytes cdb) {
  const auto bytes = load_be<std::uint32_t>(&cdb[5]);
  if (bytes > kParameterBytesMax) return illegal_request(asc::kParameterListLengthError);
  return PersistentReserveOut{.action = static_cast<PersistentReserveOut::Action>(cdb[1] & 0x1F),
                              .scope = static_cast<std::uint8_t>(cdb[2] >> 4),
                              .type = static_cast<std::uint8_t>(cdb[2] & 0x0F),
                              .parameter_bytes = bytes};
}

Decoded decode_compare_and_write(CdbBytes cdb, const Geometry& geometry) {
  const Extent extent{load_be<std::uint64_t>(&cdb[2]), cdb[13]};
  if (auto sense = check_extent(extent, geometry)) return *std::move(sense);
  if (extent.blocks > compare_and_write_blocks_max(geometry)) return invalid_field_in_cdb(13);
  return CompareAndWrite{extent};
}

Decoded decode_write_atomic(CdbBytes cdb, const Geometry& geometry) {
  const Extent extent{load_be<std::uint64_t>(&cdb[2]), load_be<std::uint16_t>(&cdb[12])};
  if (auto sense = check_extent(extent, geometry)) return *std::move(sense);
  if (extent.blocks > geometry.transfer_blocks_max) return invalid_field_in_cdb(12);
  // Every write is one record, seen whole or not at all: boundaries within it are of no use.
  if (load_be<std::uint16_t>(&cdb[10]) != 0) return invalid_field_in_cdb(10);
  return Write{extent};
}

// The list of a third-party copy: `With` its identifier and length.
template <typename With>
Decoded decode_token_list(CdbBytes cdb) {
  const auto bytes = load_be<std::uint32_t>(&cdb[10]);
  if (bytes > kParameterBytesMax) return illegal_request(asc::kParameterListLengthError);
  return With{load_be<std::uint32_t>(&cdb[6]), bytes};
}

Decoded decode_sanitize(CdbBytes cdb, const Geometry& geometry) {
  const Sanitize command{static_cast<Sanitize::Action>(cdb[1] & 0x1F), (cdb[1] & 0x80) != 0,
                         (cdb[1] & 0x20) != 0, load_be<std::uint16_t>(&cdb[7])};
  // SBC-4 table 110: a pattern of a block at most, behind four bytes; or nothing.
  const bool right =
      command.action == Sanitize::Action::kOverwrite
          ? command.parameter_bytes > 4 && command.parameter_bytes < geometry.block_bytes + 5
          : command.parameter_bytes == 0;
  if (!right) return invalid_field_in_cdb(7);
  return command;
}

// SBC-3 5.25. There is one idle and one standby condition only: POWER CONDITION MODIFIER is 0.
Decoded decode_start_stop(CdbBytes cdb, const Geometry& geometry) {
  using Action = StartStopUnit::Action;
  const bool start = (cdb[4] & 0x01) != 0;
  const bool moves = (cdb[4] & kLoadEject) != 0;
  StartStopUnit command{.immediate = (cdb[1] & 0x01) != 0, .flush = (cdb[4] & 0x04) == 0};
  if (moves && !geometry.removable) return invalid_field_in_cdb(4, std::uint8_t{1});
  switch (cdb[4] >> 4) {
    case 0x0:
      command.action = moves ? (start ? Action::kLoad : Action::kEject)
                             : (start ? Action::kStart : Action::kStop);
      break;
    case 0x1:  // ACTIVE
    case 0x2:  // IDLE
    case 0x3:  // STANDBY
    case 0xA:  // FORCE_IDLE_0
    case 0xB:  // FORCE_STANDBY_0
      command.action = Action::kPower;
      break;
    // LU_CONTROL is for timers, of which there are none. What is reserved is taken for as much:
    // SBC-3 would have it refused, libiscsi's tests want it accepted, and it does nothing.
    default: command.action = Action::kKeep; break;
  }
  return command;
}

Decoded decode_format_unit(CdbBytes cdb) {
  const FormatUnit command{(cdb[1] & 0x10) != 0, (cdb[1] & 0x20) != 0};
  // SBC-3 table 32: an empty list of defects may be in any of the formats; without a list, none is
  // named.
  constexpr unsigned kFormats = 6;  // up to that of physical sectors
  if ((cdb[1] & 0x07u) >= (command.has_list ? kFormats : 1)) return invalid_field_in_cdb(1, 2);
  return command;
}

Decoded decode_report_luns(CdbBytes cdb) {
  if (cdb[2] > static_cast<std::uint8_t>(ReportLuns::Select::kAll)) return invalid_field_in_cdb(2);
  return ReportLuns{static_cast<ReportLuns::Select>(cdb[2]), load_be<std::uint32_t>(&cdb[6])};
}

Decoded decode_report_port_groups(CdbBytes cdb) {
  const std::uint8_t format = cdb[1] >> 5;
  if (format > 1) return invalid_field_in_cdb(1, std::uint8_t{7});
  return ReportPortGroups{format == 1, load_be<std::uint32_t>(&cdb[6])};
}

Decoded decode_report_opcodes(CdbBytes cdb) {
  const auto option = static_cast<std::uint8_t>(cdb[2] & 0x07);
  if (option > static_cast<std::uint8_t>(ReportOpcodes::Option::kEither)) {
    return invalid_field_in_cdb(2, std::uint8_t{2});
  }
  return ReportOpcodes{.option = static_cast<ReportOpcodes::Option>(option),
                       .timeouts = (cdb[2] & 0x80) != 0,
                       .opcode = cdb[3],
                       .service_action = load_be<std::uint16_t>(&cdb[4]),
                       .allocation_bytes = load_be<std::uint32_t>(&cdb[6])};
}

}  // namespace

std::uint64_t compare_and_write_blocks_max(const Geometry& geometry) {
  return std::min<std::uint64_t>(
      {kCompareAndWriteBytesMax / geometry.block_bytes, 0xFF, geometry.transfer_blocks_max / 2});
}

std::optional<Sense> check_extent(const Extent& extent, const Geometry& geometry) {
  if (extent.lba <= geometry.block_count && extent.blocks <= geometry.block_count - extent.lba) {
    return std::nullopt;
  }
  Sense sense = illegal_request(asc::kLbaOutOfRange);
  sense.information = std::max(extent.lba, geometry.block_count);
  return sense;
}

Decoded decode(CdbBytes cdb, const Geometry& geometry) {
  const OpcodeInfo* info = find_opcode(cdb);
  if (cdb[0] == kSanitizeOpcode && !geometry.sanitize) {
    return illegal_request(asc::kInvalidOpcode);
  }
  if (info == nullptr) {
    // An opcode whose service action is unknown: the action is the field at fault (SPC-4 4.2.5.2).
    if (!entries_of(cdb[0]).empty()) return invalid_field_in_cdb(1, std::uint8_t{4});
    return illegal_request(asc::kInvalidOpcode);
  }
  if (auto sense = unused_bits(cdb, *info)) return *std::move(sense);

  switch (info->operation) {
    case Operation::kTestUnitReady: return TestUnitReady{};
    case Operation::kRequestSense:
      return RequestSense{(cdb[1] & 1) != 0 ? SenseFormat::kDescriptor : SenseFormat::kFixed,
                          cdb[4]};
    case Operation::kInquiry: {
      const bool vital_product_data = (cdb[1] & 1) != 0;
      if (!vital_product_data && cdb[2] != 0) return invalid_field_in_cdb(2);
      return Inquiry{vital_product_data, cdb[2], load_be<std::uint16_t>(&cdb[3])};
    }
    case Operation::kModeSelect: return decode_mode_select(cdb, *info);
    case Operation::kModeSense: return decode_mode_sense(cdb, *info);
    case Operation::kStartStopUnit: return decode_start_stop(cdb, geometry);
    case Operation::kPreventAllow: return PreventAllow{(cdb[4] & 0x01) != 0};
    case Operation::kReadCapacity:
      if (info->cdb_bytes == 10) return ReadCapacity{false, 8};
      return ReadCapacity{true, load_be<std::uint32_t>(&cdb[10])};
    case Operation::kRead: {
      const auto [extent, sense] = transfer_extent(cdb, *info, geometry);
      if (sense) return *sense;
      return Read{extent};
    }
    case Operation::kWrite: {
      const auto [extent, sense] = transfer_extent(cdb, *info, geometry);
      if (sense) return *sense;
      return Write{extent};
    }
    case Operation::kWriteAndVerify: return decode_write_and_verify(cdb, *info, geometry);
    case Operation::kVerify: return decode_verify(cdb, *info, geometry);
    case Operation::kPrefetch: {
      const auto [extent, sense] = extent_to_end(cdb, *info, geometry);
      if (sense) return *sense;
      return Prefetch{extent};
    }
    case Operation::kSynchronizeCache: {
      const auto [extent, sense] = extent_to_end(cdb, *info, geometry);
      if (sense) return *sense;
      return SynchronizeCache{};
    }
    case Operation::kWriteSame: return decode_write_same(cdb, *info, geometry);
    case Operation::kUnmap: return Unmap{load_be<std::uint16_t>(&cdb[7])};
    case Operation::kGetLbaStatus: {
      const std::uint64_t lba = load_be<std::uint64_t>(&cdb[2]);
      if (auto sense = check_extent({lba, 1}, geometry)) return *std::move(sense);
      return GetLbaStatus{lba, load_be<std::uint32_t>(&cdb[10])};
    }
    case Operation::kReportLuns: return decode_report_luns(cdb);
    case Operation::kReportPortGroups: return decode_report_port_groups(cdb);
    case Operation::kReportOpcodes: return decode_report_opcodes(cdb);
    case Operation::kReportTaskManagement:
      return ReportTaskManagement{(cdb[2] & 0x80) != 0, load_be<std::uint32_t>(&cdb[6])};
    case Operation::kReserve6: return Reserve6{};
    case Operation::kRelease6: return Release6{};
    case Operation::kPersistentReserveIn:
      return PersistentReserveIn{static_cast<PersistentReserveIn::Action>(cdb[1] & 0x1F),
                                 load_be<std::uint16_t>(&cdb[7])};
    case Operation::kPersistentReserveOut: return decode_reserve_out(cdb);
    case Operation::kCompareAndWrite: return decode_compare_and_write(cdb, geometry);
    case Operation::kOrWrite: {
      const auto [extent, sense] = transfer_extent(cdb, *info, geometry);
      if (sense) return *sense;
      return OrWrite{extent};
    }
    case Operation::kWriteAtomic: return decode_write_atomic(cdb, geometry);
    case Operation::kExtendedCopy: {
      const auto bytes = load_be<std::uint32_t>(&cdb[10]);
      if (bytes > kParameterBytesMax) return illegal_request(asc::kParameterListLengthError);
      return ExtendedCopy{bytes};
    }
    case Operation::kReceiveCopyResults:
      return ReceiveCopyResults{static_cast<ReceiveCopyResults::Kind>(*info->service_action),
                                cdb[2], load_be<std::uint32_t>(&cdb[10])};
    case Operation::kLogSelect:
    case Operation::kLogSense:
    case Operation::kSendDiagnostic:
    case Operation::kReceiveDiagnostic:
    case Operation::kReadBuffer:
    case Operation::kWriteBuffer:
      return std::visit([](auto&& command) -> Decoded { return std::move(command); },
                        decode_maintenance(cdb, info->operation));
    case Operation::kPopulateToken: return decode_token_list<PopulateToken>(cdb);
    case Operation::kWriteUsingToken: return decode_token_list<WriteUsingToken>(cdb);
    case Operation::kCopyOperationAbort: return CopyOperationAbort{load_be<std::uint32_t>(&cdb[2])};
    case Operation::kReceiveCopyStatus:
    case Operation::kReceiveRodTokens:
      return ReceiveCopyInformation{info->operation == Operation::kReceiveRodTokens,
                                    load_be<std::uint32_t>(&cdb[2]),
                                    load_be<std::uint32_t>(&cdb[10])};
    case Operation::kSanitize: return decode_sanitize(cdb, geometry);
    case Operation::kFormatUnit: return decode_format_unit(cdb);
    case Operation::kReportRodTokens: return ReportRodTokens{load_be<std::uint32_t>(&cdb[10])};
    case Operation::kReadDefectData: {
      const bool twelve = info->cdb_bytes == 12;
      return ReadDefectData{twelve, cdb[twelve ? 1 : 2],
                            twelve ? load_be<std::uint32_t>(&cdb[6])
                                   : std::uint32_t{load_be<std::uint16_t>(&cdb[7])}};
    }
  }
  CHECK_MSG(false, "an operation of the table is not decoded");
}

namespace {

struct TransferOf {
  const Geometry& geometry;

  [[nodiscard]] Transfer in(std::uint64_t bytes) const {
    return bytes == 0 ? Transfer{} : Transfer{Transfer::Direction::kToInitiator, bytes};
  }
  [[nodiscard]] Transfer out(std::uint64_t bytes) const {
    return bytes == 0 ? Transfer{} : Transfer{Transfer::Direction::kToTarget, bytes};
  }

  // What has no data: what is refused, TEST UNIT READY, START STOP UNIT and the like.
  template <typename T>
  Transfer operator()(const T& command) const {
    if constexpr (requires { command.allocation_bytes; }) return in(command.allocation_bytes);
    if constexpr (requires { command.parameter_bytes; }) return out(command.parameter_bytes);
    return {};
  }
  // Its CDB does not say how long its list is: a header and the longest pattern, at most.
  Transfer operator()(const FormatUnit& command) const {
    if (!command.has_list) return {};
    const std::uint64_t header = command.long_header ? 8 : 4;
    return {Transfer::Direction::kToTarget, header + 4 + geometry.block_bytes, true};
  }
  Transfer operator()(const Read& command) const {
    return in(command.extent.blocks * geometry.block_bytes);
  }
  Transfer operator()(const Write& command) const {
    return out(command.extent.blocks * geometry.block_bytes);
  }
  Transfer operator()(const OrWrite& command) const {
    return out(command.extent.blocks * geometry.block_bytes);
  }
  Transfer operator()(const CompareAndWrite& command) const {
    return out(2 * command.extent.blocks * geometry.block_bytes);
  }
  Transfer operator()(const WriteAndVerify& command) const {
    return out(command.extent.blocks * geometry.block_bytes);
  }
  Transfer operator()(const Verify& command) const {
    switch (command.check) {
      case ByteCheck::kNone: return {};
      case ByteCheck::kAll: return out(command.extent.blocks * geometry.block_bytes);
      case ByteCheck::kOneBlock: return out(command.extent.blocks == 0 ? 0 : geometry.block_bytes);
    }
    CHECK_MSG(false, "a byte check that decode() refuses");
  }
  Transfer operator()(const WriteSame& command) const {
    return out(command.has_data ? geometry.block_bytes : 0);
  }
};

}  // namespace

Transfer transfer_of(const Decoded& decoded, const Geometry& geometry) {
  Transfer transfer = std::visit(TransferOf{geometry}, decoded);
  transfer.unit_blocks = geometry.block_count;
  return transfer;
}

}  // namespace mariner::scsi
