// CRC-32 of IEEE 802.3, reflected: what GPT and LVM2 have over their structures.
#pragma once

#include <isa-l/crc.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace mariner::uvfs {

// As zlib has it: crc32("123456789") == 0xCBF43926.
[[nodiscard]] inline std::uint32_t crc32(std::span<const std::byte> bytes) {
  return crc32_gzip_refl(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
}

// As LVM2 has it: it begins with a number of its own, and nothing is inverted.
[[nodiscard]] inline std::uint32_t lvm_crc(std::span<const std::byte> bytes) {
  constexpr std::uint32_t kBegin = 0xf597a6cf;
  return ~crc32_gzip_refl(~kBegin, reinterpret_cast<const unsigned char*>(bytes.data()),
                          bytes.size());
}

}  // namespace mariner::uvfs
