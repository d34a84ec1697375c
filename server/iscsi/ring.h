// A first-in first-out queue on one contiguous, growing ring, for the output path: pushing and
// popping allocate nothing once the ring has reached its working size.
//
// Elements have ordinals that count up from 0 for ever, so that another queue can name an element
// while this one grows and moves it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
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
    return slots_[ordinal & (slots_.size() - 1)];
  }
  [[nodiscard]] T& front() { return (*this)[begin_]; }

  // Returns the new element, valid until the next push().
  T& push(T value) {
    if (size() == slots_.size()) grow();
    T& slot = slots_[end_ & (slots_.size() - 1)];
    slot = std::move(value);
    ++end_;
    return slot;
  }

  void pop() {
    front() = T{};
    ++begin_;
  }

 private:
  static constexpr std::size_t kInitialSlots = 16;

  void grow() {
    std::vector<T> larger(slots_.empty() ? kInitialSlots : slots_.size() * 2);
    for (std::uint64_t i = begin_; i != end_; ++i) {
      larger[i & (larger.size() - 1)] = std::move((*this)[i]);
    }
    slots_ = std::move(larger);
    static_assert(std::has_single_bit(kInitialSlots));
  }

  std::vector<T> slots_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace mariner::iscsi
