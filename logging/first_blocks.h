// Which blocks of a pack have the same bytes, as far as their hashes say: of each hash the first
// block that had it. Of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace mariner::logging {

[[nodiscard]] bool is_zero_block(std::span<const std::byte> bytes);

class FirstBlocks {
 public:
  // XXH3, 128 bits.
  struct Hash {
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    friend bool operator==(const Hash&, const Hash&) = default;
  };
  [[nodiscard]] static Hash hash_of(std::span<const std::byte> bytes);

  // For blocks with the numbers [0, blocks).
  explicit FirstBlocks(std::size_t blocks);

  // `block`, which was not added before, has that hash; returns the first one that had it, which is
  // itself if none had. Two blocks with equal hashes are most likely equal, but need not be.
  std::uint32_t add(std::uint32_t block, const Hash& hash);

 private:
  static constexpr std::uint32_t kFree = UINT32_MAX;

  std::vector<Hash> hashes_;  // of the blocks that are in the table
  std::vector<std::uint32_t> slots_;
};

}  // namespace mariner::logging
