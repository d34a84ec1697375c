// Histograms for the data path: observing costs an addition or two, no lock, no memory.
//
// Buckets end at powers of two, so that the bucket of a value is one instruction. Touched by its
// owner's thread only; the exporter reads it there when it is scraped.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mariner {

// Buckets with the upper bounds 2^kFirst, 2^(kFirst+1), ..., 2^kLast, and one for what is larger.
template <unsigned kFirst, unsigned kLast>
class Log2Histogram {
  static_assert(kFirst < kLast && kLast < 64);

 public:
  static constexpr std::size_t kBuckets = kLast - kFirst + 2;

  void observe(std::uint64_t value) {
    ++counts_[bucket_of(value)];
    sum_ += value;
  }

  // How many values were in each bucket alone; the last has no upper bound.
  [[nodiscard]] std::span<const std::uint64_t, kBuckets> counts() const { return counts_; }
  [[nodiscard]] std::uint64_t sum() const { return sum_; }
  // Of bucket `i`, itself included; not for the last.
  [[nodiscard]] static constexpr std::uint64_t upper_bound(std::size_t i) {
    return std::uint64_t{1} << (kFirst + i);
  }

  [[nodiscard]] static constexpr std::size_t bucket_of(std::uint64_t value) {
    const auto exponent = value == 0 ? 0u : static_cast<unsigned>(std::bit_width(value - 1));
    if (exponent <= kFirst) return 0;
    return exponent > kLast ? kBuckets - 1 : exponent - kFirst;
  }

 private:
  std::array<std::uint64_t, kBuckets> counts_{};
  std::uint64_t sum_ = 0;
};

// Nanoseconds: 1 microsecond to 17 seconds.
using DurationHistogram = Log2Histogram<10, 34>;
// Nanoseconds: 1 millisecond to 2.4 hours.
using CheckHistogram = Log2Histogram<20, 43>;
// Bytes: 4 KiB to 64 MiB.
using SizeHistogram = Log2Histogram<12, 26>;

}  // namespace mariner
