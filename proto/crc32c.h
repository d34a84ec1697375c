// CRC32C (Castagnoli), as in iSCSI digests (RFC 7143 13.1) and in every structure of the log.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace mariner {

// The CRC32C of the bytes, in the customary form: crc32c("123456789") == 0xE3069283.
// To continue over further bytes, pass the value so far as `seed`.
[[nodiscard]] std::uint32_t crc32c(std::span<const std::byte> bytes,
                                   std::uint32_t seed = 0) noexcept;

}  // namespace mariner
