// The CRC32C of a payload's bytes, from those of its blocks where they came with it.
#pragma once

#include <cstdint>

#include "proto/payload.h"

namespace mariner {

// To continue over what stands before, pass its CRC as `seed`.
[[nodiscard]] std::uint32_t payload_crc32c(const PayloadSlice& slice, std::uint32_t seed = 0);

}  // namespace mariner
