// An index block as it stands in the file: a header that says what it is, then its contents.
// FORMAT.md section 3.
//
// The header has the block's address, so that a misdirected write is found, and the version that
// its place must have, so that a lost one is.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

namespace mariner::index {

using IndexFileId = std::array<std::byte, 16>;

// The number of a block in an index file.
struct BlockAddress {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(const BlockAddress&, const BlockAddress&) = default;
};

// A commit function's identity, for good: it stands in the blocks. 0 is none.
struct FunctionId {
  std::uint32_t value = 0;
  friend constexpr auto operator<=>(const FunctionId&, const FunctionId&) = default;
};

inline constexpr std::size_t kIndexBlockHeaderBytes = 64;
inline constexpr std::uint32_t kIndexBlockBytesMin = 4096;
inline constexpr std::uint32_t kIndexBlockBytesMax = 1u << 20;

struct IndexBlockHeader {
  BlockAddress address;
  FunctionId function;
  std::uint32_t version = 0;   // counts the block's writes, from 1
  std::uint64_t frontier = 0;  // its local frontier: modifications up to this number are in it

  friend bool operator==(const IndexBlockHeader&, const IndexBlockHeader&) = default;
};

[[nodiscard]] inline std::span<std::byte> contents_of(std::span<std::byte> block) {
  return block.subspan(kIndexBlockHeaderBytes);
}
[[nodiscard]] inline std::span<const std::byte> contents_of(std::span<const std::byte> block) {
  return block.subspan(kIndexBlockHeaderBytes);
}

// Fills in the header of `block`, whose contents are there, and the CRC32C of all of it.
void seal_index_block(const IndexBlockHeader& header, const IndexFileId& file,
                      std::span<std::byte> block);

enum class BlockDamage : std::uint8_t {
  kNone,
  kDamaged,    // torn, flipped, or no index block
  kMisplaced,  // a good block, but of another address, file or function
  kOutOfDate,  // a good block, but another version: a write was lost
};
// For messages: "is damaged", ...
std::string_view block_damage_name(BlockDamage damage) noexcept;

// Whether `block` is the one that `expected` describes.
[[nodiscard]] BlockDamage check_index_block(const IndexBlockHeader& expected,
                                            const IndexFileId& file,
                                            std::span<const std::byte> block);

}  // namespace mariner::index

template <>
struct std::hash<mariner::index::BlockAddress> {
  std::size_t operator()(const mariner::index::BlockAddress& address) const noexcept {
    return address.value;
  }
};
