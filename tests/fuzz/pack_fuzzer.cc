// A pack whose bytes are anybody's: its table, and a reader over regions that are the rest of the
// input. What the table's parser accepts it writes and reads again; reading ends in bytes or in an
// error.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "logging/pack_reader.h"
#include "logging/pack_table.h"
#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace {

using namespace mariner;           // NOLINT: the fuzzer's only subject
using namespace mariner::logging;  // NOLINT

constexpr std::size_t kFrameBytes = 32;

class Regions final : public PackBytes {
 public:
  explicit Regions(std::span<const std::byte> bytes) : bytes_(bytes) {}
  Result<void> read(std::uint64_t at, std::span<std::byte> to) override {
    if (at > bytes_.size() || to.size() > bytes_.size() - at) {
      return Error{ErrorCode::kIo, "past the end"};
    }
    std::memcpy(to.data(), bytes_.data() + at, to.size());
    return {};
  }

 private:
  const std::span<const std::byte> bytes_;
};

void read_all(const PackReader& reader) {
  std::array<std::byte, 10000> to;
  for (std::size_t track = 0; track < std::min<std::size_t>(reader.table().tracks().size(), 4);
       ++track) {
    const PackTable::Track& of = reader.table().tracks()[track];
    for (std::size_t i = 0; i < std::min<std::size_t>(of.pieces.size(), 16); ++i) {
      const std::uint64_t at = of.pieces[i].at;
      const std::size_t bytes = std::min<std::uint64_t>(to.size(), of.bytes - at);
      static_cast<void>(reader.read(track, at, std::span(to).first(bytes)));
    }
  }
}

void fuzz(std::span<const std::byte> table_bytes, std::span<const std::byte> region_bytes) {
  const Result<PackTable> table = PackTable::from_bytes(table_bytes);
  if (!table) return;
  CHECK(PackTable::fault_of(table->tracks(), table->regions()).empty());
  const Result<PackTable> again = PackTable::from_bytes(to_bytes(*table));
  CHECK(again && *again == *table);
  // The regions' checksums are made to fit, so that the bytes get to what is behind.
  std::vector<PackTable::Track> tracks(table->tracks().begin(), table->tracks().end());
  std::vector<PackRegion> regions(table->regions().begin(), table->regions().end());
  for (PackRegion& region : regions) {
    if (region.at + region.stored_bytes > region_bytes.size()) continue;
    region.crc32c = crc32c(region_bytes.subspan(region.at, region.stored_bytes));
  }
  Regions bytes(region_bytes);
  RegionCache cache(1u << 20);
  read_all(PackReader(1, std::make_shared<const PackTable>(*again), bytes, cache));
  read_all(PackReader(2, std::make_shared<const PackTable>(tracks, regions), bytes, cache));
}

// A frame around the body that says what it should.
std::vector<std::byte> framed(std::span<const std::byte> body, std::uint32_t plain_bytes) {
  std::vector<std::byte> bytes = to_bytes(PackTable());
  bytes.resize(kFrameBytes);
  bytes.insert(bytes.end(), body.begin(), body.end());
  store_le(bytes.data() + 12, std::uint32_t{0});
  store_le(bytes.data() + 16, plain_bytes);
  store_le(bytes.data() + 20, static_cast<std::uint32_t>(body.size()));
  store_le(bytes.data() + 12, crc32c(bytes));
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 6) return 0;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data + 6, size - 6));
  const std::size_t table_bytes = std::min<std::size_t>(load_le<std::uint16_t>(data), bytes.size());
  const std::span<const std::byte> table = bytes.first(table_bytes);
  const std::span<const std::byte> regions = bytes.subspan(table_bytes);
  const auto number = load_le<std::uint32_t>(data + 2);
  switch (number % 4) {
    case 0: fuzz(table, regions); break;
    case 1: fuzz(framed(table, number >> 2), regions); break;  // compressed, so it says
    default: fuzz(framed(table, static_cast<std::uint32_t>(table.size())), regions); break;
  }
  return 0;
}
