// Slots of a hash table with open addressing, whose size is known from the start.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mariner::logging {

// For so many entries: at most two of three are taken.
[[nodiscard]] constexpr std::size_t open_table_slots(std::size_t entries) {
  return entries + entries / 2 + 1;
}
// Where the search for a hash begins. Fewer than 2^32 slots.
[[nodiscard]] constexpr std::size_t open_table_slot(std::uint64_t hash, std::size_t slots) {
  return ((hash >> 32) * slots) >> 32;
}
[[nodiscard]] constexpr std::size_t next_slot(std::size_t slot, std::size_t slots) {
  return slot + 1 == slots ? 0 : slot + 1;
}

}  // namespace mariner::logging
