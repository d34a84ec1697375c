#include "server/scsi/lun.h"

#include "proto/bytes.h"

namespace mariner::scsi {
namespace {

constexpr std::uint64_t kReportLunsLun = 0xC101'0000'0000'0000;
constexpr std::size_t kListHeaderBytes = 8;
constexpr std::size_t kLunBytes = 8;

}  // namespace

std::optional<Lun> parse_lun(std::uint64_t field) {
  if ((field & 0x0000'FFFF'FFFF'FFFF) != 0) return std::nullopt;  // further levels
  const auto first_level = static_cast<std::uint16_t>(field >> 48);
  const unsigned method = first_level >> 14;
  constexpr unsigned kPeripheral = 0;
  constexpr unsigned kFlatSpace = 1;
  if (method != kPeripheral && method != kFlatSpace) return std::nullopt;
  const unsigned number = first_level & 0x3FFF;  // peripheral: bus identifier and LUN
  if (number > 0xFF) return std::nullopt;
  return Lun{static_cast<std::uint8_t>(number)};
}

bool is_report_luns_lun(std::uint64_t field) { return field == kReportLunsLun; }

std::uint64_t lun_field(Lun lun) { return std::uint64_t{lun.value} << 48; }

std::vector<std::uint8_t> encode_lun_list(std::span<const Lun> luns) {
  std::vector<std::uint8_t> data(kListHeaderBytes + luns.size() * kLunBytes);
  store_be(data.data(), static_cast<std::uint32_t>(luns.size() * kLunBytes));
  for (std::size_t i = 0; i < luns.size(); ++i) {
    store_be(data.data() + kListHeaderBytes + i * kLunBytes, lun_field(luns[i]));
  }
  return data;
}

}  // namespace mariner::scsi
