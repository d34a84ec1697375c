#include "proto/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>
#include <limits>

namespace mariner {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) noexcept {
  // ISA-L takes and returns the inverted register, a signed length, and a pointer that it only
  // reads.
  std::uint32_t state = ~seed;
  while (!bytes.empty()) {
    const std::size_t piece =
        std::min<std::size_t>(bytes.size(), std::numeric_limits<std::int32_t>::max());
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(data, static_cast<int>(piece), state);
    bytes = bytes.subspan(piece);
  }
  return ~state;
}

}  // namespace mariner
