#include "proto/payload_crc.h"

#include "proto/crc32c.h"

namespace mariner {

std::uint32_t payload_crc32c(const PayloadSlice& slice, std::uint32_t seed) {
  const std::span<const std::byte> bytes = slice.bytes();
  std::uint32_t crc = seed;
  std::size_t done = 0;
  for (std::size_t at = (kBlockBytes - slice.offset % kBlockBytes) % kBlockBytes;
       at + kBlockBytes <= bytes.size(); at += kBlockBytes) {
    const auto known = slice.block_crc(at);
    if (!known) continue;
    crc = crc32c(bytes.subspan(done, at - done), crc);
    crc = crc32c_combine(crc, *known, kBlockBytes);
    done = at + kBlockBytes;
  }
  return crc32c(bytes.subspan(done), crc);
}

}  // namespace mariner
