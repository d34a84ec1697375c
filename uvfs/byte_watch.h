// Who has read which bytes of the volume, and so who has to read again when a block is written.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "proto/error.h"
#include "proto/units.h"

namespace mariner::uvfs {

class ByteWatch {
 public:
  using Watcher = std::size_t;

  // Ranges within blocks, of all watchers: up to 32 bytes for each.
  static constexpr std::size_t kPartsMax = 20'000'000;

  // These, and none of what it has watched before: ascending, apart from each other. kLimit.
  [[nodiscard]] Result<void> set(Watcher watcher, std::vector<ByteRange> ranges);
  [[nodiscard]] bool watches(Lbn block) const { return blocks_.contains(block.value); }
  // Adds those who watch bytes of the block that are not the same.
  void find(Lbn block, std::span<const std::byte> before, std::span<const std::byte> after,
            std::vector<Watcher>& to) const;
  // Blocks that are watched, and were not yet, since the last time.
  [[nodiscard]] std::vector<Lbn> take_new();

 private:
  // [begin, end) of a block.
  struct Part {
    Watcher watcher = 0;
    std::uint16_t begin = 0;
    std::uint16_t end = 0;
  };
  template <typename Visit>
  static void for_each_part(std::span<const ByteRange> ranges, Visit visit);

  std::unordered_map<Watcher, std::vector<ByteRange>> watchers_;
  std::unordered_map<std::uint64_t, std::vector<Part>> blocks_;
  std::vector<Lbn> new_;
  std::size_t parts_ = 0;
};

}  // namespace mariner::uvfs
