#include "logging/block_frame.h"

#include "proto/bytes.h"
#include "proto/crc32c.h"

namespace mariner::logging {
namespace {

constexpr std::size_t kCrcAt = 12;

std::uint32_t block_crc(std::span<const std::byte> block) {
  static constexpr std::byte kZero[4]{};
  std::uint32_t crc = crc32c(block.first(kCrcAt));
  crc = crc32c(kZero, crc);
  return crc32c(block.subspan(kCrcAt + 4), crc);
}

}  // namespace

void seal_block(std::span<std::byte> block, BlockKind kind) {
  store_le(block.data(), kind.magic);
  store_le(block.data() + 8, kind.version);
  store_le(block.data() + kCrcAt, std::uint32_t{0});
  store_le(block.data() + kCrcAt, block_crc(block));
}

bool is_sealed(std::span<const std::byte> block, BlockKind kind) {
  return load_le<std::uint64_t>(block.data()) == kind.magic &&
         load_le<std::uint32_t>(block.data() + 8) == kind.version &&
         load_le<std::uint32_t>(block.data() + kCrcAt) == block_crc(block);
}

}  // namespace mariner::logging
