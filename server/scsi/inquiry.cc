#include "server/scsi/inquiry.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <string_view>

#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/units.h"
#include "server/scsi/report_port_groups.h"
#include "server/scsi/self_test.h"
#include "server/scsi/third_party_copy_page.h"

namespace mariner::scsi {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t kDirectAccess = 0x00;
// The longer, the fewer records; beyond this they cost a byte no less.
constexpr std::uint32_t kOptimalTransferBytes = 1 << 20;
constexpr std::uint8_t kVersionSpc4 = 0x06;
constexpr std::size_t kStandardBytes = 96;
constexpr std::uint16_t kVersionDescriptors[] = {
    0x00A0,  // SAM-5
    0x0960,  // iSCSI
    0x0460,  // SPC-4
    0x04C0,  // SBC-3
};

// Left-aligned ASCII, padded with spaces (SPC-4 4.3.1).
void store_text(std::uint8_t* to, std::string_view text, std::size_t width) {
  std::fill_n(to, width, ' ');
  std::copy_n(text.begin(), std::min(text.size(), width), to);
}

bool printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= 0x20 && c <= 0x7E; });
}

Bytes page_of(std::uint8_t page, std::size_t bytes) {
  Bytes data(bytes);
  data[0] = kDirectAccess;
  data[1] = page;
  store_be(&data[2], static_cast<std::uint16_t>(bytes - 4));
  return data;
}

Bytes supported_pages() {
  constexpr std::uint8_t kPages[] = {0x00, 0x80, 0x83, 0x86, 0x87, 0x88, 0x8F, 0xB0, 0xB1, 0xB2};
  Bytes data = page_of(0x00, 4 + std::size(kPages));
  std::ranges::copy(kPages, &data[4]);
  return data;
}

Bytes unit_serial_number(const Identity& identity) {
  Bytes data = page_of(0x80, 4 + identity.serial.size());
  std::ranges::copy(identity.serial, data.begin() + 4);
  return data;
}

// Designation descriptors (SPC-4 7.8.5.1).
enum class Association : std::uint8_t { kLogicalUnit = 0, kTargetPort = 1, kTargetDevice = 2 };
enum class CodeSet : std::uint8_t { kBinary = 1, kAscii = 2, kUtf8 = 3 };
enum class Designator : std::uint8_t {
  kT10VendorId = 1,
  kNaa = 3,
  kRelativePort = 4,
  kPortGroup = 5,
  kScsiName = 8
};

struct Designation {
  Association association;
  CodeSet code_set;
  Designator type;
};

void append(Bytes& data, const Designation& kind, std::span<const std::uint8_t> designator) {
  constexpr std::uint8_t kProtocolIscsi = 0x50;
  constexpr std::uint8_t kProtocolValid = 0x80;
  const bool of_port = kind.association != Association::kLogicalUnit;
  CHECK(designator.size() <= 0xFF);
  data.push_back(static_cast<std::uint8_t>((of_port ? kProtocolIscsi : 0) |
                                           static_cast<std::uint8_t>(kind.code_set)));
  data.push_back(static_cast<std::uint8_t>((of_port ? kProtocolValid : 0) |
                                           static_cast<std::uint8_t>(kind.association) << 4 |
                                           static_cast<std::uint8_t>(kind.type)));
  data.push_back(0);
  data.push_back(static_cast<std::uint8_t>(designator.size()));
  data.insert(data.end(), designator.begin(), designator.end());
}

// A SCSI name string ends in one to four NULs, to a multiple of four bytes (SPC-4 7.8.5.2.11).
Bytes name_string(std::string_view name) {
  Bytes bytes(name.begin(), name.end());
  bytes.resize((bytes.size() / 4 + 1) * 4);
  return bytes;
}

// The name of a target port of iSCSI (RFC 7143 4.4.3.1, SPC-4 7.8.6.10).
void append_port_name(Bytes& data, const Identity& identity, std::uint16_t target_port) {
  append(data, {Association::kTargetPort, CodeSet::kUtf8, Designator::kScsiName},
         name_string(fmt::format("{},t,0x{:04x}", identity.target_name, target_port)));
}

