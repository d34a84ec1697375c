#include "tests/server/volume/sectors.h"

#include "proto/bytes.h"
#include "proto/check.h"

namespace mariner::test {

Payload bytes_of(std::span<const std::uint64_t> sectors) {
  Payload payload = Payload::allocate(sectors.size() * kSectorBytes);
  std::byte* to = payload.data();
  for (const std::uint64_t sector : sectors) {
    for (std::size_t i = 0; i < kSectorBytes; i += 8, to += 8) store_le(to, sector);
  }
  return payload;
}

std::optional<std::size_t> mismatch(std::span<const std::byte> bytes,
                                    std::span<const std::uint64_t> expected) {
  CHECK(bytes.size() == expected.size() * kSectorBytes);
  const std::byte* from = bytes.data();
  for (std::size_t sector = 0; sector < expected.size(); ++sector) {
    for (std::size_t i = 0; i < kSectorBytes; i += 8, from += 8) {
      if (load_le<std::uint64_t>(from) != expected[sector]) return sector;
    }
  }
  return std::nullopt;
}

std::span<const std::uint64_t> part_of(const Sectors& sectors, ByteRange range) {
  return std::span(sectors).subspan(range.offset / kSectorBytes, range.length / kSectorBytes);
}

std::span<std::uint64_t> part_of(Sectors& sectors, ByteRange range) {
  return std::span(sectors).subspan(range.offset / kSectorBytes, range.length / kSectorBytes);
}

}  // namespace mariner::test
