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

// The CRC32C of `length_b` bytes behind others, from the CRCs of both, without the bytes:
// crc32c(ab) == crc32c_combine(crc32c(a), crc32c(b), b.size()). For each bit set in `length_b`
// eight loads from a table of 512 bytes: for a whole block a small part of what its CRC takes.
[[nodiscard]] std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b,
                                           std::uint64_t length_b) noexcept;

}  // namespace mariner