Bytes device_identification(const Identity& identity, const AskedPort& asked) {
  Bytes data(4);
  append(data, {Association::kLogicalUnit, CodeSet::kBinary, Designator::kNaa}, identity.naa);

  Bytes vendor_id(8);
  store_text(vendor_id.data(), identity.vendor, vendor_id.size());
  const std::string unique = identity.volume_name + " " + identity.serial;
  vendor_id.insert(vendor_id.end(), unique.begin(), unique.end());
  vendor_id.resize(std::min<std::size_t>(vendor_id.size(), 0xFF));
  append(data, {Association::kLogicalUnit, CodeSet::kAscii, Designator::kT10VendorId}, vendor_id);

  Bytes number(4);  // reserved, then 16 bits
  store_be(&number[2], asked.port);
  append(data, {Association::kTargetPort, CodeSet::kBinary, Designator::kRelativePort}, number);
  store_be(&number[2], asked.group);
  append(data, {Association::kTargetPort, CodeSet::kBinary, Designator::kPortGroup}, number);
  append_port_name(data, identity, asked.port);
  append(data, {Association::kTargetDevice, CodeSet::kUtf8, Designator::kScsiName},
         name_string(identity.target_name));

  data[0] = kDirectAccess;
  data[1] = 0x83;
  store_be(&data[2], static_cast<std::uint16_t>(data.size() - 4));
  return data;
}

// SPC-4 7.8.7. No protection information, microcode, priorities or write cache.
Bytes extended_inquiry() {
  constexpr std::uint8_t kHeadOfQueue = 0x04;
  constexpr std::uint8_t kOrdered = 0x02;
  constexpr std::uint8_t kSimple = 0x01;
  constexpr std::uint8_t kNexusClear = 0x01;  // LUICLR
  Bytes data = page_of(0x86, 64);
  data[5] = kHeadOfQueue | kOrdered | kSimple;
  data[7] = kNexusClear;
  store_be(&data[10], std::uint16_t{(SelfTest::kExtendedSeconds + 59) / 60});
  return data;
}

// SPC-4 7.8.10: every page is the same for all initiators, the one that belongs to the target's
// port also for all units.
Bytes mode_page_policy() {
  constexpr std::uint8_t kMultipleUnitsShare = 0x80;
  Bytes data = page_of(0x87, 12);
  data[4] = 0x02;  // disconnect-reconnect
  data[6] = kMultipleUnitsShare;
  data[8] = 0x3F;  // all others
  data[9] = 0xFF;
  return data;
}

// SPC-4 7.8.10: each target port by its number and its name. Who the initiator ports are is not
// told: they belong to others.
Bytes scsi_ports(const Identity& identity) {
  constexpr std::size_t kDescriptorBytes = 12;
  Bytes data(4);
  for (const std::uint16_t port : identity.target_ports) {
    const std::size_t at = data.size();
    data.resize(at + kDescriptorBytes);
    store_be(&data[at + 2], port);
    append_port_name(data, identity, port);
    store_be(&data[at + 10], static_cast<std::uint16_t>(data.size() - at - kDescriptorBytes));
  }
  data[0] = kDirectAccess;
  data[1] = 0x88;
  store_be(&data[2], static_cast<std::uint16_t>(data.size() - 4));
  return data;
}

