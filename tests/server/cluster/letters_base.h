// A base in memory: each block has the letter of its number, 'A' first.
#pragma once

#include <cstring>
#include <vector>

#include "server/volume/history_reader.h"

namespace mariner::test {

class LettersBase final : public volume::Base {
 public:
  void read(BlockRange range, std::span<std::byte> to, volume::Done done) override {
    asked.push_back(range);
    if (!good) return done(Error{ErrorCode::kUnavailable, "away"});
    for (std::uint64_t i = 0; i < range.count.value; ++i) {
      std::memset(&to[i * kBlockBytes], static_cast<int>('A' + (range.first.value + i) % 26),
                  kBlockBytes);
    }
    done({});
  }
  [[nodiscard]] bool may_move() const override { return true; }

  bool good = true;
  std::vector<BlockRange> asked;
};

}  // namespace mariner::test
