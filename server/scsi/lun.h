// Logical unit numbers, and their eight bytes on the wire (SAM-5 4.7).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mariner::scsi {

// A single-level LUN, 0 to 255: what peripheral device addressing can say.
struct Lun {
  std::uint8_t value = 0;
  friend constexpr auto operator<=>(const Lun&, const Lun&) = default;
};

// The LUN that an 8-byte field (as a big-endian number) addresses, in the peripheral device or the
// flat space method; nothing for other methods, levels, buses and larger numbers.
[[nodiscard]] std::optional<Lun> parse_lun(std::uint64_t field);

// True for the well-known LUN of REPORT LUNS (SAM-5 4.7.6.4), which some hosts ask first.
[[nodiscard]] bool is_report_luns_lun(std::uint64_t field);

// The field for `lun`, in the peripheral device addressing method.
[[nodiscard]] std::uint64_t lun_field(Lun lun);

// The parameter data of REPORT LUNS (SPC-4 6.33) for these units, in this order.
[[nodiscard]] std::vector<std::uint8_t> encode_lun_list(std::span<const Lun> luns);

}  // namespace mariner::scsi
