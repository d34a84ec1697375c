#include "logging/first_blocks.h"

#include <xxhash.h>

#include <cstring>

#include "logging/open_table.h"
#include "proto/bytes.h"

namespace mariner::logging {

bool is_zero_block(std::span<const std::byte> bytes) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  if (bytes.size() < kWord) return all_zero(bytes);
  return load_le<std::uint64_t>(bytes.data()) == 0 &&
         std::memcmp(bytes.data(), bytes.data() + kWord, bytes.size() - kWord) == 0;
}

FirstBlocks::Hash FirstBlocks::hash_of(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

FirstBlocks::FirstBlocks(std::size_t blocks)
    : hashes_(blocks), slots_(open_table_slots(blocks), kFree) {}

std::uint32_t FirstBlocks::add(std::uint32_t block, const Hash& hash) {
  for (std::size_t slot = open_table_slot(hash.low, slots_.size());;
       slot = next_slot(slot, slots_.size())) {
    if (slots_[slot] == kFree) {
      slots_[slot] = block;
      hashes_[block] = hash;
      return block;
    }
    if (hashes_[slots_[slot]] == hash) return slots_[slot];
  }
}

}  // namespace mariner::logging
