#include "tests/hammer/content.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::hammer {
namespace {

constexpr std::uint64_t kMagic = 0x4c4c45435252414du;
constexpr std::uint64_t kAnywhere = ~std::uint64_t{0};
constexpr std::size_t kIdOffset = 8;
constexpr std::size_t kPlaceOffset = 16;
constexpr std::size_t kCrcOffset = 24;
constexpr std::size_t kNoiseOffset = 32;
constexpr std::uint64_t kLittle = 0xff;  // of every eight bytes one differs

void fill_identity(Cell out, std::uint64_t id, std::uint64_t place) {
  store_le(out.data(), kMagic);
  store_le(out.data() + kIdOffset, id);
  store_le(out.data() + kPlaceOffset, place);
  std::uint64_t noise = (id * 0x9e3779b97f4a7c15u) ^ (place * 0xd1342543de82ef95u);
  for (std::size_t at = kNoiseOffset; at < kCellBytes; at += sizeof noise) {
    noise ^= noise << 13;
    noise ^= noise >> 7;
    noise ^= noise << 17;
    store_le(out.data() + at, id % 2 == 0 ? noise : noise & kLittle);
  }
  store_le(out.data() + kCrcOffset, std::uint64_t{crc32c(out.subspan(kNoiseOffset))});
}

bool all_zeros(ConstCell bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

void fill_cell(Cell out, const Write* write, std::uint64_t cell) {
  if (write == nullptr || write->kind == Kind::kUnmap || write->kind == Kind::kZeroes) {
    std::memset(out.data(), 0, out.size());
    return;
  }
  fill_identity(out, write->id, write->kind == Kind::kSame ? kAnywhere : cell);
}

bool cell_holds(ConstCell bytes, const Write* write, std::uint64_t cell) {
  std::array<std::byte, kCellBytes> expected;
  fill_cell(expected, write, cell);
  return std::memcmp(expected.data(), bytes.data(), kCellBytes) == 0;
}

void fill_payload(std::span<std::byte> out, const Write& write) {
  CHECK(out.size() % kCellBytes == 0);
  for (std::size_t at = 0; at < out.size(); at += kCellBytes) {
    fill_cell(out.subspan(at).first<kCellBytes>(), &write, write.first_cell + at / kCellBytes);
  }
}

std::string describe_cell(ConstCell bytes) {
  if (all_zeros(bytes)) return "zeros";
  if (load_le<std::uint64_t>(bytes.data()) != kMagic) return "no cell of ours";
  const auto id = load_le<std::uint64_t>(bytes.data() + kIdOffset);
  const auto place = load_le<std::uint64_t>(bytes.data() + kPlaceOffset);
  const bool whole =
      load_le<std::uint64_t>(bytes.data() + kCrcOffset) == crc32c(bytes.subspan(kNoiseOffset));
  return fmt::format("{}write {} of cell {}", whole ? "" : "damaged ", id,
                     place == kAnywhere ? "any" : fmt::format("{}", place));
}

}  // namespace mariner::hammer