// What is said here is what cdb.cc and the parameter lists' parsers accept.
Bytes block_limits(const Geometry& geometry) {
  const std::uint32_t granularity = kBlockBytes / geometry.block_bytes;
  Bytes data = page_of(0xB0, 64);
  data[4] = 0x01;  // WSNZ: WRITE SAME needs a number of blocks
  data[5] = static_cast<std::uint8_t>(compare_and_write_blocks_max(geometry));
  store_be(&data[6], static_cast<std::uint16_t>(granularity));
  store_be(&data[8], geometry.transfer_blocks_max);
  store_be(&data[12],
           std::min(geometry.transfer_blocks_max, kOptimalTransferBytes / geometry.block_bytes));
  store_be(&data[20], std::uint32_t{0xFFFF'FFFF});  // UNMAP: as many blocks as there are
  store_be(&data[24], kUnmapDescriptorsMax);
  store_be(&data[28], granularity);
  store_be(&data[32], std::uint32_t{0x8000'0000});  // UGAVALID: aligned at LBA 0
  store_be(&data[36], std::uint64_t{kWriteSameBytesMax / geometry.block_bytes});
  // Every write is atomic. Alignment and granularity: one block; no boundaries within.
  store_be(&data[44], geometry.transfer_blocks_max);
  return data;
}

Bytes block_characteristics(const Geometry& geometry) {
  constexpr std::uint8_t kReadableAfterErase = 0x40;  // WABEREQ
  Bytes data = page_of(0xB1, 64);
  if (geometry.sanitize) data[7] = kReadableAfterErase;
  store_be(&data[4], std::uint16_t{1});  // a medium that does not rotate
  // FUAB: SYNCHRONIZE CACHE and FUA mean what SBC-3 says; VBULS: unmapped blocks can be compared.
  data[8] = 0x03;
  return data;
}

Bytes provisioning() {
  constexpr std::uint8_t kUnmap = 0x80;
  constexpr std::uint8_t kWriteSame16 = 0x40;
  constexpr std::uint8_t kWriteSame10 = 0x20;
  constexpr std::uint8_t kReadsZero = 0x04;
  Bytes data = page_of(0xB2, 8);
  data[5] = kUnmap | kWriteSame16 | kWriteSame10 | kReadsZero;
  data[6] = 2;  // thin provisioned
  return data;
}

}  // namespace

void check_identity(const Identity& identity) {
  CHECK(!identity.target_name.empty() && identity.target_name.size() <= 223);
  CHECK(!identity.serial.empty() && identity.serial.size() <= 64 && printable(identity.serial));
  CHECK(identity.naa.size() == 8 ? identity.naa[0] >> 4 == 0x3
                                 : identity.naa.size() == 16 && identity.naa[0] >> 4 == 0x6);
  CHECK(printable(identity.vendor) && printable(identity.product) && printable(identity.revision));
  CHECK(printable(identity.volume_name));
  const std::vector<std::uint16_t>& ports = identity.target_ports;
  CHECK(!ports.empty() && ports.size() <= kTargetPortsMax && ports.front() > 0);
  CHECK(std::ranges::adjacent_find(ports, std::ranges::greater_equal{}) == ports.end());
}

std::vector<std::uint8_t> standard_inquiry(const Identity& identity, bool removable) {
  Bytes data(kStandardBytes);
  data[0] = kDirectAccess;
  if (removable) data[1] = 0x80;  // RMB
  data[2] = kVersionSpc4;
  data[3] = 0x12;  // HISUP, response data format 2
  data[4] = kStandardBytes - 5;
  data[5] = kImplicitPortGroups | 0x08;  // TPGS; 3PC: third-party copies
  data[7] = 0x02;                        // CMDQUE
  store_text(&data[8], identity.vendor, 8);
  store_text(&data[16], identity.product, 16);
  store_text(&data[32], identity.revision, 4);
  for (std::size_t i = 0; i < std::size(kVersionDescriptors); ++i) {
    store_be(&data[58 + 2 * i], kVersionDescriptors[i]);
  }
  return data;
}

std::vector<std::uint8_t> absent_unit_inquiry() {
  Bytes data(36);
  data[0] = 0x7F;
  data[2] = kVersionSpc4;
  data[3] = 0x12;
  data[4] = 36 - 5;
  std::fill_n(&data[8], 28, ' ');
  return data;
}

std::optional<std::vector<std::uint8_t>> vital_product_data(std::uint8_t page,
                                                            const Identity& identity,
                                                            const Geometry& geometry,
                                                            const AskedPort& asked) {
  switch (page) {
    case 0x00: return supported_pages();
    case 0x80: return unit_serial_number(identity);
    case 0x83: return device_identification(identity, asked);
    case 0x86: return extended_inquiry();
    case 0x87: return mode_page_policy();
    case 0x88: return scsi_ports(identity);
    case 0x8F: return third_party_copy_page(geometry);
    case 0xB0: return block_limits(geometry);
    case 0xB1: return block_characteristics(geometry);
    case 0xB2: return provisioning();
    default: return std::nullopt;
  }
}

std::vector<std::uint8_t> capacity10(const Geometry& geometry) {
  Bytes data(8);
  const std::uint64_t last = geometry.block_count - 1;
  store_be(&data[0], static_cast<std::uint32_t>(std::min<std::uint64_t>(last, 0xFFFF'FFFF)));
  store_be(&data[4], geometry.block_bytes);
  return data;
}

std::vector<std::uint8_t> capacity16(const Geometry& geometry) {
  Bytes data(32);
  store_be(&data[0], geometry.block_count - 1);
  store_be(&data[8], geometry.block_bytes);
  data[13] = static_cast<std::uint8_t>(std::countr_zero(kBlockBytes / geometry.block_bytes));
  data[14] = 0xC0;  // LBPME: thin provisioned; LBPRZ: what is unmapped reads as zero
  return data;
}

}  // namespace mariner::scsi
