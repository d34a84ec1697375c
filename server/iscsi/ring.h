// A first-in first-out queue, for the output path: pushing and popping allocate nothing once it has
// reached its working size, and elements stay where they are in memory.
//
// Elements have ordinals that count up from 0 for ever, so that another queue can name them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "proto/check.h"

namespace mariner::iscsi {

template <typename T>
class Ring {
 public:
  [[nodiscard]] bool empty() const { return begin_ == end_; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(end_ - begin_); }

  // The ordinals of the elements are [begin(), end()).
  [[nodiscard]] std::uint64_t begin() const { return begin_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }

  [[nodiscard]] T& operator[](std::uint64_t ordinal) {
    CHECK(ordinal >= begin_ && ordinal < end_);
    return slot(ordinal);
  }
  [[nodiscard]] T& front() { return (*this)[begin_]; }

  // Returns the new element, valid until it is popped.
  T& push(T value) {
    if (end_ / kChunkSlots - begin_ / kChunkSlots >= chunks_.size()) grow();
    auto& chunk = chunks_[end_ / kChunkSlots & (chunks_.size() - 1)];
    if (chunk == nullptr) chunk = std::make_unique<Chunk>();
    T& pushed = slot(end_++);
    pushed = std::move(value);
    return pushed;
  }

  void pop() {
    front() = T{};
    ++begin_;
  }

 private:
  static constexpr std::size_t kChunkSlots = 16;
  using Chunk = std::array<T, kChunkSlots>;

  [[nodiscard]] T& slot(std::uint64_t ordinal) {
    return (*chunks_[ordinal / kChunkSlots & (chunks_.size() - 1)])[ordinal % kChunkSlots];
  }

  // Requires that every chunk is in use.
  void grow() {
    std::vector<std::unique_ptr<Chunk>> more(std::max<std::size_t>(1, chunks_.size() * 2));
    const std::uint64_t first = begin_ / kChunkSlots;
    for (std::uint64_t i = first; i < first + chunks_.size(); ++i) {
      more[i & (more.size() - 1)] = std::move(chunks_[i & (chunks_.size() - 1)]);
    }
    chunks_ = std::move(more);
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;  // as many as a power of two, or none
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace mariner::iscsi
