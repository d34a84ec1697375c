// The answers to INQUIRY and READ CAPACITY: what a disk says about itself.
//
// Each function returns the whole data; the caller cuts it to the allocation length.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "server/scsi/cdb.h"
#include "server/scsi/identity.h"
#include "server/scsi/port_groups.h"

namespace mariner::scsi {

// Limits of UNMAP (SBC-3 6.6.3); the number of blocks is unlimited.
inline constexpr std::uint32_t kUnmapDescriptorsMax = 256;

// Aborts if the identity breaks its own contract: the node made it.
void check_identity(const Identity& identity);

// Standard INQUIRY data (SPC-4 6.6.2) of a unit whose medium can be removed, or cannot.
[[nodiscard]] std::vector<std::uint8_t> standard_inquiry(const Identity& identity, bool removable);

// The same for a LUN that has no logical unit: peripheral qualifier 011b, type 1Fh.
[[nodiscard]] std::vector<std::uint8_t> absent_unit_inquiry();

// The target port through which a unit is asked about itself.
struct AskedPort {
  std::uint16_t port = 1;  // relative target port identifier
  std::uint16_t group = kTargetPortGroup;
};

// The vital product data page `page` (SPC-4 7.8, SBC-3 6.6): 00h, 80h, 83h, 86h, 87h, 88h, 8Fh,
// B0h, B1h or B2h; nothing for any other.
[[nodiscard]] std::optional<std::vector<std::uint8_t>> vital_product_data(std::uint8_t page,
                                                                          const Identity& identity,
                                                                          const Geometry& geometry,
                                                                          const AskedPort& asked);

// SBC-3 5.15 and 5.16.
[[nodiscard]] std::vector<std::uint8_t> capacity10(const Geometry& geometry);
[[nodiscard]] std::vector<std::uint8_t> capacity16(const Geometry& geometry);

}  // namespace mariner::scsi
