#include "index/index_block.h"

#include <algorithm>
#include <cstring>

#include "proto/bytes.h"
#include "proto/check.h"
#include "proto/crc32c.h"

namespace mariner::index {
namespace {

constexpr std::uint32_t kMagic = 0x4249524d;  // "MRIB"

// Offsets in the header; FORMAT.md section 3.
constexpr std::size_t kAtMagic = 0;
constexpr std::size_t kAtCrc = 4;  // of everything behind it
constexpr std::size_t kAtFile = 8;
constexpr std::size_t kAtAddress = 24;
constexpr std::size_t kAtFunction = 28;
constexpr std::size_t kAtVersion = 32;
constexpr std::size_t kAtFrontier = 40;
constexpr std::size_t kAtEnd = 48;  // zeros from here on

std::uint32_t crc_of(std::span<const std::byte> block) { return crc32c(block.subspan(kAtFile)); }

}  // namespace

void seal_index_block(const IndexBlockHeader& header, const IndexFileId& file,
                      std::span<std::byte> block) {
  CHECK(block.size() >= kIndexBlockBytesMin);
  std::byte* const to = block.data();
  std::memset(to, 0, kIndexBlockHeaderBytes);
  store_le<std::uint32_t>(to + kAtMagic, kMagic);
  std::ranges::copy(file, to + kAtFile);
  store_le<std::uint32_t>(to + kAtAddress, header.address.value);
  store_le<std::uint32_t>(to + kAtFunction, header.function.value);
  store_le<std::uint32_t>(to + kAtVersion, header.version);
  store_le<std::uint64_t>(to + kAtFrontier, header.frontier);
  static_assert(kAtFrontier + sizeof(std::uint64_t) == kAtEnd);
  store_le<std::uint32_t>(to + kAtCrc, crc_of(block));
}

BlockDamage check_index_block(const IndexBlockHeader& expected, const IndexFileId& file,
                              std::span<const std::byte> block) {
  const std::byte* const from = block.data();
  if (load_le<std::uint32_t>(from + kAtMagic) != kMagic ||
      load_le<std::uint32_t>(from + kAtCrc) != crc_of(block)) {
    return BlockDamage::kDamaged;
  }
  if (!std::equal(file.begin(), file.end(), from + kAtFile) ||
      load_le<std::uint32_t>(from + kAtAddress) != expected.address.value ||
      load_le<std::uint32_t>(from + kAtFunction) != expected.function.value) {
    return BlockDamage::kMisplaced;
  }
  if (load_le<std::uint32_t>(from + kAtVersion) != expected.version ||
      load_le<std::uint64_t>(from + kAtFrontier) != expected.frontier) {
    return BlockDamage::kOutOfDate;
  }
  return BlockDamage::kNone;
}

std::string_view block_damage_name(BlockDamage damage) noexcept {
  switch (damage) {
    case BlockDamage::kNone: return "is good";
    case BlockDamage::kDamaged: return "is damaged";
    case BlockDamage::kMisplaced: return "is another block";
    case BlockDamage::kOutOfDate: return "is out of date (a write of it was lost)";
  }
  return "?";
}

}  // namespace mariner::index
