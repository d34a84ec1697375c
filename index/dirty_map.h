// A set of small numbers, as bits: which blocks have something to commit.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

namespace mariner::index {

class DirtyMap {
 public:
  [[nodiscard]] bool contains(std::uint32_t number) const {
    return number / 64 < words_.size() && (words_[number / 64] >> (number % 64) & 1) != 0;
  }
  void insert(std::uint32_t number) {
    if (number / 64 >= words_.size()) words_.resize(number / 64 + 1);
    std::uint64_t& word = words_[number / 64];
    const std::uint64_t bit = std::uint64_t{1} << (number % 64);
    count_ += (word & bit) == 0 ? 1 : 0;
    word |= bit;
  }
  void erase(std::uint32_t number) {
    if (!contains(number)) return;
    words_[number / 64] &= ~(std::uint64_t{1} << (number % 64));
    --count_;
  }
  [[nodiscard]] std::uint32_t count() const { return count_; }
  // The smallest at or above `from`.
  [[nodiscard]] std::optional<std::uint32_t> next(std::uint32_t from) const {
    std::size_t at = from / 64;
    if (at >= words_.size()) return std::nullopt;
    std::uint64_t word = words_[at] & (~std::uint64_t{0} << (from % 64));
    while (word == 0) {
      if (++at == words_.size()) return std::nullopt;
      word = words_[at];
    }
    return static_cast<std::uint32_t>(at * 64 + static_cast<std::size_t>(std::countr_zero(word)));
  }

 private:
  std::vector<std::uint64_t> words_;
  std::uint32_t count_ = 0;
};

}  // namespace mariner::index
