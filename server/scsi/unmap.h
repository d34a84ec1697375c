// The parameter list of UNMAP (SBC-3 5.28).
#pragma once

#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include "server/scsi/cdb.h"

namespace mariner::scsi {

// The extents of the list, in its order and without the empty ones, each inside the disk; or what
// is wrong with the list, in which case nothing may be unmapped.
[[nodiscard]] std::variant<Sense, std::vector<Extent>> parse_unmap(const Unmap& command,
                                                                   std::span<const std::byte> list,
                                                                   const Geometry& geometry);

}  // namespace mariner::scsi
