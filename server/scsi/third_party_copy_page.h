// The third-party copy page (SPC-4 7.8.17, SBC-4 6.6.9): what copies and tokens are supported.
#pragma once

#include <cstdint>
#include <vector>

#include "server/scsi/cdb.h"

namespace mariner::scsi {

// Windows takes from it whether it may use offloaded data transfers, and how long they may be.
[[nodiscard]] std::vector<std::uint8_t> third_party_copy_page(const Geometry& geometry);

}  // namespace mariner::scsi
