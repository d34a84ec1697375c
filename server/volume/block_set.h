// A set of blocks of a volume: one bit a block, in pages that exist as they are needed. Owner's
// thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_map>

#include "proto/units.h"

namespace mariner::volume {

class BlockSet {
 public:
  static constexpr std::uint64_t kPageBlocks = 4096;       // 16 MiB of a volume
  using Bits = std::array<std::uint8_t, kPageBlocks / 8>;  // least significant bit first

  // False: it changes nothing.
  bool add(BlockRange range);
  void remove(BlockRange range);
  // Of the blocks from number * kPageBlocks on.
  void set_page(std::uint64_t number, const Bits& bits) { pages_[number] = bits; }
  [[nodiscard]] const Bits& page(std::uint64_t number) const { return pages_.at(number); }

  // Visits `range` in order without gaps: each part with whether it is in the set.
  void visit(BlockRange range, const std::function<void(BlockRange, bool)>& visitor) const;
  // Nothing was ever added, or all that was is gone again.
  [[nodiscard]] bool empty() const { return pages_.empty(); }

 private:
  [[nodiscard]] bool has(Lbn block) const;

  std::unordered_map<std::uint64_t, Bits> pages_;
};

}  // namespace mariner::volume
